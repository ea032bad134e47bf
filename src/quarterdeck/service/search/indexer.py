"""Adds the finished turns of chats to the full-text index."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, cast

from cachetools import LRUCache
from pydantic_core import from_json
from sqlalchemy import Connection, bindparam, select

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.db.tables import events
from quarterdeck.service.errors import DatabaseClosedError
from quarterdeck.service.event_rows import PIECEMEAL, StoredEvent, first_rows
from quarterdeck.service.formats import moment_text, storable
from quarterdeck.service.search.query import words_of
from quarterdeck.service.search.rows import (
    NewText,
    NewTexts,
    add_texts,
    searched_index,
    unsearched_chats,
)
from quarterdeck.wire.events import EventType
from quarterdeck.wire.history import AgentEventType

log = logging.getLogger(__name__)

_GAP = re.compile(r"\s")
PIECE = 16_000
"""Most characters of one indexed text; a longer one is indexed in pieces."""
PLACES = 255
"""PostgreSQL keeps so many places of a word in a text; it would find no phrase after them."""
TURN_CHARACTERS = 8 << 20
"""Of a turn with more, the rest is not found."""
EVENTS_AT_ONCE = 1_000
MOST_WAITING = 1_000
"""How many chats of one replica may wait to be indexed."""
CHATS_REMEMBERED = 10_000
"""How many chats with an unfinished turn are remembered, with the place up to which they were read."""

_page = (
    select(events.c.chat_history_index, events.c.ts, events.c.payload_json)
    .where(events.c.chat_id == bindparam("of"), events.c.chat_history_index >= bindparam("start"))
    .order_by(events.c.chat_history_index)
    .limit(EVENTS_AT_ONCE)
    .execution_options(**PIECEMEAL)
)


class SearchIndexer:
    """The one writer of the index; started and closed with the service.

    A turn is indexed when it has ended, so a message is found as a whole, whatever the pieces that
    it was streamed in. What an earlier service left is indexed at the start.
    """

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._waiting: dict[str, dict[str, None]] = {}
        """Chats by replica, which take turns."""
        self._unfinished: LRUCache[str, int] = LRUCache(CHATS_REMEMBERED)
        """By chat, the index up to which no turn ends in the events that are not indexed. An engine may
        report ends that did not happen, and reading a long turn again for each would delay other chats."""
        self._heard = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start, first with what is not indexed yet."""
        self._task = asyncio.create_task(self._run(), name="search index")

    async def close(self) -> None:
        """End. What is not indexed then is indexed after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        """Observe the event log."""
        for event in stored:
            if event.type == EventType.CHAT_TURN_COMPLETED:
                chat = from_json(event.payload_json).get("chatId")
                self._add(workspace_id, str(chat))
                self._heard.set()

    def _add(self, workspace_id: str, chat_id: str) -> None:
        chats = self._waiting.setdefault(workspace_id, {})
        if len(chats) < MOST_WAITING:
            chats[chat_id] = None

    def _next(self) -> tuple[str, str]:
        workspace_id = next(iter(self._waiting))
        chats = self._waiting.pop(workspace_id)
        chat_id = next(iter(chats))
        del chats[chat_id]
        if chats:
            self._waiting[workspace_id] = chats
        return workspace_id, chat_id

    async def _run(self) -> None:
        try:
            own = self._context.home_id
            database = self._context.database
            left = await retry_until_stored(
                lambda: database.read(lambda c: unsearched_chats(c, own))
            )
            for workspace_id, chat_id in left:
                self._waiting.setdefault(workspace_id, {})[chat_id] = None
            while True:
                while self._waiting:
                    workspace_id, chat_id = self._next()
                    if await retry_until_stored(partial(self._index, chat_id)):
                        self._waiting.setdefault(workspace_id, {})[chat_id] = None
                self._heard.clear()
                await self._heard.wait()
        except DatabaseClosedError:
            log.debug("The database is closed: indexing ends.")

    async def _index(self, chat_id: str) -> bool:
        """Index some finished turns of a chat that are not indexed; return whether there may be more."""
        database, known = self._context.database, self._unfinished.pop(chat_id, 0)
        found, unfinished = await database.read(lambda c: _next_turns(c, chat_id, known))
        if found is None:
            self._unfinished[chat_id] = unfinished
            return False
        return await database.write(partial(add_texts, chat_id=chat_id, new=found))


def _next_turns(connection: Connection, chat_id: str, known: int) -> tuple[NewTexts | None, int]:
    """Return the texts of the next finished turns that are not indexed; None when there are none.

    Of a long history they are some turns, so that none of the steps holds the database for long.
    Without any, the second value is up to where events were read: `known` at the next call.
    """
    start = searched_index(connection, chat_id)
    if start is None:
        return None, 0
    if known > start:
        place, ends = known, False
        while not ends and (page := _events(connection, chat_id, place)):
            place = page[-1].chat_history_index + 1
            ends = any(
                _event(row.payload_json).get("type") == AgentEventType.TURN_RESULT for row in page
            )
        if not ends:
            return None, place
    turn, texts = TurnTexts(), list[NewText]()
    place = end = start
    while page := _events(connection, chat_id, place):
        for index, ts, payload in page:
            place = index + 1
            if turn.add(index, ts, _event(payload)):
                texts += turn.texts()
                turn, end = TurnTexts(), place
        if end > start:
            break
    return (NewTexts(start, end, texts) if end > start else None), place


def _events(connection: Connection, chat_id: str, start: int) -> list[Any]:
    return first_rows(connection.execute(_page, {"of": chat_id, "start": start}))


class TurnTexts:
    """The texts of one turn, from its events in order."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], tuple[int, str, list[str]]] = {}
        self._unnamed = 0
        self._size = 0

    def add(self, index: int, ts: str, event: dict[str, Any]) -> bool:
        """Add an event, stored at `ts`; return whether the turn ends with it."""
        ts = _written_at(event) or ts
        payload = _object(event.get("payload"))
        match event.get("type"):
            case AgentEventType.USER_MESSAGE:
                self._append("user", str(index), index, ts, payload.get("text"))
            case AgentEventType.SESSION_UPDATE:
                self._update(index, ts, payload)
            case AgentEventType.TURN_RESULT:
                return True
            case _:
                pass
        return False

    def texts(self) -> list[NewText]:
        """Return what was written, in order, long texts in pieces."""
        return [
            NewText(role, index, ts, piece)
            for (role, _), (index, ts, parts) in self._texts.items()
            for piece in _pieces(storable("".join(parts)).strip())
        ]

    def _update(self, index: int, ts: str, payload: dict[str, Any]) -> None:
        match payload.get("sessionUpdate"):
            case "agent_message_chunk":
                text = _object(payload.get("content")).get("text")
                name = payload.get("messageId") or self._unnamed
                self._append("agent", str(name), index, ts, text)
            case "tool_call" | "tool_call_update":
                self._unnamed = index  # a message without an id ends here
                if payload.get("title"):
                    key = ("tool", str(payload.get("toolCallId")))
                    at, since, _ = self._texts.get(key, (index, ts, []))
                    self._texts[key] = (at, since, [str(payload["title"])])
            case _:
                pass

    def _append(self, role: str, name: str, index: int, ts: str, text: object) -> None:
        if isinstance(text, str) and self._size < TURN_CHARACTERS:
            self._size += len(text)
            self._texts.setdefault((role, name), (index, ts, []))[2].append(text)


def _pieces(text: str, most: int = PIECE) -> Iterator[str]:
    while text:
        cut = len(text)
        if cut > most:
            gaps = list(_GAP.finditer(text, most // 2, most))
            cut = gaps[-1].end() if gaps else most
        piece, text = text[:cut], text[cut:]
        if max(Counter(words_of(piece)).values(), default=0) > PLACES:
            yield from _pieces(piece, cut // 2)
        else:
            yield piece


def _written_at(event: dict[str, Any]) -> str | None:
    """Return the agent's own time of an event, by which a reader finds it in the transcript."""
    try:
        return moment_text(datetime.fromisoformat(str(event.get("timestamp"))))
    except (ValueError, OverflowError):
        return None


def _event(payload_json: str) -> dict[str, Any]:
    return _object(_object(from_json(payload_json)).get("event"))


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
