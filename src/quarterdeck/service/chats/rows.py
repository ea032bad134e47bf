"""Rows of chats, messages and turns.

Messages as rows: accepted messages and their states.

`state` moves forward: accepted (durable here) -> delivered (durable in the engine) -> started ->
done. Only when an engine has lost its state, a delivered message becomes accepted again.
`position` counts the messages of a workspace, so it is their order of acceptance.

Where the turns of a chat start in its history.

The log is append-only, so results are kept, and only newer events are read.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from threading import Lock
from typing import Any, cast

from pydantic_core import from_json
from sqlalchemy import Connection, RowMapping, bindparam, func, insert, select, update

from quarterdeck.service.db.records import as_record, readable, stored_json
from quarterdeck.service.db.tables import chats, events, messages, workspaces
from quarterdeck.service.event_rows import PIECEMEAL
from quarterdeck.wire.chats import Chat, ChatSettings, QueuedMessage
from quarterdeck.wire.history import AgentEventType

_columns = (
    chats.c.id,
    chats.c.provider,
    chats.c.title,
    chats.c.created_at,
    chats.c.updated_at,
    chats.c.processing,
    chats.c.awaiting_input,
    chats.c.parent_chat_id,
    chats.c.last_message_text,
    chats.c.goal_json,
    chats.c.plan_ready,
    chats.c.processing_since,
    chats.c.turn_failed,
    chats.c.permission_mode_json,
    chats.c.model_json,
    chats.c.thinking_level_json,
)
# Built once: every request about a replica reads its chats.
_of_workspace = select(*_columns).where(
    chats.c.workspace_id == bindparam("in"), chats.c.deletion.is_(None)
)
_one = _of_workspace.where(chats.c.id == bindparam("of"))
_in_order = _of_workspace.order_by(chats.c.created_at, chats.c.id)


JSON_FIELDS = ("goal", "permission_mode", "model", "thinking_level")
"""Fields of a chat's record that are stored as JSON."""


class Deletion(StrEnum):
    """How far the deletion of a chat has come."""

    REQUESTED = "asked"
    LOGGED = "logged"
    ENDED = "gone"


def add_chat(
    connection: Connection, workspace_id: str, chat_id: str, provider: str, now: str, **values: Any
) -> None:
    """Store a chat; `values` are further columns.

    Raises:
        IntegrityError: the id is taken.
    """
    start: dict[str, Any] = {
        "processing": False,
        "awaiting_input": False,
        "next_history_index": 0,
        "created_at": now,
        "updated_at": now,
    }
    row = {"id": chat_id, "workspace_id": workspace_id, "provider": provider, **start, **values}
    connection.execute(insert(chats).values(**row))


def find_chat(connection: Connection, workspace_id: str, chat_id: str) -> Chat | None:
    """Return the chat of an id, in one workspace."""
    row = connection.execute(_one, {"in": workspace_id, "of": chat_id}).mappings().first()
    return None if row is None else _as_chat(row)


def list_chats(connection: Connection, workspace_id: str) -> list[Chat]:
    """Return all chats of a workspace, oldest first."""
    rows = connection.execute(_in_order, {"in": workspace_id}).mappings()
    return readable(rows, _as_chat)


def count_chats(connection: Connection, workspace_id: str) -> tuple[int, int]:
    """Return how many chats a workspace has, and how many with its deleted ones."""
    statement = select(func.count().filter(chats.c.deletion.is_(None)), func.count()).where(
        chats.c.workspace_id == workspace_id
    )
    shown, stored = connection.execute(statement).one()
    return shown, stored


def change_chat(connection: Connection, workspace_id: str, chat_id: str, **values: Any) -> bool:
    """Set columns of a chat; False when the workspace has no such chat."""
    statement = (
        update(chats)
        .where(chats.c.id == chat_id, chats.c.workspace_id == workspace_id)
        .values(**values)
    )
    return connection.execute(statement).rowcount > 0


