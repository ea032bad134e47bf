"""Terminal sessions in the cockpit: output that resumes, keys that are typed once."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import BaseModel

from quarterdeck.client.stream_events import TerminalItem

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.client.terminals import Keyboard
    from quarterdeck.store.disk import ClientDisk
    from quarterdeck.wire.terminals import TerminalSession

MOST_SPLITS = 200
"""Replicas whose split is kept."""


class TerminalSplit(BaseModel, defer_build=True):
    """Two sessions of a replica that are shown together."""

    first: UUID
    second: UUID
    beside: bool
    """Whether the second is to the right of the first where there is room; else it is below."""


class TerminalMemory:
    """Names and selection of terminals, kept while the cockpit is open. Splits are kept on the disk."""

    def __init__(self, disk: "ClientDisk") -> None:
        self._disk = disk
        self._splits = disk.splits()
        self.names: dict[UUID, str] = {}
        """Names given by the person, by session."""
        self.shown: dict[UUID, UUID] = {}
        """The session chosen last, by replica."""

    def name(self, session_id: UUID, name: str) -> None:
        """Name a session; an empty name removes the name."""
        if name:
            self.names[session_id] = name
        else:
            self.names.pop(session_id, None)

    def split(self, replica_id: UUID) -> TerminalSplit | None:
        """Return the terminals of a replica that are shown together."""
        return self._splits.get(replica_id)

    def keep_split(self, replica_id: UUID, split: TerminalSplit | None) -> None:
        """Keep a replica's split, or that there is none."""
        if split == self._splits.get(replica_id):
            return
        self._splits.pop(replica_id, None)
        if split is not None:
            self._splits[replica_id] = split
        for oldest in list(self._splits)[:-MOST_SPLITS]:
            del self._splits[oldest]
        with suppress(OSError):
            self._disk.save_splits(self._splits)


class TerminalLink:
    """One session of one replica. `close` stops sending keys; the session itself continues."""

    def __init__(self, client: "Client", replica_id: UUID, session: "TerminalSession") -> None:
        self._client = client
        self.replica_id = replica_id
        self.session = session
        self._keyboard: Keyboard | None = None

    async def items(self) -> AsyncGenerator[TerminalItem]:
        """Yield the output from the retained tail on, without a gap or a repeat.

        Raises:
            ClientError: the session has ended, or the service refuses.
        """
        stream = self._client.terminals.stream(self.replica_id, self.session.id)
        async with aclosing(stream):
            async for item in stream:
                yield item

    async def send(self, data: str) -> None:
        """Type text; kept while the connection is lost, and sent in order.

        Raises:
            ClientError: the terminal has ended.
        """
        if self._keyboard is None:
            keyboard = self._client.terminals.keyboard(self.replica_id, self.session.id)
            self._keyboard = await keyboard.__aenter__()
        self._keyboard.type(data)

    async def resize(self, cols: int, rows: int) -> None:
        """Resize the terminal.

        Raises:
            ClientError: refused or unreachable.
        """
        await self._client.terminals.resize(self.replica_id, self.session.id, cols, rows)

    async def close(self) -> None:
        """Close the keyboard."""
        keyboard, self._keyboard = self._keyboard, None
        if keyboard is not None:
            await keyboard.aclose()
