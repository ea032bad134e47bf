"""Lines of files as they are shown to a reviewer.

What a terminal must not receive is not left out, as it is elsewhere, but spelled out: a review has to
find changes of invisible characters.
"""

import re
import unicodedata
from functools import lru_cache

from quarterdeck.transcript.text import clean

TAB = 4
LONGEST = 2_000
"""Characters of a line that are shown."""

# Control and format characters, ends of lines and paragraphs within a line, half characters, and those
# unknown to Python's tables; then the spaces that look like nothing.
_CATEGORIES = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")


def visible(text: str) -> str:
    """Return a line without its end, harmless and in full."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} ... {len(text) - LONGEST} more characters"
    if text.isascii() and text.isprintable():
        return text
    return _spelled(text)


@lru_cache(maxsize=2048)
def _spelled(text: str) -> str:
    ends = text.endswith("\r")
    text = text.removesuffix("\r").expandtabs(TAB) + ("\u240d" if ends else "")
    if text.isascii() and text.isprintable():
        return text
    # Stacked or joined characters are thinned as everywhere.
    return clean("".join(_shown(character) for character in text))


def _shown(character: str) -> str:
    if " " <= character <= "~":
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in _CATEGORIES or _INVISIBLE.match(character):
        return f"<U+{code:04X}>"
    return character