def rest_chats(connection: Connection, workspace_id: str) -> None:
    """Note that no chat of the workspace works or waits: its engine has ended.

    A plan continues to wait: it can be accepted at any time.
    """
    statement = (
        update(chats)
        .where(chats.c.workspace_id == workspace_id)
        .values(processing=False, awaiting_input=False, processing_since=None)
    )
    connection.execute(statement)


def activity_of(of: Iterable[Any]) -> dict[str, bool | None]:
    """Return the fields of a replica's record that come from its chats or their rows."""
    known = list(of)
    ended = [chat.turn_failed for chat in known if chat.turn_failed is not None]
    return {
        "plan_ready": any(chat.plan_ready for chat in known),
        "asking": any(chat.awaiting_input for chat in known),
        "working": any(chat.processing for chat in known),
        "turn_failed": any(ended) if ended else None,
    }


def activities(
    connection: Connection, workspace_ids: Sequence[str]
) -> dict[str, dict[str, bool | None]]:
    """Return `activity_of` for each of the workspaces."""
    statement = select(
        chats.c.workspace_id,
        chats.c.awaiting_input,
        chats.c.processing,
        chats.c.plan_ready,
        chats.c.turn_failed,
    ).where(chats.c.workspace_id.in_(workspace_ids), chats.c.deletion.is_(None))
    rows_of: dict[str, list[Any]] = {id: [] for id in workspace_ids}
    for row in connection.execute(statement):
        rows_of[row.workspace_id].append(row)
    return {id: activity_of(rows) for id, rows in rows_of.items()}


def newest_message_chat(of: Sequence[Chat]) -> Chat | None:
    """Return the chat with the newest message."""
    spoken = [chat for chat in of if chat.last_message_text]
    return max(spoken, key=lambda chat: chat.updated_at, default=None)


def deletion_of(connection: Connection, chat_id: str) -> str | None:
    """Return the state of a chat's deletion; None when it is not deleted."""
    return connection.execute(select(chats.c.deletion).where(chats.c.id == chat_id)).scalar()


def unfinished_deletions(connection: Connection, workspace_id: str) -> list[tuple[str, str]]:
    """Return the deleted chats that the engine may still have, with the state of each deletion."""
    statement = select(chats.c.id, chats.c.deletion).where(
        chats.c.workspace_id == workspace_id,
        chats.c.deletion.in_((Deletion.REQUESTED, Deletion.LOGGED)),
    )
    return [(row.id, row.deletion) for row in connection.execute(statement)]


def notices(connection: Connection, workspace_id: str) -> dict[str, str]:
    """Return the notices for agents that their engine does not have yet, by chat."""
    statement = select(chats.c.id, chats.c.notice).where(
        chats.c.workspace_id == workspace_id,
        chats.c.deletion.is_(None),
        chats.c.notice.is_not(None),
    )
    return {row.id: row.notice for row in connection.execute(statement)}


def chosen_settings(connection: Connection, workspace_id: str) -> dict[str, str]:
    """Return the settings that their engine does not have yet, as JSON, by chat."""
    statement = select(chats.c.id, chats.c.chosen_json).where(
        chats.c.workspace_id == workspace_id,
        chats.c.deletion.is_(None),
        chats.c.chosen_json.is_not(None),
    )
    return {row.id: row.chosen_json for row in connection.execute(statement)}


def forget_chosen(connection: Connection, chat_id: str, chosen: str) -> None:
    """Note that the engine has the chosen settings; later ones stay."""
    connection.execute(
        update(chats)
        .where(chats.c.id == chat_id, chats.c.chosen_json == chosen)
        .values(chosen_json=None)
    )


def forget_notice(connection: Connection, chat_id: str, text: str) -> None:
    """Note that the engine has a notice; one stored in the meantime stays."""
    connection.execute(
        update(chats).where(chats.c.id == chat_id, chats.c.notice == text).values(notice=None)
    )


