"""Items of a resuming stream: events, and changes of its connection."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quarterdeck.client.errors import ClientError, ProtocolError

if TYPE_CHECKING:
    from quarterdeck.wire.events import Event
    from quarterdeck.wire.terminals import TerminalEvent


@dataclass(frozen=True, slots=True)
class Received:
    """One event, in order, never twice. `index` is None on a server without `id:` lines."""

    index: int | None
    event: "Event"


@dataclass(frozen=True, slots=True)
class TerminalReceived:
    """One message of a terminal, in order, never twice.

    `offset` is the byte offset after it, None where the server gave none. A `replay` with `reset`
    means: clear the screen and start with its bytes. `data` is the bytes of a `replay` or an `output`.
    """

    offset: int | None
    event: "TerminalEvent"
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message that could not be read; the stream continues. `text` is its start."""

    error: ProtocolError
    text: str


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection is lost; the next try is in `retry_in` seconds."""

    error: ClientError
    retry_in: float


@dataclass(frozen=True, slots=True)
class ConnectionRestored:
    """The connection is restored.

    With `resumed` nothing was missed: the next item follows the last one. Without it items may be
    missing, and the state must be read again.
    """

    resumed: bool


EventItem = Received | Malformed | ConnectionLost | ConnectionRestored
TerminalItem = TerminalReceived | Malformed | ConnectionLost | ConnectionRestored
