"""Makes a program's text fit for the screen: nothing that controls, and exactly as wide as told.

The emulator and the screen library may disagree on a character's width, and one cell too many moves
the whole line. So a run whose width differs is rebuilt character by character.
"""

import unicodedata
from functools import lru_cache

from rich.cells import cell_len

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
_TITLE_LIMIT = 200


def _harmless(character: str) -> str:
    """The character, or a mark in its place when it would control the outer terminal."""
    if character in _JOINERS:
        return character
    match unicodedata.category(character):
        case "Cc" | "Cf" | "Cs" | "Zl" | "Zp":
            return _UNKNOWN
        case _:
            return character


def _exactly(text: str, cells: int) -> str:
    width = cell_len(text)
    if not 0 < width <= cells:
        text, width = _UNKNOWN, 1
    return text + " " * (cells - width)


@lru_cache(maxsize=8192)
def fit(text: str, cells: int) -> str:
    """`text` without control characters, in exactly `cells` cells.

    It is either one grapheme, or characters that are all one or all two cells wide.
    """
    clean = "".join(map(_harmless, text)).rstrip("\u200d")
    if cell_len(clean) == cells:
        return clean
    width = cells // len(clean) if clean else 0
    if width not in (1, 2) or width * len(clean) != cells:
        return _exactly(clean[:1], cells)
    return "".join([_exactly(character, width) for character in clean])


def clean_title(title: str) -> str:
    """A window's title without control characters, at most 200 characters."""
    return "".join([c for c in title if c.isprintable()])[:_TITLE_LIMIT]