def _as_chat(row: RowMapping) -> Chat:
    values = dict(row)
    for name in JSON_FIELDS:
        stored = values.pop(f"{name}_json")
        values[name] = stored and stored_json(stored, dict)
    return as_record(Chat, values)


SETTINGS_LIMIT = 1 << 20
"""Longest announcement of settings that is kept, as JSON."""


def keep_settings(
    connection: Connection, workspace_id: str, chat_id: str, settings: ChatSettings
) -> None:
    """Store what the agent of a chat offers."""
    text = settings.model_dump_json()
    if len(text) <= SETTINGS_LIMIT:
        change_chat(connection, workspace_id, chat_id, settings_json=text)


def offered_settings(
    connection: Connection, organization_id: str, user_id: str | None, chat: Chat
) -> ChatSettings:
    """Return what the chat's agent offers; `user_id` is the user of its workspace.

    A new chat's agent has announced nothing yet: then what it offered in another chat of the same
    user. An engine may announce any text, so that of another user's is not used.
    """
    own = select(chats.c.settings_json).where(chats.c.id == str(chat.id))
    text = connection.execute(own).scalar()
    if text is None:
        elsewhere = (
            select(chats.c.settings_json)
            .join(workspaces, workspaces.c.id == chats.c.workspace_id)
            .where(
                workspaces.c.organization_id == organization_id,
                workspaces.c.user_id.is_not_distinct_from(user_id),
                chats.c.provider == chat.provider,
                chats.c.settings_json.is_not(None),
            )
            .order_by(chats.c.updated_at.desc())
            .limit(1)
        )
        text = connection.execute(elsewhere).scalar()
    return ChatSettings() if text is None else ChatSettings.model_validate_json(text)


COMMANDS_UPDATE = "available_commands_update"
UPDATES_READ = 16
"""Newest events that may be the last announcement of commands; an engine says how many may be."""


def offered_commands(connection: Connection, chat_id: str) -> list[dict[str, Any]]:
    """Return the agent's own objects; empty when it reported none."""
    statement = (
        select(events.c.payload_json)
        .where(
            events.c.chat_id == chat_id,
            events.c.chat_history_index.is_not(None),
            events.c.payload_json.like(f'%"sessionUpdate":"{COMMANDS_UPDATE}"%'),
        )
        .order_by(events.c.chat_history_index.desc())
        .limit(UPDATES_READ)
        .execution_options(**PIECEMEAL)
    )
    for payload in connection.execute(statement).scalars():
        update = from_json(payload)["event"]["payload"]
        if (
            update.get("sessionUpdate") == COMMANDS_UPDATE
        ):  # else the text was part of something else
            return _objects(update.get("availableCommands"))
    return []


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


class MessageState(StrEnum):
    """The state of a message."""

    ACCEPTED = "accepted"
    DELIVERED = "delivered"
    STARTED = "started"
    DONE = "done"
    CANCELED = "canceled"


UPLOADS = "canvas_upload_ids"
"""Key of a message's uploads in `delivery_json`."""
MODES = ("plan_mode", "goal_mode", "fast_mode")
"""Keys of a message's modes there."""
WAITING = (MessageState.ACCEPTED, MessageState.DELIVERED)
UNFINISHED = (*WAITING, MessageState.STARTED)

_BEFORE: dict[MessageState, tuple[MessageState, ...]] = {
    MessageState.DELIVERED: (MessageState.ACCEPTED,),
    MessageState.STARTED: WAITING,
    MessageState.CANCELED: WAITING,
    MessageState.DONE: UNFINISHED,
}


@dataclass(frozen=True)
class NewMessage:
    """A message to store. `delivery_json` holds what goes with its text."""

    id: str
    chat_id: str
    text: str
    delivery_json: str
    created_at: str
    sender_user_id: str | None = None
    sender_email: str | None = None


@dataclass(frozen=True)
class Undelivered:
    """A message that the engine is not known to have."""

    id: str
    chat_id: str
    position: int
    text: str
    delivery_json: str


