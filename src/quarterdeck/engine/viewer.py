"""One attached stream of a terminal's output."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from quarterdeck.engine.ring import Ring
from quarterdeck.wire.engine import TerminalFrame
from quarterdeck.wire.terminals import (
    TerminalEvent,
    TerminalExit,
    TerminalOutput,
    TerminalReplay,
    TerminalResized,
)

CHUNK_BYTES = 1 << 16


class Watched(Protocol):
    """What a viewer sees of its terminal."""

    ring: Ring
    size: tuple[int, int]
    exited: bool
    exit_code: int | None
    changed: asyncio.Event


class Viewer:
    """Makes frames as fast as they are taken; `position` is the offset that was taken last."""

    def __init__(self, terminal: Watched, offset: int | None, on_move: Callable[[], None]) -> None:
        ring = terminal.ring
        self._terminal = terminal
        self._on_move = on_move
        self._clock = asyncio.get_running_loop().time
        self._replay_wanted = offset is None or not ring.start <= offset <= ring.end
        self.position = ring.end if offset is None or self._replay_wanted else offset
        self._size = terminal.size
        self._offered_at: float | None = None

    def stalled(self, now: float, seconds: float) -> bool:
        """Whether a frame has been waiting to be taken for that long."""
        return self._offered_at is not None and now - self._offered_at >= seconds

    async def frames(self) -> AsyncGenerator[TerminalFrame, None]:
        """Ends after the `exit` frame."""
        while True:
            changed = self._terminal.changed
            event = self._next()
            if event is None:
                await changed.wait()
                continue
            offset = self._offset_after(event)
            self._offered_at = self._clock()
            yield TerminalFrame(offset=offset, event=event)
            self._offered_at = None
            self.position = offset
            if event.type == "exit":
                return
            self._on_move()

    def _next(self) -> TerminalEvent | None:
        terminal, ring = self._terminal, self._terminal.ring
        if self._replay_wanted or self.position < ring.start:
            return self._replay()
        if self._size != terminal.size:
            self._size = terminal.size
            return TerminalResized(cols=self._size[0], rows=self._size[1])
        if self.position < ring.end:
            self._data = ring.read(self.position, CHUNK_BYTES)
            return TerminalOutput(data=b64encode(self._data).decode())
        return TerminalExit(exit_code=terminal.exit_code) if terminal.exited else None

    def _replay(self) -> TerminalReplay:
        ring = self._terminal.ring
        self._replay_wanted = False
        self._size = self._terminal.size
        data = b64encode(ring.read(ring.start)).decode()
        return TerminalReplay(data=data, offset=ring.end, cols=self._size[0], rows=self._size[1])

    def _offset_after(self, event: TerminalEvent) -> int:
        match event:
            case TerminalReplay():
                return event.offset
            case TerminalOutput():
                return self.position + len(self._data)
            case _:
                return self.position
