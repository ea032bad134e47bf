"""What the streams yield."""

from dataclasses import dataclass

from quarterdeck.client.errors import ClientError, ProtocolError
from quarterdeck.wire.events import Event
from quarterdeck.wire.terminals import TerminalEvent


@dataclass(frozen=True, slots=True)
class Received:
    """One event, in order, never twice. `index` is None on a server without `id:` lines."""

    index: int | None
    event: Event


@dataclass(frozen=True, slots=True)
class TerminalReceived:
    """One message of a terminal, in order, never twice.

    `offset` is the byte offset after it, None where the server gave none. A `replay` with `reset`
    means: clear the screen and begin with its bytes. `data` is the bytes of a `replay` or an `output`.
    """

    offset: int | None
    event: TerminalEvent
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message that could not be read; the stream goes on. `text` is its beginning."""

    error: ProtocolError
    text: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The line is down; the next try comes in `retry_in` seconds."""

    error: ClientError
    retry_in: float


@dataclass(frozen=True, slots=True)
class Restored:
    """The line is up again.

    With `resumed` nothing was missed: what follows begins exactly after the last item. Without it
    something may be missing, and the state must be read again.
    """

    resumed: bool


EventItem = Received | Malformed | Lost | Restored
TerminalItem = TerminalReceived | Malformed | Lost | Restored
