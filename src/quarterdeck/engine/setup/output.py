"""A hook's output: keeps its end, and passes it on in pieces."""

import asyncio
import codecs
import os
from collections import deque

from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT

_READ_BYTES = 1 << 16
_READS_A_TURN = 8
_READS_AT_END = 64
_PIECE = 16_384
"""Most characters passed on at once."""


class HookOutput:
    """Reads a pipe. After `finish` it reads and discards until all writers have closed it.

    A hook may leave a server running; with the pipe closed, the server's next line would kill it.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept: deque[str] = deque()
        self._kept_chars = 0
        self._unread: deque[str] = deque()
        self._passed_on = 0
        self._finished = False
        self._open = True
        self._news = asyncio.Event()
        self.total = 0
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    @property
    def text(self) -> str:
        """The last characters."""
        return "".join(self._kept)[-HOOK_OUTPUT_LIMIT:]

    @property
    def truncated(self) -> bool:
        return self.total > HOOK_OUTPUT_LIMIT

    async def piece(self) -> str | None:
        """Return the output since the last call, once there is some; None at the end.

        In total it returns no more than a log keeps, even when a hook prints without end.
        """
        while not self._unread:
            if self._finished:
                return None
            self._news.clear()
            await self._news.wait()
        text = "".join(self._unread)
        self._unread.clear()
        if len(text) > _PIECE:
            self._unread.append(text[_PIECE:])
        return text[:_PIECE]

    def finish(self) -> None:
        """Note that the hook has ended and read the rest of the pipe."""
        for _ in range(_READS_AT_END):
            if not self._read_once():
                break
        self._take(self._decoder.decode(b"", final=True))
        self._finished = True
        self._news.set()

    def close(self) -> None:
        """Stop reading."""
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _read(self) -> None:
        for _ in range(_READS_A_TURN):
            if not self._read_once():
                return

    def _read_once(self) -> bool:
        if not self._open:
            return False
        try:
            chunk = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self.close()
            return False
        if not self._finished:
            self._take(self._decoder.decode(chunk))
        return True

    def _take(self, text: str) -> None:
        if not text:
            return
        self.total += len(text)
        self._kept.append(text)
        self._kept_chars += len(text)
        while self._kept_chars - len(self._kept[0]) >= HOOK_OUTPUT_LIMIT:
            self._kept_chars -= len(self._kept.popleft())
        if (room := HOOK_OUTPUT_LIMIT - self._passed_on) > 0:
            self._passed_on += len(text[:room])
            self._unread.append(text[:room])
            self._news.set()
