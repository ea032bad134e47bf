"""Lines of styled text before they have colors.

Drawing is split in two: the modules of this package lay a block out as `Line`s of `Span`s that name
a `Role`; the painter turns roles into the theme's styles. So layout is tested without a screen.
"""

from collections.abc import Iterable
from enum import Flag, StrEnum, auto
from typing import NamedTuple

TAB = 4


class Role(StrEnum):
    """What a text is; each has a component class `transcript--<role>`."""

    TEXT = "text"
    USER = "user"
    PROMPT = "prompt"
    DIM = "dim"
    HEADING = "heading"
    CODE = "code"
    INLINE = "inline"
    QUOTE = "quote"
    RULE = "rule"
    LINK = "link"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    ASKING = "asking"
    CHOSEN = "chosen"
    ADDED = "added"
    REMOVED = "removed"
    KEYWORD = "keyword"
    STRING = "string"
    COMMENT = "comment"
    NUMBER = "number"
    NAME = "name"


class Mark(Flag):
    """Emphasis on top of a role."""

    NONE = 0
    BOLD = auto()
    ITALIC = auto()
    STRIKE = auto()
    UNDERLINE = auto()


class Span(NamedTuple):
    """Text of one look, without newlines. `target`: what a click does (see `view`)."""

    text: str
    role: Role = Role.TEXT
    marks: Mark = Mark.NONE
    link: str = ""
    target: str = ""


Line = tuple[Span, ...]
"""One row."""


def line(text: str, role: Role = Role.TEXT, marks: Mark = Mark.NONE) -> Line:
    """A row of one look."""
    return (Span(text, role, marks),)


def untabbed(text: str) -> str:
    """Tabs as blanks, to the next stop."""
    return text.expandtabs(TAB) if "\t" in text else text


def plain(lines: Iterable[Line]) -> list[str]:
    """The rows' text."""
    return ["".join(span.text for span in row) for row in lines]