def add_message(connection: Connection, workspace_id: str, message: NewMessage) -> None:
    """Store a message after all others of its workspace."""
    connection.execute(
        insert(messages).values(
            workspace_id=workspace_id,
            position=last_position(connection, workspace_id) + 1,
            state=MessageState.ACCEPTED,
            **vars(message),
        )
    )


def last_position(connection: Connection, workspace_id: str) -> int:
    """Return the position of the newest message; 0 when there is none."""
    statement = select(func.max(messages.c.position)).where(messages.c.workspace_id == workspace_id)
    return connection.execute(statement).scalar() or 0


def undelivered(connection: Connection, workspace_id: str, after: int = 0) -> list[Undelivered]:
    """Return messages still to be handed to the engine, in order; `after` is a position."""
    statement = (
        select(
            messages.c.id,
            messages.c.chat_id,
            messages.c.position,
            messages.c.text,
            messages.c.delivery_json,
        )
        .where(
            messages.c.workspace_id == workspace_id,
            messages.c.state == MessageState.ACCEPTED,
            messages.c.position > after,
        )
        .order_by(messages.c.position)
    )
    return [Undelivered(*row) for row in connection.execute(statement)]


def has_undelivered(connection: Connection, workspace_id: str, after: int = 0) -> bool:
    """Return whether a message waits to be handed to the engine; `after` is a position."""
    statement = (
        select(messages.c.id)
        .where(
            messages.c.workspace_id == workspace_id,
            messages.c.state == MessageState.ACCEPTED,
            messages.c.position > after,
        )
        .limit(1)
    )
    return connection.execute(statement).first() is not None


def queue_of(connection: Connection, chat_id: str) -> list[QueuedMessage]:
    """Return the chat's messages that wait for their turn, first to run first."""
    statement = (
        select(
            messages.c.id,
            messages.c.text.label("message"),
            messages.c.created_at.label("queued_at"),
            messages.c.sender_user_id,
            messages.c.sender_email,
        )
        .where(messages.c.chat_id == chat_id, messages.c.state.in_(WAITING))
        .order_by(messages.c.position)
    )
    rows = connection.execute(statement).mappings()
    return readable(rows, partial(as_record, QueuedMessage))


def count_in(connection: Connection, chat_id: str, states: Sequence[MessageState]) -> int:
    """Return how many messages of a chat are in one of the states."""
    statement = (
        select(func.count())
        .select_from(messages)
        .where(messages.c.chat_id == chat_id, messages.c.state.in_(states))
    )
    return connection.execute(statement).scalar_one()


def move_message(
    connection: Connection, workspace_id: str, message_id: str, state: MessageState
) -> None:
    """Move a message to a later state; does nothing when it is in that or a later one."""
    statement = (
        update(messages)
        .where(
            messages.c.id == message_id,
            messages.c.workspace_id == workspace_id,
            messages.c.state.in_(_BEFORE[state]),
        )
        .values(state=state)
    )
    connection.execute(statement)


def messages_in(
    connection: Connection, workspace_id: str, state: MessageState
) -> list[tuple[str, str]]:
    """Return the ids of a workspace's messages in a state and of their chats, in order."""
    statement = (
        select(messages.c.id, messages.c.chat_id)
        .where(messages.c.workspace_id == workspace_id, messages.c.state == state)
        .order_by(messages.c.position)
    )
    return [(row.id, row.chat_id) for row in connection.execute(statement)]


def take_back(connection: Connection, ids: Sequence[str]) -> None:
    """Mark delivered messages as accepted again, in their positions: their engine has lost them."""
    statement = (
        update(messages)
        .where(messages.c.id.in_(ids), messages.c.state == MessageState.DELIVERED)
        .values(state=MessageState.ACCEPTED)
    )
    connection.execute(statement)


def state_of(connection: Connection, chat_id: str, message_id: str) -> MessageState | None:
    """Return the state of a message of a chat; None when the chat has none of this id."""
    statement = select(messages.c.state).where(
        messages.c.id == message_id, messages.c.chat_id == chat_id
    )
    state = connection.execute(statement).scalar()
    return None if state is None else MessageState(state)


