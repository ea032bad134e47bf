"""Which registries an installation has, and which skills are in them."""

import asyncio
import logging
import re
from pathlib import PurePosixPath

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver, SandboxError, TreeFile
from quarterdeck.service.skills.describing import front_matter
from quarterdeck.wire.environment_skills import SLUG_PATTERN, FoundSkill

log = logging.getLogger(__name__)

SKILL_FILE = "SKILL.md"
NAME_LIMIT = 200

_slug = re.compile(SLUG_PATTERN)


def registries_of(home: Home) -> list[str]:
    """The installation's own directory of skills, when there is one, and those that it names."""
    own = [str(home.skills)] if home.skills.is_dir() else []
    try:
        lines = home.skill_registries.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return own
    except (OSError, UnicodeDecodeError) as e:
        log.error("%s cannot be read: %s", home.skill_registries, e)
        return own
    named = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return list(dict.fromkeys([*own, *named]))


async def all_skills(home: Home, sandboxes: SandboxDriver) -> list[FoundSkill]:
    """The skills of every registry; one that cannot be read is passed over, and logged."""
    registries = await asyncio.to_thread(registries_of, home)
    found = await asyncio.gather(*(_skills_of(one, sandboxes) for one in registries))
    return [skill for skills in found for skill in skills]


async def _skills_of(registry: str, sandboxes: SandboxDriver) -> list[FoundSkill]:
    try:
        files = await sandboxes.find_in_tree(registry, SKILL_FILE)
    except SandboxError as e:
        log.warning("A registry of skills cannot be read: %s", e)
        return []
    return [skill for file in files if (skill := _skill(registry, file)) is not None]


def _skill(registry: str, file: TreeFile) -> FoundSkill | None:
    """None for a folder whose name can be no slug."""
    folder = PurePosixPath(file.path).parent
    at_top = folder == PurePosixPath()
    slug = PurePosixPath(registry).name.removesuffix(".git") if at_top else folder.name
    if not _slug.fullmatch(slug):
        return None
    told = front_matter(file.content)
    return FoundSkill(
        name=told.get("name", "")[:NAME_LIMIT] or slug,
        slug=slug,
        source=registry if at_top else f"{registry}#{folder}",
        description=told.get("description") or None,
    )
