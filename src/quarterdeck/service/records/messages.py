"""Messages as rows: what was accepted, and how far it has come.

`state` only moves forward: accepted (durable here) -> delivered (durable in the engine) -> started
-> done. `position` counts the messages of a workspace, so it is their order of acceptance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, func, insert, select, update

from quarterdeck.service.db.tables import messages
from quarterdeck.wire.messages import QueuedMessage


class MessageState(StrEnum):
    """How far a message has come."""

    ACCEPTED = "accepted"
    DELIVERED = "delivered"
    STARTED = "started"
    DONE = "done"
    CANCELED = "canceled"


UPLOADS = "canvas_upload_ids"
"""Key of a message's uploads in `delivery_json`."""
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
    """Stores a message behind all others of its workspace."""
    connection.execute(
        insert(messages).values(
            workspace_id=workspace_id,
            position=last_position(connection, workspace_id) + 1,
            state=MessageState.ACCEPTED,
            **vars(message),
        )
    )


def last_position(connection: Connection, workspace_id: str) -> int:
    """The place of the newest message; 0 when there is none."""
    statement = select(func.max(messages.c.position)).where(messages.c.workspace_id == workspace_id)
    return connection.execute(statement).scalar() or 0


def undelivered(connection: Connection, workspace_id: str, after: int = 0) -> list[Undelivered]:
    """Messages that are still to be handed to the engine, in order; `after` is a position."""
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
    """Whether a message waits to be handed to the engine; `after` is a position."""
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
    """The chat's messages that wait for their turn, first to run first."""
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
    return [
        QueuedMessage.model_validate(dict(row)) for row in connection.execute(statement).mappings()
    ]


def count_in(connection: Connection, chat_id: str, states: Sequence[MessageState]) -> int:
    """How many messages of a chat are in one of the states."""
    statement = (
        select(func.count())
        .select_from(messages)
        .where(messages.c.chat_id == chat_id, messages.c.state.in_(states))
    )
    return connection.execute(statement).scalar_one()


def move_message(
    connection: Connection, workspace_id: str, message_id: str, state: MessageState
) -> None:
    """Moves a message forward; one that is further already stays."""
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


def state_of(connection: Connection, chat_id: str, message_id: str) -> MessageState | None:
    """How far a message of a chat has come; None when the chat has none of this id."""
    statement = select(messages.c.state).where(
        messages.c.id == message_id, messages.c.chat_id == chat_id
    )
    found = connection.execute(statement).scalar()
    return None if found is None else MessageState(found)


def waiting_ids(connection: Connection, chat_id: str) -> list[str]:
    """The chat's messages that wait for their turn, first to run first."""
    return [message_id for message_id, _ in _waiting(connection, chat_id)]


def order_waiting(connection: Connection, chat_id: str, order: Sequence[str]) -> None:
    """Puts the waiting messages in order; those that it does not name stay behind the others."""
    waiting = _waiting(connection, chat_id)
    ranks = {message_id: rank for rank, message_id in enumerate(order)}
    wanted = sorted(waiting, key=lambda one: ranks.get(one[0], len(ranks)))
    for (message_id, before), (_, place) in zip(wanted, waiting, strict=True):
        if before != place:
            connection.execute(
                update(messages).where(messages.c.id == message_id).values(position=place)
            )


def canceled_among(connection: Connection, ids: Sequence[str]) -> list[str]:
    """Those of the ids that were canceled."""
    statement = select(messages.c.id).where(
        messages.c.id.in_(ids), messages.c.state == MessageState.CANCELED
    )
    return list(connection.execute(statement).scalars())


def _waiting(connection: Connection, chat_id: str) -> list[tuple[str, int]]:
    statement = (
        select(messages.c.id, messages.c.position)
        .where(messages.c.chat_id == chat_id, messages.c.state.in_(WAITING))
        .order_by(messages.c.position)
    )
    return [(row.id, row.position) for row in connection.execute(statement)]
