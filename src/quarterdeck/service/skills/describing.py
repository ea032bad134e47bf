"""What a `SKILL.md` says of its skill, in the front matter between two lines of `---`.

Only the plain values that skills use are read: one line, quoted or not, or lines that are
indented below `>` or `|`.
"""

import re

_FIELD = re.compile(r"([A-Za-z][\w-]*):\s*(.*)")
_FENCE = "---"
_BLOCK = re.compile(r"[>|][+-]?\d?")
LIMIT = 1_024
"""Characters of a value that are kept."""


def front_matter(content: bytes) -> dict[str, str]:
    """The fields of the front matter; none when there is no front matter."""
    lines = content.decode(errors="replace").lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != _FENCE:
        return {}
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[1:]:
        if line.strip() == _FENCE:
            break
        matched = _FIELD.fullmatch(line.rstrip())
        if matched:
            block = _BLOCK.fullmatch(matched[2])
            current = found[matched[1].lower()] = [] if block else [matched[2]]
        elif line[:1] in (" ", "\t"):
            current.append(line)
    return {name: _plain(" ".join(parts)) for name, parts in found.items()}


def _plain(text: str) -> str:
    one_line = " ".join(text.split())
    for quote in ("'", '"'):
        if len(one_line) > 1 and one_line[0] == one_line[-1] == quote:
            one_line = one_line[1:-1]
    return "".join(each for each in one_line if each.isprintable())[:LIMIT]
