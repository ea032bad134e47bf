"""Names of files that are no text: shown as text, and found again from it.

A name is any bytes but `/` and NUL; JSON holds text only. What is not UTF-8 is shown as `\\xNN`.
"""

import re

_ESCAPE = re.compile(r"\\x([89a-f][0-9a-f])")


def shown(name: bytes) -> str:
    """The name as text."""
    return name.decode(errors="backslashreplace")


def meant(text: str) -> list[bytes]:
    """The names that a text may stand for, the one that it spells first.

    Raises:
        UnicodeEncodeError: it holds half a surrogate pair, which no shown name does.
    """
    plain = text.encode()
    escaped = b"".join(_bytes_of(part) for part in re.split(r"(\\x[89a-f][0-9a-f])", text))
    return [plain] if plain == escaped else [plain, escaped]


def _bytes_of(part: str) -> bytes:
    found = _ESCAPE.fullmatch(part)
    return bytes([int(found[1], 16)]) if found else part.encode()
