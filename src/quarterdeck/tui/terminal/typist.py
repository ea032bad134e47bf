"""What is typed into a program: one queue, so that keys, pastes and replies keep their order."""

import asyncio
import re
from collections import deque

from quarterdeck.tui.terminal.core import Mode
from quarterdeck.tui.terminal.source import TerminalSource

BATCH = 16 << 10
"""Characters sent at once; a paste goes in as many pieces, so that it never fills the link."""
REPLIES_KEPT = 64 << 10
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def paste_text(text: str, modes: Mode) -> str:
    """Pasted text as it is typed: lines end as Enter does, nothing in it can act as a key.

    An escape inside could end the bracket early and run what follows, so controls become blanks.
    """
    text = _CONTROLS.sub(" ", text.replace("\r\n", "\r").replace("\n", "\r"))
    return f"\x1b[200~{text}\x1b[201~" if modes & Mode.BRACKETED_PASTE else text


class Typist:
    """Sends what is typed, in order, several keys at once when the source is slow."""

    def __init__(self, source: TerminalSource) -> None:
        self._source = source
        self._pieces: deque[str] = deque()
        self._waiting = 0
        self._filled = asyncio.Event()

    def type(self, text: str) -> None:
        """Queues text of any length."""
        for at in range(0, len(text), BATCH):
            self._pieces.append(text[at : at + BATCH])
        self._waiting += len(text)
        self._filled.set()

    def reply(self, data: bytes) -> None:
        """Queues an answer of the emulator; dropped when the program asks without end."""
        if self._waiting + len(data) <= REPLIES_KEPT:
            self.type(data.decode("latin-1"))

    async def run(self) -> None:
        """Sends until canceled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._pieces:
                await self._source.send(self._take())

    def _take(self) -> str:
        taken = [self._pieces.popleft()]
        size = len(taken[0])
        while self._pieces and size + len(self._pieces[0]) <= BATCH:
            taken.append(self._pieces.popleft())
            size += len(taken[-1])
        self._waiting -= size
        return "".join(taken)
