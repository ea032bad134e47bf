"""A page of history, written as JSON piece by piece.

Events go from the database to the answer without becoming models: a history may have a million of
them, and a request without a limit asks for all.
"""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, cast

from pydantic_core import from_json
from sqlalchemy import Connection, String, bindparam, func, or_, select

from quarterdeck.service.chats.rows import TurnPlaces
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import chats, events, messages, workspaces
from quarterdeck.service.event_rows import PIECEMEAL, first_rows
from quarterdeck.service.formats import HistoryCursor, decode, encode_opaque
from quarterdeck.wire.base import iso_text
from quarterdeck.wire.chats import Sender
from quarterdeck.wire.history import AgentEventType
from quarterdeck.wire.replicas import WorkspaceStatus

NATIVE_AGENT = "codex"
"""The agent with a native transcript."""

Item = dict[str, Any]

_STATUS = {"cancelled": "interrupted", "failed": "failed"}
_CALL_STATUS = {"completed": "completed", "failed": "failed"}
_KINDS = {"execute": "commandExecution", "edit": "fileChange", "fetch": "webSearch"}


class _Pieces(list[str]):
    """A text that grows: joined at the end, because each `+=` would copy it."""


class TurnFold:
    """One turn of codex's native transcript, built from its events in order (docs/interface.md 5).

    Nothing is stored for it: a finished call carries codex's own item, and everything else that
    codex reports follows from the events. The id of a turn is that of its message.
    """

    def __init__(self) -> None:
        self._id = ""
        self._items: dict[str, Item] = {}
        self._status = "inProgress"
        self._error: Item | None = None
        self._started: object = None
        self._completed: object = None

    def add(self, event: Item) -> None:
        """Add the next event; one that contradicts those before it is left out."""
        payload = _object(event.get("payload"))
        with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            match event.get("type"):
                case AgentEventType.USER_MESSAGE:
                    self._add_message(payload, event.get("timestamp"))
                case AgentEventType.TURN_RESULT:
                    self._end(payload, event.get("timestamp"))
                case AgentEventType.SESSION_UPDATE:
                    self._update(payload)
                case _:
                    return

    def turn(self) -> Item:
        """Return the turn as far as it is known."""
        return {
            "id": self._id,
            "items": [
                {name: _whole(value) for name, value in item.items()}
                for item in self._items.values()
            ],
            "status": self._status,
            **({"error": self._error} if self._error else {}),
            **({"startedAt": self._started} if self._started else {}),
            **({"completedAt": self._completed} if self._completed else {}),
        }

    def _add_message(self, payload: Item, at: object) -> None:
        message_id = str(payload.get("messageId"))
        if not payload.get("steered"):
            self._id, self._started = message_id, _wire_time(at)
        content: list[Item] = [{"type": "text", "text": payload.get("text", "")}]
        for image in _objects(payload.get("images")):
            content.append({"type": "image", "url": _object(image.get("source")).get("url")})
        self._items[message_id] = {"type": "userMessage", "id": message_id, "content": content}

    def _end(self, payload: Item, at: object) -> None:
        reason, self._completed = str(payload.get("stopReason")), _wire_time(at)
        self._status = _STATUS.get(reason, "completed")
        if payload.get("error"):
            self._error = {"message": payload["error"]}

    def _update(self, payload: Item) -> None:
        match payload.get("sessionUpdate"):
            case "agent_message_chunk":
                self._add_text(payload)
            case "agent_thought_chunk":
                self._thought(payload)
            case "tool_call" | "tool_call_update":
                self._called(payload)
            case _:
                return

    def _add_text(self, payload: Item) -> None:
        kind = "plan" if _object(payload.get("_meta")).get("item") == "plan" else "agentMessage"
        item = self._item(payload.get("messageId"), {"type": kind, "text": _Pieces()})
        item["text"].append(_text(payload))

    def _thought(self, payload: Item) -> None:
        """Note that the parts of a thought are named after it: `ID.NUMBER`."""
        name = payload.get("messageId")
        id, _, part = name.partition(".") if isinstance(name, str) else (None, "", "")
        item = self._item(id, {"type": "reasoning", "summary": [], "content": []})
        texts: list[_Pieces] = item["content" if part.startswith("raw") else "summary"]
        number = int(part.rpartition(".")[2]) if part.rpartition(".")[2].isdecimal() else 0
        if number >= len(texts):
            texts.append(_Pieces())
        texts[min(number, len(texts) - 1)].append(_text(payload))

    def _called(self, payload: Item) -> None:
        id = str(payload.get("toolCallId"))
        native = _object(payload.get("rawOutput"))
        if isinstance(native.get("type"), str):
            self._items[id] = native
            return
        kind = _KINDS.get(str(payload.get("kind")), "mcpToolCall")
        item = self._item(id, {"type": kind, "status": "inProgress"})
        if status := _CALL_STATUS.get(str(payload.get("status"))):
            item["status"] = status
        arguments = _object(payload.get("rawInput"))
        match item["type"]:
            case "commandExecution":
                item |= {name: arguments[name] for name in ("command", "cwd") if name in arguments}
                item |= {name: item.get(name) for name in ("exitCode", "durationMs")}
                item["aggregatedOutput"] = _shown(payload) or item.get("aggregatedOutput")
            case "fileChange":
                paths = [place.get("path") for place in _objects(payload.get("locations"))]
                item["changes"] = [{"path": path} for path in paths] or item.get("changes", [])
            case "webSearch":
                item["query"] = payload.get("title") or item.get("query")
            case _:
                item["tool"] = payload.get("title") or item.get("tool")
                item["arguments"] = payload.get("rawInput") or item.get("arguments")

    def _item(self, id: object, new: Item) -> Item:
        """Return the item with an id; a part without one belongs to the item before it."""
        name = id if isinstance(id, str) else f"{self._id}.{len(self._items)}"
        if name not in self._items:
            self._items[name] = {"type": new.pop("type"), "id": name, **new}
        return self._items[name]


