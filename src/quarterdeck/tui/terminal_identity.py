"""What the terminal is, as it says itself.

Variables of the environment do not come over SSH, and are inherited by terminals that they do not describe.

    query at start -> terminal -> TerminalAnswered (driver) -> TerminalIdentity -> what needs the name
"""

import asyncio
import re
from contextlib import suppress

from textual.message import Message

QUERY = "\x1b[>0q\x1b[c"
"""Asks for name and version (XTVERSION), then for attributes, which every terminal reports."""
ANSWERS = re.compile("\x1bP>\\|(?P<name>[^\x1b\x07]*)(?:\x1b\\\\|\x07)|\x1b\\[\\?[\\d;]*c")
"""The reports that `QUERY` asks for."""
BEGUN = re.compile("\x1b(?:P>[^\x1b\x07]{0,200}\x1b?|\\[\\?[\\d;]{0,50})$")
"""A report whose end has not been read yet."""
SECONDS = 1.0
"""Time for which a notification waits for the answer; nothing else does."""


class TerminalAnswered(Message):
    """The terminal reported its name, or without one that it has answered the whole query."""

    def __init__(self, name: str | None) -> None:
        super().__init__()
        self.name = name


class TerminalIdentity:
    """The name and version that the terminal has reported."""

    def __init__(self) -> None:
        self._name = ""
        self._answered: asyncio.Event | None = None

    def expect(self) -> str:
        """Return the query to send; its answer is waited for."""
        self._answered = asyncio.Event()
        return QUERY

    def take(self, answer: TerminalAnswered) -> None:
        """Note an answer."""
        if answer.name is not None:
            self._name = answer.name
        if self._answered is not None:
            self._answered.set()

    async def name(self) -> str:
        """Return the name and version, such as `kitty(0.35.2)`; empty when the terminal does not say."""
        if self._answered is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await self._answered.wait()
            # Asked once: a terminal that does not answer delays one notification.
            self._answered.set()
        return self._name
