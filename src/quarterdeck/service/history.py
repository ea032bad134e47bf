"""A page of history, written as JSON piece by piece.

Events go from the database to the answer without becoming models: a history may have a million of
them, and the full one is asked for by leaving the limit out.
"""

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection

from quarterdeck.service.cursors import HistoryCursor, decode, encode
from quarterdeck.service.db.database import Database
from quarterdeck.service.records.history import (
    Thread,
    find_thread,
    read_canceled,
    read_payloads,
    read_senders,
)
from quarterdeck.wire.history import AgentEventType
from quarterdeck.wire.messages import Sender

EVENTS_AT_ONCE = 1000


@dataclass(frozen=True)
class HistoryQuery:
    """The page that is asked for. A cursor goes before `before_event`."""

    chat_id: str | None = None
    limit: int | None = None
    before_event: int | None = None
    before_cursor: str | None = None


@dataclass
class HistoryPage:
    """The events at the places from `start` to before `end` of a thread."""

    thread: Thread
    start: int
    end: int
    canceled: list[str]
    senders: list[Sender] = field(default_factory=list[Sender])

    @property
    def thread_id(self) -> str:
        """The chat when filtered by one, else the replica."""
        return self.thread.chat_id or self.thread.workspace_id

    @property
    def short(self) -> bool:
        """Whether one read has it all."""
        return self.end - self.start <= EVENTS_AT_ONCE


async def open_page(
    database: Database, workspace_id: str, query: HistoryQuery
) -> HistoryPage | None:
    """Finds the page's bounds; None when the workspace or chat is not there.

    Raises:
        ApiError: INVALID_REQUEST for a bad cursor.
    """
    thread_id = query.chat_id or workspace_id
    before = query.before_event
    if query.before_cursor is not None:
        before = decode(query.before_cursor, thread_id).before_event

    def run(connection: Connection) -> HistoryPage | None:
        thread = find_thread(connection, workspace_id, query.chat_id)
        if thread is None:
            return None
        end = thread.total if before is None else min(before, thread.total)
        start = 0 if query.limit is None else max(0, end - query.limit)
        return HistoryPage(thread, start, end, read_canceled(connection, thread))

    return await database.read(run)


async def written(database: Database, page: HistoryPage) -> AsyncGenerator[bytes]:
    """The answer's body. The events come first: what is told about them is known at their end."""
    yield b'{"events":['
    for first in range(page.start, page.end, EVENTS_AT_ONCE):
        last = min(first + EVENTS_AT_ONCE, page.end)
        body, senders = await database.read(_part(page.thread, first, last))
        page.senders += senders
        yield b"," + body if first > page.start else body
    yield b"]," + json.dumps(_rest(page), separators=(",", ":")).encode()[1:]


def _part(
    thread: Thread, first: int, last: int
) -> Callable[[Connection], tuple[bytes, list[Sender]]]:
    def run(connection: Connection) -> tuple[bytes, list[Sender]]:
        found = [_event(text) for text in read_payloads(connection, thread, first, last)]
        said = [event["payload"]["messageId"] for event in found if _is_said(event)]
        senders = read_senders(connection, thread.workspace_id, said)
        # The list's own brackets go: pages are joined into one.
        return json.dumps(found, separators=(",", ":")).encode()[1:-1], senders

    return run


def _event(payload_text: str) -> dict[str, Any]:
    return from_json(payload_text)["event"]


def _is_said(event: dict[str, Any]) -> bool:
    payload = event.get("payload")
    return (
        event.get("type") == AgentEventType.USER_MESSAGE
        and isinstance(payload, dict)
        and "messageId" in payload
    )


def _rest(page: HistoryPage) -> dict[str, Any]:
    thread = page.thread
    earlier = page.start > 0
    whole = not earlier and page.end == thread.total
    cursor = encode(HistoryCursor(thread=page.thread_id, before_event=page.start))
    senders = [sender.model_dump(mode="json", by_alias=True) for sender in page.senders]
    return {
        "thread_id": page.thread_id,
        "total": thread.total,
        "has_more": earlier,
        **({} if whole else {"eventsStartIndex": page.start}),
        "beforeCursor": cursor if earlier else None,
        "senders": senders,
        "canceledMessageIds": page.canceled,
        "coding_agent": thread.coding_agent,
        "waking": thread.waking,
        "logIndex": thread.log_index,
    }
