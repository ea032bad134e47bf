"""The log's rows."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, CursorResult, bindparam, delete, func, select

from quarterdeck.service.db.tables import events, workspaces
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.events import EventType, TurnDelta
from quarterdeck.wire.history import AgentEvent, AgentEventType, GitOperationPayload


@dataclass(frozen=True)
class NewEvent:
    """An event to append. `payload` has its wire form (camelCase, JSON values only).

    `ts` is the current time when None; `id` a new UUID when None.
    """

    type: str
    payload: dict[str, Any]
    ts: datetime | None = None
    id: str | None = None


def git_operation(chat_id: str, payload: GitOperationPayload) -> NewEvent:
    """Return an event of a chat's history that reports an operation of the service."""
    event = AgentEvent(
        timestamp=utc_now(),
        type=AgentEventType.GIT_OPERATION,
        payload=payload.model_dump(mode="json", by_alias=True),
    )
    delta = TurnDelta(chat_id=chat_id, event=event)
    return NewEvent(EventType.CHAT_TURN_DELTA, delta.model_dump(mode="json", by_alias=True))


@dataclass(frozen=True)
class StoredEvent:
    """One event of the log. `payload_json` is its payload's text, as stored."""

    index: int
    id: str
    ts: str
    type: str
    payload_json: str

    def frame(self) -> bytes:
        """Return the event as one message of the stream, its index in the `id:` line."""
        return (
            f'id: {self.index}\ndata: {{"id":"{self.id}","ts":"{self.ts}",'
            f'"type":{_quoted(self.type)},"payload":{self.payload_json}}}\n\n'
        ).encode()


@lru_cache(maxsize=256)
def _quoted(text: str) -> str:
    return json.dumps(text)


READ_CHARACTERS = 8 << 20
"""Most characters of payloads that are read at once, unless the first one is longer."""
PIECEMEAL = {"stream_results": True, "max_row_buffer": 16}
"""Options of statements whose rows `first_rows` reads: the database's server keeps what is not read."""


def first_rows(rows: CursorResult[*tuple[Any, ...]]) -> list[Any]:
    """Return as many rows as one read may have, at least one if there is any.

    Engines decide how long payloads are.
    """
    read: list[Any] = []
    size = 0
    for row in rows:
        read.append(row)
        size += len(row.payload_json)
        if size > READ_CHARACTERS:
            break
    rows.close()
    return read


_after = (
    select(events.c.index, events.c.id, events.c.ts, events.c.type, events.c.payload_json)
    .where(events.c.workspace_id == bindparam("of"), events.c.index > bindparam("after"))
    .order_by(events.c.index)
    .limit(bindparam("most"))
    .execution_options(**PIECEMEAL)
)
_next = select(workspaces.c.next_event_index).where(workspaces.c.id == bindparam("of"))


def read_after(
    connection: Connection, workspace_id: str, index: int, limit: int
) -> list[StoredEvent]:
    """Return the next events with a higher index, in order: up to `limit`, fewer of long ones."""
    rows = connection.execute(_after, {"of": workspace_id, "after": index, "most": limit})
    return [StoredEvent(*row) for row in first_rows(rows)]


def last_index(connection: Connection, workspace_id: str) -> int:
    """Return the index of the newest event; 0 when there is none, or no such workspace."""
    following = connection.execute(_next, {"of": workspace_id}).scalar()
    return 0 if following is None else following - 1


REMOVED_CHARACTERS = 4 << 20
"""About how many characters are removed at once: the database needs as much free disk meanwhile, and
nobody else can write."""
_ROW_CHARACTERS = 200
"""About how many characters an event has besides its payload."""


def remove_oldest(connection: Connection, workspace_id: str) -> bool:
    """Remove the oldest events of a long history; return False when only a part is left of it."""
    lengths = connection.execute(
        select(events.c.index, func.length(events.c.payload_json))
        .where(events.c.workspace_id == workspace_id)
        .order_by(events.c.index)
        .execution_options(**PIECEMEAL)
    )
    size = 0
    for index, length in lengths:
        size += length + _ROW_CHARACTERS
        if size > REMOVED_CHARACTERS:
            lengths.close()
            old = (events.c.workspace_id == workspace_id, events.c.index <= index)
            connection.execute(delete(events).where(*old))
            return True
    return False
