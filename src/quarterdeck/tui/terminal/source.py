"""What a `TerminalView` is fed by. The store implements `TerminalSource`; tests fake it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Replay:
    """The retained tail of the terminal's output, at the size it has now.

    With `reset` the screen starts anew from `data`; without it `data` follows what was seen.
    """

    data: bytes
    cols: int
    rows: int
    reset: bool = True


@dataclass(frozen=True, slots=True)
class Output:
    """New output, in order, no gap and no repeat."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal has another size from here on in the output, whoever asked for it."""

    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Exited:
    """The shell ended; nothing follows. `code` is null when it is not known."""

    code: int | None


@dataclass(frozen=True, slots=True)
class Lost:
    """The stream broke; the source tries again by itself after `retry_in` seconds."""

    message: str
    retry_in: float


@dataclass(frozen=True, slots=True)
class Restored:
    """The stream is back; output goes on where it was."""


SourceItem = Replay | Output | Resized | Exited | Lost | Restored


class TerminalSource(Protocol):
    """One terminal session, seen from the cockpit."""

    def stream(self) -> AsyncIterator[SourceItem]:
        """The output from its retained tail on: first a `Replay`, then what follows.

        Written as an async generator (`async def stream(self)` with `yield`). It reconnects by
        itself (`Lost`, `Restored`) and ends after `Exited`. The view reads it only as fast as it
        can, so it must not gather without bound, and closes it with `aclose` when it goes away.
        Every size change comes as `Resized`, those asked for by this view too.
        """
        ...

    async def send(self, data: str) -> None:
        """Types `data` (any length). While the stream is lost it is kept and sent later, in order.

        Raises nothing for a broken link; what cannot be kept is reported with `Lost`.
        """
        ...

    async def resize(self, cols: int, rows: int) -> None:
        """Asks for a size, within 2..500 x 1..200. The newest wins while the link is lost."""
        ...
