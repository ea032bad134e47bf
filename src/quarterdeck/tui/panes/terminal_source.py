"""The terminal of a session of the service, as the view of a terminal reads it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from quarterdeck.client.errors import ClientError
from quarterdeck.client.stream_events import ConnectionLost as LineLost
from quarterdeck.client.stream_events import ConnectionRestored as LineRestored
from quarterdeck.client.stream_events import Malformed, TerminalItem, TerminalReceived
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.tui.terminal.host import (
    Exited,
    OutputEvent,
    Replay,
    Resized,
    SourceItem,
    StreamLost,
    StreamRestored,
)
from quarterdeck.wire.terminals import (
    TerminalError,
    TerminalEvent,
    TerminalExit,
    TerminalOutput,
    TerminalReplay,
    TerminalResized,
)


def _of_event(event: TerminalEvent, data: bytes) -> SourceItem:
    match event:
        case TerminalReplay(cols=cols, rows=rows, reset=reset):
            return Replay(data, cols, rows, reset)
        case TerminalOutput():
            return OutputEvent(data)
        case TerminalResized(cols=cols, rows=rows):
            return Resized(cols, rows)
        case TerminalExit(exit_code=code):
            return Exited(code)
        case TerminalError(message=message):
            return StreamLost(message, 0.0)


def _of_item(item: TerminalItem) -> SourceItem | None:
    match item:
        case TerminalReceived(_, event, data):
            return _of_event(event, data)
        case LineLost(error, retry_in):
            return StreamLost(str(error), retry_in)
        case LineRestored():
            return StreamRestored()
        case Malformed():
            return None


class LinkSource:
    """A `TerminalSource` over one session of the service.

    `on_end` is called once when the session can no longer be shown: its engine ended, or the service
    refuses it.
    """

    def __init__(self, link: TerminalLink, on_end: Callable[[ClientError], object]) -> None:
        self._link = link
        self._on_end = on_end

    async def stream(self) -> AsyncIterator[SourceItem]:
        try:
            async for item in self._link.items():
                shown = _of_item(item)
                if shown is not None:
                    yield shown
        except ClientError as error:
            yield StreamLost(str(error), 0.0)
            self._on_end(error)

    async def send(self, data: str) -> None:
        try:
            await self._link.send(data)
        except ClientError:
            # The stream of a terminal that accepts no keys ends too, and says why.
            return

    async def resize(self, cols: int, rows: int) -> None:
        try:
            await self._link.resize(cols, rows)
        except ClientError:
            # The size is requested again by the view after the connection is back.
            return


@dataclass
class OpenTerminal:
    """A session shown in a separate view, until it is closed or its engine ends."""

    link: TerminalLink
    title: str
    ended: bool = False
    """The shell has ended; its last screen stays."""
    exit_code: int | None = None
    offered: str = ""
    """The text that its program wants to copy."""
