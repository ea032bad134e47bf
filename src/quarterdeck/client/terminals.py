"""Interactive terminals of a replica."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.client.keyboard import FaultListener, Keyboard
from quarterdeck.client.retry import STREAM_PACE, Pace
from quarterdeck.client.stream import ResumingStream
from quarterdeck.client.terminal_stream import TerminalCursor, TerminalStream
from quarterdeck.wire.base import Success
from quarterdeck.wire.terminals import (
    CreateTerminal,
    ResizeTerminal,
    TerminalAnswer,
    TerminalInput,
    TerminalList,
    TerminalSession,
)


class Terminals:
    """`/v1/replica/{id}/terminal/sessions`. Every call needs an active replica (`NotActive`)."""

    def __init__(self, connection: Connection, pace: Pace = STREAM_PACE) -> None:
        self._connection = connection
        self._pace = pace

    async def list(self, replica_id: UUID) -> list[TerminalSession]:
        """Every session, ended ones too."""
        return (await self._connection.call("GET", _path(replica_id), TerminalList)).sessions

    async def create(self, replica_id: UUID, cols: int, rows: int) -> TerminalSession:
        """Opens a shell of 2 to 500 by 1 to 200 cells. `RateLimited` from the ninth."""
        body = CreateTerminal(cols=cols, rows=rows)
        answer = await self._connection.call("POST", _path(replica_id), TerminalAnswer, body=body)
        return answer.session

    async def input(self, replica_id: UUID, session_id: UUID, keys: TerminalInput) -> None:
        """Types numbered keys; repeated with the same number they are typed once.

        Raises:
            Conflict: an earlier number never came; begin a new generation.
        """
        await self._connection.call(
            "POST", f"{_path(replica_id)}/{session_id}/input", Success, body=keys, repeatable=True
        )

    async def resize(self, replica_id: UUID, session_id: UUID, cols: int, rows: int) -> None:
        """Gives the terminal another size; the same bounds as `create`."""
        await self._connection.call(
            "POST",
            f"{_path(replica_id)}/{session_id}/resize",
            Success,
            body=ResizeTerminal(cols=cols, rows=rows),
            repeatable=True,
        )

    async def close(self, replica_id: UUID, session_id: UUID) -> None:
        """Ends the shell and everything it started."""
        await self._connection.call("DELETE", f"{_path(replica_id)}/{session_id}", Success)

    def stream(
        self, replica_id: UUID, session_id: UUID, offset: int | None = None
    ) -> TerminalStream:
        """Output from a byte offset on; without one the retained tail first.

        Yields `TerminalReceived`, `Malformed`, `Lost`, `Restored`; ends after an `exit`. Refusals
        (401, 404, 409, ...) are raised.
        """
        path = f"{_path(replica_id)}/{session_id}/stream"
        return ResumingStream(self._connection, path, TerminalCursor(offset), self._pace)

    def keyboard(
        self, replica_id: UUID, session_id: UUID, on_fault: FaultListener | None = None
    ) -> Keyboard:
        """What is typed, in order and once. Use as an async context manager."""

        async def send(keys: TerminalInput) -> None:
            await self.input(replica_id, session_id, keys)

        return Keyboard(send, on_fault)


def _path(replica_id: UUID) -> str:
    return f"/v1/replica/{replica_id}/terminal/sessions"
