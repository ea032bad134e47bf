"""From an engine's journal into the log.

The index of the newest stored entry is kept in the workspace's row and moved in the transaction
that stores entries, so each is stored once, whoever is killed when.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from quarterdeck.engine.link import EngineError, EngineLink, EngineProtocolError
from quarterdeck.service.errors import UnknownWorkspaceError
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.workspaces import (
    change_workspace,
    journal_index_of,
    keep_journal_index,
)
from quarterdeck.service.relay.projections import project, public_payload
from quarterdeck.wire.engine import JournalEntry

BATCH = 512
"""Most entries of one transaction."""

log = logging.getLogger(__name__)

Stored = Callable[[Sequence[JournalEntry]], None]


async def relay(link: EngineLink, event_log: EventLog, workspace_id: str, stored: Stored) -> None:
    """Stores the journal of a link until it ends; what was received by then is stored.

    The first entry that arrives is stored at once, and those that arrive during the write make up
    the next one. `stored` is told of every batch after it is durable.

    Raises:
        UnknownWorkspaceError: the workspace was deleted.
    """
    inbox = _Inbox()
    pump = asyncio.create_task(_pump(link, inbox), name="relay pump")
    try:
        while batch := await inbox.take():
            await until_stored(partial(_store, event_log, workspace_id, batch))
            stored(batch)
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)
    pump.result()


async def _store(event_log: EventLog, workspace_id: str, entries: Sequence[JournalEntry]) -> None:
    await event_log.write(lambda writer: store_entries(writer, workspace_id, entries))


def store_entries(writer: LogWriter, workspace_id: str, entries: Sequence[JournalEntry]) -> int:
    """Stores the entries that are newer than the newest stored one; returns how many.

    Raises:
        UnknownWorkspaceError: the workspace was deleted.
    """
    newest = journal_index_of(writer.connection, workspace_id)
    if newest is None:
        raise UnknownWorkspaceError(f"There is no workspace {workspace_id}.")
    fresh = [entry for entry in entries if entry.index > newest]
    if not fresh:
        return 0
    # Chats first: an event of a chat that is not there yet would have no place in its history.
    columns = project(writer.connection, workspace_id, fresh)
    writer.append(workspace_id, [NewEvent(e.type[:40], public_payload(e), e.ts) for e in fresh])
    activity = columns.pop("last_activity_at", None)
    keep_journal_index(writer.connection, workspace_id, fresh[-1].index, activity)
    if columns:
        change_workspace(writer.connection, workspace_id, **columns)
    return len(fresh)


async def _pump(link: EngineLink, inbox: "_Inbox") -> None:
    try:
        async for entry in link.journal():
            await inbox.put(entry)
    except EngineProtocolError as e:
        log.error("An engine's journal cannot be read: %s", e.message)
    except EngineError:
        return  # the link ended; who asked for it decides what now
    finally:
        inbox.end()


class _Inbox:
    """Entries that arrived and are not stored yet."""

    def __init__(self) -> None:
        self._entries: deque[JournalEntry] = deque()
        self._ended = False
        self._changed = asyncio.Event()

    async def put(self, entry: JournalEntry) -> None:
        while len(self._entries) >= BATCH:
            await self._wait()
        self._entries.append(entry)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def take(self) -> list[JournalEntry]:
        """All that waits, once there is something; empty at the end."""
        while not self._entries and not self._ended:
            await self._wait()
        taken = list(self._entries)
        self._entries.clear()
        self._changed.set()
        return taken

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()