def _whole(value: object) -> object:
    """Return the value of an item's field, with texts joined."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, list):
        parts = cast("list[object]", value)
        return ["".join(part) if isinstance(part, _Pieces) else part for part in parts]
    return value


def _text(payload: Item) -> str:
    return str(_object(payload.get("content")).get("text") or "")


def _shown(payload: Item) -> str:
    parts = _objects(payload.get("content"))
    return "".join(str(_object(part.get("content")).get("text") or "") for part in parts)


def _object(value: object) -> Item:
    return cast("Item", value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[Item]:
    return (
        [_object(item) for item in cast("list[object]", value)] if isinstance(value, list) else []
    )


def _wire_time(timestamp: object) -> str | None:
    """Return the time of an event as ISO 8601 text (docs/interface.md 11), or None."""
    try:
        return iso_text(datetime.fromisoformat(str(timestamp)))
    except ValueError:
        return None


IDS_AT_ONCE = 500


@dataclass(frozen=True)
class HistoryScope:
    """The source of a history: one chat, or the whole workspace (`chat_id` None).

    `total` and `log_index` are of the same moment.
    """

    workspace_id: str
    chat_id: str | None
    total: int
    coding_agent: str | None
    waking: bool
    log_index: int


_workspace = select(
    workspaces.c.next_history_index,
    workspaces.c.coding_agent,
    workspaces.c.status,
    workspaces.c.wake_wanted,
    workspaces.c.next_event_index,
).where(workspaces.c.id == bindparam("of"))
_chat = select(chats.c.next_history_index, chats.c.provider).where(
    chats.c.id == bindparam("of"),
    chats.c.workspace_id == bindparam("in"),
    chats.c.deletion.is_(None),
)
_only = select(chats.c.id, chats.c.provider, chats.c.next_history_index).where(
    chats.c.workspace_id == bindparam("of"), chats.c.deletion.is_(None)
)
_of_workspace = (
    select(events.c.payload_json, events.c.history_index.label("place"))
    .where(
        events.c.workspace_id == bindparam("of"),
        events.c.history_index >= bindparam("start"),
        events.c.history_index < bindparam("end"),
    )
    .order_by(events.c.history_index)
    .execution_options(**PIECEMEAL)
)
_of_chat = (
    select(events.c.payload_json, events.c.chat_history_index.label("place"))
    .where(
        events.c.chat_id == bindparam("of"),
        events.c.chat_history_index >= bindparam("start"),
        events.c.chat_history_index < bindparam("end"),
    )
    .order_by(events.c.chat_history_index)
    .execution_options(**PIECEMEAL)
)
_sizes = (
    select(
        events.c.chat_history_index.label("place"),
        func.length(events.c.payload_json).label("size"),
    )
    .where(
        events.c.chat_id == bindparam("of"),
        events.c.chat_history_index >= bindparam("start"),
        events.c.chat_history_index < bindparam("end"),
    )
    .order_by(events.c.chat_history_index.desc())
)
_canceled = (
    select(messages.c.id)
    .where(
        messages.c.workspace_id == bindparam("of"),
        messages.c.state == "canceled",
        or_(bindparam("in", type_=String).is_(None), messages.c.chat_id == bindparam("in")),
    )
    .order_by(messages.c.position)
)


def find_thread(
    connection: Connection, workspace_id: str, chat_id: str | None
) -> HistoryScope | None:
    """Return the current thread; None when there is no such workspace or chat."""
    row = connection.execute(_workspace, {"of": workspace_id}).first()
    if row is None:
        return None
    total, coding_agent = row.next_history_index, row.coding_agent
    if chat_id is not None:
        chat = connection.execute(_chat, {"of": chat_id, "in": workspace_id}).first()
        if chat is None:
            return None
        total, coding_agent = chat.next_history_index, chat.provider
    waking = bool(row.wake_wanted) and row.status != WorkspaceStatus.ACTIVE
    return HistoryScope(
        workspace_id, chat_id, total, coding_agent, waking, row.next_event_index - 1
    )


def native_chat(connection: Connection, thread: HistoryScope) -> str | None:
    """Return the only chat of a thread, if its agent has a native transcript.

    A workspace's history is also that of its only chat, as long as it never had another one.
    """
    if thread.coding_agent != NATIVE_AGENT or thread.chat_id is not None:
        return thread.chat_id if thread.coding_agent == NATIVE_AGENT else None
    rows = connection.execute(_only, {"of": thread.workspace_id}).all()
    same = len(rows) == 1 and rows[0].next_history_index == thread.total
    return rows[0].id if same and rows[0].provider == NATIVE_AGENT else None


def read_payloads(
    connection: Connection, thread: HistoryScope, start: int, end: int
) -> tuple[list[str], int]:
    """Return payload texts of `chat.turn.delta` events from `start` on, and where the next ones start.

    Those before `end`, unless they are too long to be read at once.
    """
    statement, of = (
        (_of_workspace, thread.workspace_id)
        if thread.chat_id is None
        else (_of_chat, thread.chat_id)
    )
    end = min(end, start + EVENTS_AT_ONCE)
    rows = first_rows(connection.execute(statement, {"of": of, "start": start, "end": end}))
    return [row.payload_json for row in rows], rows[-1].place + 1 if rows else end


def newest_within(connection: Connection, thread: HistoryScope, count: int, characters: int) -> int:
    """Return where the newest events of a chat start that are neither more nor longer than this."""
    start = max(0, thread.total - count)
    bounds = {"of": thread.chat_id, "start": start, "end": thread.total}
    for row in connection.execute(_sizes, bounds).all():
        characters -= row.size
        if characters < 0:
            return row.place + 1
    return start


def read_senders(
    connection: Connection, workspace_id: str, message_ids: Sequence[str]
) -> list[Sender]:
    """Return who sent the given messages, in their order."""
    senders: dict[str, Sender] = {}
    for first in range(0, len(message_ids), IDS_AT_ONCE):
        statement = select(
            messages.c.sender_user_id,
            messages.c.sender_email,
            messages.c.created_at.label("recorded_at"),
            messages.c.id.label("message_id"),
        ).where(
            messages.c.workspace_id == workspace_id,
            messages.c.id.in_(message_ids[first : first + IDS_AT_ONCE]),
        )
        rows = connection.execute(statement).mappings()
        senders |= {row["message_id"]: Sender.model_validate(dict(row)) for row in rows}
    return [
        senders[message_id] for message_id in dict.fromkeys(message_ids) if message_id in senders
    ]


def read_canceled(connection: Connection, thread: HistoryScope) -> list[str]:
    """Return the ids of the thread's messages that were canceled in the queue."""
    rows = connection.execute(_canceled, {"of": thread.workspace_id, "in": thread.chat_id})
    return list(rows.scalars())


