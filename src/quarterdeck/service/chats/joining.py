"""Messages that wait, made into one: what it says, and its row.

For an active replica the engine decides whether they still wait, and its journal brings the result
into the rows; so the row is made from theirs in the transaction that stores the journal's entry.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic_core import from_json
from sqlalchemy import Connection, select

from quarterdeck.service.chats.rows import (
    MODES,
    UPLOADS,
    WAITING,
    MessageState,
    NewMessage,
    add_message,
    move_message,
    order_waiting,
    waiting_ids,
)
from quarterdeck.service.db.tables import messages
from quarterdeck.service.errors import ApiError
from quarterdeck.service.replicas.queued_canvas import pass_on
from quarterdeck.wire.chats import MOST_IMAGES
from quarterdeck.wire.errors import ErrorCode

_COMMAND = re.compile(r"\s*/[\w:.-]+(\s|$)")
_BESIDE = ("images", UPLOADS)


@dataclass(frozen=True)
class JoinedMessage:
    """The message, and the ids of those that it is made of."""

    message: NewMessage
    parts: tuple[str, ...]


def join(parts: Sequence[NewMessage], message_id: str) -> JoinedMessage:
    """Return the message that replaces others: their texts, with all of their images and uploads."""
    deliveries = [from_json(part.delivery_json) for part in parts]
    merged = {name: value for delivery in deliveries for name, value in delivery.items()}
    for name in _BESIDE:
        together = list(chain.from_iterable(delivery.get(name) or () for delivery in deliveries))
        if together:
            merged[name] = together
    senders = {(part.sender_user_id, part.sender_email) for part in parts}
    sender_user_id, sender_email = senders.pop() if len(senders) == 1 else (None, None)
    message = NewMessage(
        id=message_id,
        chat_id=parts[0].chat_id,
        text="\n\n".join(part.text for part in parts if part.text),
        delivery_json=json.dumps(merged),
        created_at=parts[0].created_at,
        sender_user_id=sender_user_id,
        sender_email=sender_email,
    )
    return JoinedMessage(message, tuple(part.id for part in parts))


def check_parts(parts: Sequence[NewMessage]) -> None:
    """Check that one message can say what these say.

    Raises:
        ApiError: CONFLICT.
    """
    deliveries = [from_json(part.delivery_json) for part in parts]
    modes = {tuple(bool(delivery.get(mode)) for mode in MODES) for delivery in deliveries}
    if len(modes) > 1:
        raise _refused("The messages differ in plan, goal or fast mode.")
    if any(_COMMAND.match(part.text) for part in parts):
        raise _refused("One of the messages is a command of the agent.")
    if sum(len(delivery.get("images") or ()) for delivery in deliveries) > MOST_IMAGES:
        raise _refused(f"Together they have more than {MOST_IMAGES} images.")


def _refused(why: str) -> ApiError:
    return ApiError(ErrorCode.CONFLICT, f"{why} They cannot be joined.")


def read_parts(
    connection: Connection, workspace_id: str, chat_id: str, ids: Sequence[str]
) -> list[NewMessage]:
    """Return those of a chat's messages that still wait, in the order to run."""
    columns = (messages.c[name] for name in NewMessage.__dataclass_fields__)
    statement = (
        select(*columns)
        .where(
            messages.c.workspace_id == workspace_id,
            messages.c.chat_id == chat_id,
            messages.c.id.in_(ids),
            messages.c.state.in_(WAITING),
        )
        .order_by(messages.c.position)
    )
    return [NewMessage(**row) for row in connection.execute(statement).mappings()]


def store_joined(connection: Connection, workspace_id: str, joined: JoinedMessage) -> None:
    """Store the message in the place of the first of its parts, which are canceled."""
    chat_id, message_id = joined.message.chat_id, joined.message.id
    if connection.execute(select(messages.c.id).where(messages.c.id == message_id)).first():
        return
    waiting = waiting_ids(connection, workspace_id, chat_id)
    waiting.insert(waiting.index(joined.parts[0]), message_id)
    add_message(connection, workspace_id, joined.message)
    for part in joined.parts:
        move_message(connection, workspace_id, part, MessageState.CANCELED)
    order_waiting(connection, workspace_id, chat_id, waiting)
    pass_on(connection, joined.parts, message_id)
