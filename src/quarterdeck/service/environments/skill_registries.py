"""Skills that can be found in registries.

The front matter of a `SKILL.md`, between two lines of `---`.

Only simple values are read: one line, quoted or not, or lines that are indented below `>` or `|`.
"""

import asyncio
import logging
import re
from pathlib import PurePosixPath

from quarterdeck.local.files import read_file
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.source_port import Sources, TreeFile
from quarterdeck.wire.environment_parts import (
    SLUG_PATTERN,
    FoundSkill,
)

_FIELD = re.compile(r"([A-Za-z][\w-]*):\s*(.*)")
_FENCE = "---"
_BLOCK = re.compile(r"[>|][+-]?\d?")
LIMIT = 1_024
"""Characters of a value that are kept."""


def front_matter(content: bytes) -> dict[str, str]:
    """Return the fields of the front matter; none when there is no front matter."""
    lines = content.decode(errors="replace").lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != _FENCE:
        return {}
    values: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[1:]:
        if line.strip() == _FENCE:
            break
        matched = _FIELD.fullmatch(line.rstrip())
        if matched:
            block = _BLOCK.fullmatch(matched[2])
            current = values[matched[1].lower()] = [] if block else [matched[2]]
        elif line[:1] in (" ", "\t"):
            current.append(line)
    return {name: _plain(" ".join(parts)) for name, parts in values.items()}


def _plain(text: str) -> str:
    one_line = " ".join(text.split())
    for quote in ("'", '"'):
        if len(one_line) > 1 and one_line[0] == one_line[-1] == quote:
            one_line = one_line[1:-1]
    return "".join(each for each in one_line if each.isprintable())[:LIMIT]


log = logging.getLogger(__name__)

SKILL_FILE = "SKILL.md"
NAME_LIMIT = 200

_slug = re.compile(SLUG_PATTERN)


def registries_of(home: Home) -> list[str]:
    """Return the installation's own skill directory, if it exists, and the listed registries."""
    own = [str(home.skills)] if home.skills.is_dir() else []
    try:
        lines = read_file(home.skill_registries).decode().splitlines()
    except FileNotFoundError:
        return own
    except (OSError, UnicodeDecodeError) as e:
        log.error("%s cannot be read: %s", home.skill_registries, e)
        return own
    named = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return list(dict.fromkeys([*own, *named]))


async def all_skills(home: Home, sources: Sources) -> list[FoundSkill]:
    """Return the skills of every registry; one that cannot be read is skipped, and logged."""
    registries = await asyncio.to_thread(registries_of, home)
    by_registry = await asyncio.gather(*(_skills_of(registry, sources) for registry in registries))
    return [skill for skills in by_registry for skill in skills]


async def _skills_of(registry: str, sources: Sources) -> list[FoundSkill]:
    try:
        files = await sources.find_in_tree(registry, SKILL_FILE)
    except SandboxError as e:
        log.warning("A registry of skills cannot be read: %s", e)
        return []
    return [skill for file in files if (skill := _skill(registry, file)) is not None]


def _skill(registry: str, file: TreeFile) -> FoundSkill | None:
    """Return a folder's skill, None when the folder's name cannot be a slug."""
    folder = PurePosixPath(file.path).parent
    at_top = folder == PurePosixPath()
    slug = PurePosixPath(registry).name.removesuffix(".git") if at_top else folder.name
    if not _slug.fullmatch(slug):
        return None
    metadata = front_matter(file.content)
    return FoundSkill(
        name=metadata.get("name", "")[:NAME_LIMIT] or slug,
        slug=slug,
        source=registry if at_top else f"{registry}#{folder}",
        description=metadata.get("description") or None,
    )


MOST_FOUND = 100


async def search_skills(home: Home, sources: Sources, query: str) -> list[FoundSkill]:
    """Return the skills that have every word of the query, best match first; all for an empty one.

    A match in the name or slug is better than one in the description alone.
    """
    words = query.casefold().split()
    ranked = [(_rank(skill, words), skill) for skill in await all_skills(home, sources)]
    fitting = [(rank, skill) for rank, skill in ranked if rank is not None]
    fitting.sort(key=lambda scored: (scored[0], scored[1].slug, scored[1].source))
    return [skill for _, skill in fitting[:MOST_FOUND]]


def _rank(skill: FoundSkill, words: list[str]) -> int | None:
    """Return the rank of a match, smaller is better; None when a word is missing."""
    name = f"{skill.slug} {skill.name}".casefold()
    text = f"{name} {skill.description or ''}".casefold()
    if not all(word in text for word in words):
        return None
    query = " ".join(words)
    if query in (skill.slug.casefold(), skill.name.casefold()):
        return 0
    if name.startswith(query):
        return 1
    return 2 if all(word in name for word in words) else 3
