"""Feeds a `TerminalView` from the store's `TerminalLink`."""

from collections.abc import AsyncIterator, Callable

from quarterdeck.client.errors import ClientError
from quarterdeck.client.items import Lost as LineLost
from quarterdeck.client.items import Malformed, TerminalItem, TerminalReceived
from quarterdeck.client.items import Restored as LineRestored
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.tui.terminal.source import (
    Exited,
    Lost,
    Output,
    Replay,
    Resized,
    Restored,
    SourceItem,
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
            return Output(data)
        case TerminalResized(cols=cols, rows=rows):
            return Resized(cols, rows)
        case TerminalExit(exit_code=code):
            return Exited(code)
        case TerminalError(message=message):
            return Lost(message, 0.0)


def _of_item(item: TerminalItem) -> SourceItem | None:
    match item:
        case TerminalReceived(_, event, data):
            return _of_event(event, data)
        case LineLost(error, retry_in):
            return Lost(str(error), retry_in)
        case LineRestored():
            return Restored()
        case Malformed():
            return None


class LinkSource:
    """A `TerminalSource` over one session of the service.

    `gone` is told once when the session can be shown no longer: its engine ended, or the service
    refuses it.
    """

    def __init__(self, link: TerminalLink, gone: Callable[[ClientError], None]) -> None:
        self._link = link
        self._gone = gone

    async def stream(self) -> AsyncIterator[SourceItem]:
        try:
            async for item in self._link.items():
                shown = _of_item(item)
                if shown is not None:
                    yield shown
        except ClientError as error:
            yield Lost(str(error), 0.0)
            self._gone(error)

    async def send(self, data: str) -> None:
        try:
            await self._link.send(data)
        except ClientError:
            # The stream of a terminal that takes no keys ends too, and tells why.
            return

    async def resize(self, cols: int, rows: int) -> None:
        try:
            await self._link.resize(cols, rows)
        except ClientError:
            # The size is asked for again by the view after the line is back.
            return
