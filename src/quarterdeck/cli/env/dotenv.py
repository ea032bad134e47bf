"""Reading `.env` files: `KEY=value` lines, as programs and shells write them."""

import re

from quarterdeck.cli.errors import UsageFault

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "`": "`"}
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?', re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?", re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#.*")


def read_dotenv(text: str) -> dict[str, str]:
    """The variables in order; of a key that comes twice the later value counts.

    A quoted value may span lines. Nothing is expanded.

    Raises:
        UsageFault: a line that is none of this, by its number.
    """
    found: dict[str, str] = {}
    lines = text.removeprefix("\ufeff").splitlines()
    number = 0
    while number < len(lines):
        start, line = number, lines[number].strip()
        number += 1
        if not line or line.startswith("#"):
            continue
        matched = _LINE.fullmatch(line)
        if matched is None:
            raise UsageFault(f"Line {start + 1} is no KEY=value.")
        key, raw = matched[1], matched[2]
        while _is_open(raw) and number < len(lines):
            raw += "\n" + lines[number]
            number += 1
        found[key] = _value(raw, start + 1)
    return found


def _is_open(raw: str) -> bool:
    """A quoted value whose end is still to come."""
    if raw[:1] == '"':
        return _DOUBLE.fullmatch(raw) is None
    return raw[:1] == "'" and _SINGLE.fullmatch(raw) is None


def _value(raw: str, number: int) -> str:
    if raw[:1] not in ("'", '"'):
        return _COMMENT.sub("", raw).strip()
    matched = (_DOUBLE if raw[0] == '"' else _SINGLE).fullmatch(raw)
    if matched is None:
        raise UsageFault(f"The quotes that begin on line {number} do not end as they should.")
    if raw[0] == "'":
        return matched[1]
    return re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), matched[1], flags=re.DOTALL)
