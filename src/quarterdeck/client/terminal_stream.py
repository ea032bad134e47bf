"""The place in a terminal's output, counted in bytes."""

import base64
from collections.abc import Iterable

from httpx_sse import ServerSentEvent
from pydantic import ValidationError

from quarterdeck.client.errors import ProtocolError
from quarterdeck.client.items import Malformed, TerminalItem, TerminalReceived
from quarterdeck.client.stream import ResumingStream
from quarterdeck.wire.terminals import (
    TerminalEvent,
    TerminalExit,
    TerminalOutput,
    TerminalReplay,
    terminal_bytes,
    terminal_event,
)

SHOWN = 200
"""Characters of a message that could not be read that are passed on."""

TerminalStream = ResumingStream[TerminalItem]


class TerminalCursor:
    """Drops what was already given, cuts what was given in part, and never leaves a hole."""

    def __init__(self, offset: int | None = None) -> None:
        self._offset = offset
        self._finished = False

    @property
    def place(self) -> str | None:
        return None if self._offset is None else str(self._offset)

    @property
    def finished(self) -> bool:
        return self._finished

    def connected(self) -> None:
        pass

    def take(self, message: ServerSentEvent) -> Iterable[TerminalItem]:
        if not message.data:
            return ()
        try:
            event = terminal_event.validate_json(message.data)
            return self._placed(event, int(message.id) if message.id.isdecimal() else None)
        except ValidationError:
            error = ProtocolError(
                "A message of the terminal could not be read.", next_step="It is left out."
            )
            return (Malformed(error, message.data[:SHOWN]),)

    def _placed(self, event: TerminalEvent, end: int | None) -> Iterable[TerminalItem]:
        match event:
            case TerminalReplay(offset=offset):
                data = terminal_bytes(event.data)
                self._offset = offset
                return (TerminalReceived(offset, event, data),)
            case TerminalOutput():
                return self._output(event, terminal_bytes(event.data), end)
            case TerminalExit():
                self._finished = True
            case _:
                pass
        return (TerminalReceived(end, event),)

    def _output(
        self, event: TerminalOutput, data: bytes, end: int | None
    ) -> Iterable[TerminalItem]:
        last, size = self._offset, len(data)
        if last is None:
            self._offset = end
            return (TerminalReceived(end, event, data),)
        if end is None:
            end = last + size  # a server without `id:` lines: counted here
        if end <= last:
            return ()
        if end - last > size:
            # Bytes are missing: only a replay makes the screen right again.
            self._offset = None
            raise ProtocolError("Output of the terminal is missing.", next_step="It is read again.")
        if end - last < size:
            data = data[last - end :]
            event = TerminalOutput(data=base64.b64encode(data).decode())
        self._offset = end
        return (TerminalReceived(end, event, data),)
