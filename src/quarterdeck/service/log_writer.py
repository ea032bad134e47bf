"""Appends events inside a running write: gives indices, keeps the counters, stores."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, bindparam, insert, update

from quarterdeck.service.automations.following import follow_events
from quarterdeck.service.db.tables import chats, events, workspaces
from quarterdeck.service.errors import UnknownWorkspaceError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.outward.webhooks import store_calls
from quarterdeck.service.records.events import NewEvent, StoredEvent
from quarterdeck.service.storable import NUL, storable
from quarterdeck.wire.events import EventType

_count_up = (
    update(workspaces)
    .where(workspaces.c.id == bindparam("of"))
    .values(
        next_event_index=workspaces.c.next_event_index + bindparam("all"),
        next_history_index=workspaces.c.next_history_index + bindparam("agent"),
    )
    .returning(workspaces.c.next_event_index, workspaces.c.next_history_index)
)
_count_chat_up = (
    update(chats)
    .where(chats.c.id == bindparam("of"), chats.c.workspace_id == bindparam("in"))
    .values(next_history_index=chats.c.next_history_index + bindparam("agent"))
    .returning(chats.c.next_history_index)
)
_store = insert(events)


class LogWriter:
    """The event log within one write. What was appended is in `stored`, in order."""

    def __init__(self, connection: Connection, clock: Callable[[], datetime]) -> None:
        self.connection = connection
        self.stored: list[tuple[str, list[StoredEvent]]] = []
        self._clock = clock

    def append(self, workspace_id: str, new: Sequence[NewEvent]) -> list[int]:
        """Appends events; they are published after the commit. Returns their indices.

        Raises:
            UnknownWorkspaceError: no workspace has this id (it was deleted).
        """
        if not new:
            return []
        of_chats = [_chat_of(event) for event in new]
        first, first_history = self._reserve(workspace_id, len(new), of_chats)
        places = self._places(workspace_id, of_chats, first_history)
        stored = [self._stored(first + n, event) for n, event in enumerate(new)]
        rows = [_row(workspace_id, s, place) for s, place in zip(stored, places, strict=True)]
        self.connection.execute(_store, rows)
        now = moment_text(self._clock())
        store_calls(self.connection, workspace_id, new, now)
        follow_events(self.connection, workspace_id, new, now)
        self.stored.append((workspace_id, stored))
        return [event.index for event in stored]

    def _reserve(
        self, workspace_id: str, count: int, of_chats: list[str | None]
    ) -> tuple[int, int]:
        """First free indices, of the log and of the workspace's history, now taken.

        On a database with several writers the updated row is also the lock that keeps readers from
        seeing a later index before an earlier one.
        """
        agent = sum(chat is not None for chat in of_chats)
        row = self.connection.execute(
            _count_up, {"of": workspace_id, "all": count, "agent": agent}
        ).first()
        if row is None:
            raise UnknownWorkspaceError(f"There is no workspace {workspace_id}.")
        return row.next_event_index - count, row.next_history_index - agent

    def _places(
        self, workspace_id: str, of_chats: list[str | None], first: int
    ) -> list[tuple[str | None, int | None, int | None]]:
        """For each event: its chat, its place in the workspace's history, and in the chat's."""
        following = {
            chat: self._reserve_chat(workspace_id, chat, of_chats.count(chat))
            for chat in dict.fromkeys(of_chats)
            if chat is not None
        }
        places: list[tuple[str | None, int | None, int | None]] = []
        for chat in of_chats:
            if chat is None:
                places.append((None, None, None))
                continue
            place = following[chat]
            places.append((chat, first, place))
            first += 1
            following[chat] = None if place is None else place + 1
        return places

    def _reserve_chat(self, workspace_id: str, chat: str, count: int) -> int | None:
        following = self.connection.execute(
            _count_chat_up, {"of": chat, "in": workspace_id, "agent": count}
        ).scalar()
        return None if following is None else following - count

    def _stored(self, index: int, event: NewEvent) -> StoredEvent:
        ts = moment_text(event.ts or self._clock())
        # Pure ASCII: some readers of event streams split lines at Unicode's own separators.
        payload = json.dumps(event.payload, separators=(",", ":"))
        return StoredEvent(index, event.id or str(uuid4()), ts, storable(event.type), payload)


def _chat_of(event: NewEvent) -> str | None:
    """The chat whose history an event belongs to, None when it is no history."""
    chat = event.payload.get("chatId") if event.type == EventType.CHAT_TURN_DELTA else None
    # What no chat is named is no chat's history, and may hold what no column can.
    return chat if isinstance(chat, str) and NUL not in chat else None


def _row(
    workspace_id: str, event: StoredEvent, place: tuple[str | None, int | None, int | None]
) -> dict[str, Any]:
    chat_id, history_index, chat_history_index = place
    return {
        "workspace_id": workspace_id,
        "index": event.index,
        "id": event.id,
        "ts": event.ts,
        "type": event.type,
        "payload_json": event.payload_json,
        "chat_id": chat_id,
        "history_index": history_index,
        "chat_history_index": chat_history_index,
    }
