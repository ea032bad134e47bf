"""Items of a resuming stream: events, and changes of its connection."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from quarterdeck.client.errors import ClientError, ProtocolError

if TYPE_CHECKING:
    from quarterdeck.wire.events import Event
    from quarterdeck.wire.terminals import TerminalEvent


@dataclass(frozen=True, slots=True)
class Received:
    """One event, in order, never twice. `index` is None on a server without `id:` lines."""

    index: int | None
    event: "Event"


class TerminalReceived(NamedTuple):
    """One message of a terminal, in order, never twice.

    `offset` is the byte offset after it, None where the server gave none. A `replay` with `reset`
    means: clear the screen and start with its bytes. `data` is the bytes of a `replay` or an `output`.
    """

    offset: int | None
    event: "TerminalEvent"
    data: bytes = b""


class Malformed(NamedTuple):
    """A message that could not be read; the stream continues. `text` is its start."""

    error: ProtocolError
    text: str


class ConnectionLost(NamedTuple):
    """The connection is lost; the next try is in `retry_in` seconds."""

    error: ClientError
    retry_in: float


class ConnectionRestored(NamedTuple):
    """The connection is restored.

    With `resumed` nothing was missed: the next item follows the last one. Without it items may be
    missing, and the state must be read again.
    """

    resumed: bool


EventItem = Received | Malformed | ConnectionLost | ConnectionRestored
TerminalItem = TerminalReceived | Malformed | ConnectionLost | ConnectionRestored
