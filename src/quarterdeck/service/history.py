"""A page of history, written as JSON piece by piece.

Events go from the database to the answer without becoming models: a history may have a million of
them, and the full one is asked for by leaving the limit out.
"""

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection

from quarterdeck.service.cursors import HistoryCursor, decode
from quarterdeck.service.db.database import Database
from quarterdeck.service.opaque import encode
from quarterdeck.service.records.history import (
    Thread,
    find_thread,
    native_chat,
    read_canceled,
    read_payloads,
    read_senders,
)
from quarterdeck.service.records.turns import TurnPlaces
from quarterdeck.service.transcripts import TurnFold
from quarterdeck.wire.history import AgentEventType
from quarterdeck.wire.messages import Sender

EVENTS_AT_ONCE = 1000


@dataclass(frozen=True)
class HistoryQuery:
    """The page that is asked for. A cursor goes before `before_event` and `before_turn`."""

    chat_id: str | None = None
    limit: int | None = None
    before_event: int | None = None
    before_turn: int | None = None
    before_cursor: str | None = None


@dataclass(frozen=True)
class TurnRange:
    """Turns of a chat from the index `first` on: where each begins and ends in its history."""

    chat_id: str
    first: int
    spans: list[tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.spans)


@dataclass
class HistoryPage:
    """The events at the places from `start` to before `end` of a thread."""

    thread: Thread
    start: int
    end: int
    canceled: list[str]
    turns: TurnRange | None = None
    """The turns that ended in the page, or go on at its end; None where agents have none."""
    senders: list[Sender] = field(default_factory=list[Sender])

    @property
    def thread_id(self) -> str:
        """The chat when filtered by one, else the replica."""
        return self.thread.chat_id or self.thread.workspace_id

    @property
    def short(self) -> bool:
        """Whether one read has it all."""
        return self.end - self.start <= EVENTS_AT_ONCE and not self.turns


async def open_page(
    database: Database, places: TurnPlaces, workspace_id: str, query: HistoryQuery
) -> HistoryPage | None:
    """Finds the page's bounds; None when the workspace or chat is not there.

    Raises:
        ApiError: INVALID_REQUEST for a bad cursor.
    """
    thread_id = query.chat_id or workspace_id
    before, before_turn = query.before_event, query.before_turn
    if query.before_cursor is not None:
        cursor = decode(query.before_cursor, thread_id)
        before, before_turn = cursor.before_event, cursor.before_turn

    def run(connection: Connection) -> HistoryPage | None:
        thread = find_thread(connection, workspace_id, query.chat_id)
        if thread is None:
            return None
        end = thread.total if before is None else min(before, thread.total)
        start = 0 if query.limit is None else max(0, end - query.limit)
        page = HistoryPage(thread, start, end, read_canceled(connection, thread))
        if (chat_id := native_chat(connection, thread)) is not None:
            begins = places.find(connection, chat_id, thread.total)
            most = query.limit if before is None else None
            page.turns = turns_of_page(chat_id, begins, page, before_turn, most)
        return page

    return await database.read(run)


async def written(database: Database, page: HistoryPage) -> AsyncGenerator[bytes]:
    """The answer's body. The events come first: what is told about them is known at their end."""
    yield b'{"events":['
    for first in range(page.start, page.end, EVENTS_AT_ONCE):
        last = min(first + EVENTS_AT_ONCE, page.end)
        body, senders = await database.read(_part(page.thread, first, last))
        page.senders += senders
        yield b"," + body if first > page.start else body
    yield b"],"
    if page.turns is not None:
        yield b'"agentAspTranscript":{"turns":['
        for number, (first, last) in enumerate(page.turns.spans):
            turn = json.dumps(await _turn(database, page, first, last), separators=(",", ":"))
            yield (b"," if number else b"") + turn.encode()
        yield b']},"turnsStartIndex":%d,' % page.turns.first
    yield json.dumps(_rest(page), separators=(",", ":")).encode()[1:]


async def _turn(database: Database, page: HistoryPage, first: int, last: int) -> dict[str, Any]:
    fold, turns = TurnFold(), page.turns
    assert turns is not None
    thread = replace(page.thread, chat_id=turns.chat_id)
    for start in range(first, last, EVENTS_AT_ONCE):
        end = min(start + EVENTS_AT_ONCE, last)
        for text in await database.read(_texts(thread, start, end)):
            fold.add(_event(text))
    return fold.turn()


def _texts(thread: Thread, start: int, end: int) -> Callable[[Connection], list[str]]:
    return lambda connection: read_payloads(connection, thread, start, end)


def turns_of_page(
    chat_id: str, begins: list[int], page: HistoryPage, before_turn: int | None, most: int | None
) -> TurnRange:
    """The turns whose last event is in the page: so the newest page has the newest turn whole, and
    pages together have each turn once.

    Below `before_turn`; where that alone says which page is meant, `most` of them.
    """
    ends = [*begins[1:], page.thread.total]
    spans = list(zip(begins, ends, strict=False))  # without a turn there is no end of one either
    if before_turn is not None and most is not None:
        last = min(before_turn, len(spans))
        first = max(0, last - most)
        return TurnRange(chat_id, first, spans[first:last])
    first = sum(1 for _, end in spans if end <= page.start)
    last = sum(1 for _, end in spans if end <= page.end)
    last = last if before_turn is None else min(last, before_turn)
    return TurnRange(chat_id, min(first, last), spans[first:last])


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
    turn = page.turns.first if page.turns is not None else None
    cursor = encode(HistoryCursor(thread=page.thread_id, before_event=page.start, before_turn=turn))
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
