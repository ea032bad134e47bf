"""What the terminal is, as it says itself.

Variables of the environment do not come over SSH, and are inherited by terminals that they do not describe.

    query at start -> terminal -> TerminalAnswered (driver) -> TerminalIdentity -> what needs it
"""

import asyncio
import re
from contextlib import suppress

from textual.geometry import Size
from textual.message import Message

QUERY = "\x1b[>0q\x1b[16t\x1b[c"
"""Asks for name and version (XTVERSION), the size of a cell, then attributes, which every terminal reports."""
ANSWERS = re.compile(
    "\x1bP>\\|(?P<name>[^\x1b\x07]*)(?:\x1b\\\\|\x07)"
    "|\x1b\\[6;(?P<cell>\\d{1,4};\\d{1,4})t"
    "|\x1b\\[\\?(?P<attributes>[\\d;]*)c"
)
"""The reports that `QUERY` asks for."""
BEGUN = re.compile("\x1b(?:P>[^\x1b\x07]{0,200}\x1b?|\\[6;[\\d;]{0,9}|\\[\\?[\\d;]{0,50})$")
"""A report whose end has not been read yet."""
SECONDS = 1.0
"""Time for which a notification or a picture waits for the answer; nothing else does."""
SIXEL = "4"
"""The attribute of terminals that show sixel images."""


class TerminalAnswered(Message):
    """The terminal reported its name, the pixels of a cell, or its attributes, which end the answer."""

    def __init__(
        self, name: str | None = None, cell: str | None = None, attributes: str | None = None
    ) -> None:
        super().__init__()
        self.name = name
        self.cell = cell
        self.attributes = attributes


class TerminalIdentity:
    """What the terminal has reported."""

    def __init__(self) -> None:
        self._name = ""
        self._attributes: frozenset[str] = frozenset()
        self._answered: asyncio.Event | None = None
        self.cell: Size | None = None
        """Width and height of a cell in pixels at the start."""

    def expect(self) -> str:
        """Return the query to send; its answer is waited for."""
        self._answered = asyncio.Event()
        return QUERY

    def take(self, answer: TerminalAnswered) -> None:
        """Note an answer."""
        if answer.cell is not None:
            height, width = map(int, answer.cell.split(";"))
            self.cell = Size(width, height) if width and height else None
            return
        if answer.name is not None:
            self._name = answer.name
        if answer.attributes is not None:
            # The first is the class of the terminal, which may be any number.
            self._attributes = frozenset(answer.attributes.split(";")[1:])
        if self._answered is not None:
            self._answered.set()

    async def name(self) -> str:
        """Return the name and version, such as `kitty(0.35.2)`; empty when the terminal does not say."""
        if self._answered is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await self._answered.wait()
            # Asked once: a terminal that does not answer delays one notification or picture.
            self._answered.set()
        return self._name

    @property
    def has_sixel(self) -> bool:
        """Whether the terminal has reported that it shows sixel images."""
        return SIXEL in self._attributes