def unfinished_ids(connection: Connection, workspace_id: str) -> set[str]:
    """Return the messages of a workspace that wait, or whose turn has not ended."""
    statement = select(messages.c.id).where(
        messages.c.workspace_id == workspace_id, messages.c.state.in_(UNFINISHED)
    )
    return set(connection.execute(statement).scalars())


def waiting_ids(connection: Connection, workspace_id: str, chat_id: str) -> list[str]:
    """Return the messages of a workspace's chat that wait for their turn, first to run first."""
    return [message_id for message_id, _ in _waiting(connection, workspace_id, chat_id)]


def order_waiting(
    connection: Connection, workspace_id: str, chat_id: str, order: Sequence[str]
) -> None:
    """Put the waiting messages of a workspace's chat in order; unnamed ones stay after the others."""
    waiting = _waiting(connection, workspace_id, chat_id)
    ranks = {message_id: rank for rank, message_id in enumerate(order)}
    wanted = sorted(waiting, key=lambda pair: ranks.get(pair[0], len(ranks)))
    for (message_id, before), (_, place) in zip(wanted, waiting, strict=True):
        if before != place:
            connection.execute(
                update(messages).where(messages.c.id == message_id).values(position=place)
            )


def ended_among(connection: Connection, workspace_id: str, ids: Sequence[str]) -> list[str]:
    """Return those of the ids that belong to canceled or started messages of a workspace."""
    statement = select(messages.c.id).where(
        messages.c.workspace_id == workspace_id, messages.c.state.not_in(WAITING)
    )
    ended = set(connection.execute(statement).scalars())
    return [one for one in ids if one in ended]


def _waiting(connection: Connection, workspace_id: str, chat_id: str) -> list[tuple[str, int]]:
    statement = (
        select(messages.c.id, messages.c.position)
        .where(
            messages.c.workspace_id == workspace_id,
            messages.c.chat_id == chat_id,
            messages.c.state.in_(WAITING),
        )
        .order_by(messages.c.position)
    )
    return [(row.id, row.position) for row in connection.execute(statement)]


CHATS_KEPT = 500

_turn_starts = (
    select(events.c.chat_history_index, events.c.payload_json)
    .where(
        events.c.chat_id == bindparam("of"),
        events.c.chat_history_index >= bindparam("start"),
        events.c.chat_history_index < bindparam("end"),
        events.c.payload_json.like(f'%"type":"{AgentEventType.USER_MESSAGE}"%'),
    )
    .order_by(events.c.chat_history_index)
    .execution_options(**PIECEMEAL)
)


@dataclass
class _Known:
    looked_at: int = 0
    begins: list[int] = field(default_factory=list[int])


class TurnPlaces:
    """The starts of turns, by chat. Used by several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = Lock()

    def find(self, connection: Connection, chat_id: str, total: int) -> list[int]:
        """Return where each turn among the first `total` events starts, oldest first."""
        with self._lock:
            known = self._known.setdefault(chat_id, _Known())
            self._known.move_to_end(chat_id)
            if len(self._known) > CHATS_KEPT:
                self._known.popitem(last=False)
            start = known.looked_at
        starts: list[int] = []
        if total > start:
            parameters = {"of": chat_id, "start": start, "end": total}
            rows = connection.execute(_turn_starts, parameters)
            starts = [row.chat_history_index for row in rows if _begins(row.payload_json)]
        with self._lock:
            if known.looked_at == start < total:
                known.begins += starts
                known.looked_at = total
            return [place for place in known.begins if place < total]


def _begins(payload: str) -> bool:
    """Return whether it is the start of a turn: the text may be part of something else."""
    event = from_json(payload)["event"]
    is_message = event.get("type") == AgentEventType.USER_MESSAGE
    return is_message and not event["payload"].get("steered")