EVENTS_AT_ONCE = 1000
TURN_CHARACTERS = 32 << 20
"""A turn of a native transcript ends where its events have this many."""


@dataclass(frozen=True)
class HistoryQuery:
    """The requested page. A cursor takes precedence over `before_event` and `before_turn`."""

    chat_id: str | None = None
    limit: int | None = None
    before_event: int | None = None
    before_turn: int | None = None
    before_cursor: str | None = None


@dataclass(frozen=True)
class TurnRange:
    """Turns of a chat from the index `first` on: where each starts and ends in its history."""

    chat_id: str
    first: int
    spans: list[tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.spans)


@dataclass
class HistoryPage:
    """The events at the places from `start` to before `end` of a thread."""

    thread: HistoryScope
    start: int
    end: int
    canceled: list[str]
    turns: TurnRange | None = None
    """The turns that ended in the page, or continue at its end; None where agents have none."""
    senders: list[Sender] = field(default_factory=list[Sender])

    @property
    def thread_id(self) -> str:
        """The chat when filtered by one, else the replica."""
        return self.thread.chat_id or self.thread.workspace_id


async def open_page(
    database: Database, places: TurnPlaces, workspace_id: str, query: HistoryQuery
) -> HistoryPage | None:
    """Find the page's bounds; None when the workspace or chat does not exist.

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
    """Yield the response body. The events come first: their summary is known at their end."""
    yield b'{"events":['
    place, comma = page.start, b""
    while place < page.end:
        body, senders, place = await database.read(_part(page.thread, place, page.end))
        page.senders += senders
        if body:
            yield comma + body
            comma = b","
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
    place, size = first, 0
    while place < last and size < TURN_CHARACTERS:
        texts, place = await database.read(partial(_texts, thread, place, last))
        size += sum(map(len, texts))
        for text in texts:
            fold.add(_event(text))
    return fold.turn()


def _texts(
    thread: HistoryScope, start: int, end: int, connection: Connection
) -> tuple[list[str], int]:
    return read_payloads(connection, thread, start, end)


def turns_of_page(
    chat_id: str, begins: list[int], page: HistoryPage, before_turn: int | None, most: int | None
) -> TurnRange:
    """Return the turns whose last event is in the page.

    So the newest page has the newest turn whole, and pages together have each turn once. Only turns
    below `before_turn` count; where that alone selects the page, `most` of them.
    """
    ends = [*begins[1:], page.thread.total]
    spans = list(zip(begins, ends, strict=False))  # without a turn there is no end either
    if before_turn is not None and most is not None:
        last = min(before_turn, len(spans))
        first = max(0, last - most)
        return TurnRange(chat_id, first, spans[first:last])
    first = sum(1 for _, end in spans if end <= page.start)
    last = sum(1 for _, end in spans if end <= page.end)
    last = last if before_turn is None else min(last, before_turn)
    return TurnRange(chat_id, min(first, last), spans[first:last])


def _part(
    thread: HistoryScope, first: int, last: int
) -> Callable[[Connection], tuple[bytes, list[Sender], int]]:
    def run(connection: Connection) -> tuple[bytes, list[Sender], int]:
        texts, following = read_payloads(connection, thread, first, last)
        page = [_event(text) for text in texts]
        message_ids = [event["payload"]["messageId"] for event in page if _is_user_message(event)]
        senders = read_senders(connection, thread.workspace_id, message_ids)
        # Without the list's brackets: pages are joined into one.
        return json.dumps(page, separators=(",", ":")).encode()[1:-1], senders, following

    return run


def _event(payload_text: str) -> dict[str, Any]:
    return from_json(payload_text)["event"]


def _is_user_message(event: dict[str, Any]) -> bool:
    payload = event.get("payload")
    return (
        event.get("type") == AgentEventType.USER_MESSAGE
        and isinstance(payload, dict)
        and isinstance(payload.get("messageId"), str)
    )


def _rest(page: HistoryPage) -> dict[str, Any]:
    thread = page.thread
    earlier = page.start > 0
    whole = not earlier and page.end == thread.total
    turn = page.turns.first if page.turns is not None else None
    cursor = encode_opaque(
        HistoryCursor(thread=page.thread_id, before_event=page.start, before_turn=turn)
    )
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
