"""The log's rows."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, select

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


_after = (
    select(events.c.index, events.c.id, events.c.ts, events.c.type, events.c.payload_json)
    .where(events.c.workspace_id == bindparam("of"), events.c.index > bindparam("after"))
    .order_by(events.c.index)
    .limit(bindparam("most"))
)
_next = select(workspaces.c.next_event_index).where(workspaces.c.id == bindparam("of"))


def read_after(
    connection: Connection, workspace_id: str, index: int, limit: int
) -> list[StoredEvent]:
    """Return up to `limit` events with a higher index, in order."""
    rows = connection.execute(_after, {"of": workspace_id, "after": index, "most": limit})
    return [StoredEvent(*row) for row in rows]


def last_index(connection: Connection, workspace_id: str) -> int:
    """Return the index of the newest event; 0 when there is none, or no such workspace."""
    following = connection.execute(_next, {"of": workspace_id}).scalar()
    return 0 if following is None else following - 1
