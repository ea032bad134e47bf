"""A request's text and switches as a message to store."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.conversation.images import check_images
from quarterdeck.service.records.messages import UPLOADS, NewMessage
from quarterdeck.service.records.users import find_user
from quarterdeck.wire.messages import MODE_PREFIXES, SendMessage
from quarterdeck.wire.replicas import CreateReplica

MODES = ("plan_mode", "goal_mode", "fast_mode")


@dataclass(frozen=True)
class Composed:
    """A message without a place: its text after the prefixes, and what goes with it."""

    text: str
    delivery: dict[str, Any]

    def placed(
        self,
        chat_id: str,
        caller: Caller,
        now: str,
        usual_model: str | None,
        email: str | None = None,
        uploads: Sequence[str] = (),
    ) -> NewMessage:
        """The message in a chat; `usual_model` is for one in which none was ever chosen."""
        delivery = self.delivery
        if usual_model is not None:
            delivery = {**delivery, "usual_model": usual_model}
        if uploads:
            delivery = {**delivery, UPLOADS: list(uploads)}
        return NewMessage(
            id=str(uuid4()),
            chat_id=chat_id,
            text=self.text,
            delivery_json=json.dumps(delivery),
            created_at=now,
            sender_user_id=caller.user_id,
            sender_email=email,
        )


def compose(body: SendMessage | CreateReplica) -> Composed:
    """Reads a request's message: leading `/plan`, `/goal`, `/fast` are stripped and set modes.

    Raises:
        ApiError: INVALID_REQUEST or PAYLOAD_TOO_LARGE for its images.
    """
    check_images(body.images)
    text, modes = split_modes(body.message or "")
    delivery = body.model_dump(
        mode="json",
        include={*MODES, "model", "images", "thinking_level"},
        exclude_none=True,
    )
    return Composed(text, delivery | modes)


def email_of(connection: Connection, caller: Caller) -> str | None:
    """The address of the user who asks, when there is a user and an address."""
    user = None if caller.user_id is None else find_user(connection, caller.user_id)
    return user and user.email


def split_modes(message: str) -> tuple[str, dict[str, bool]]:
    """The text behind leading mode words, and the modes they set. Other white space is kept."""
    modes: dict[str, bool] = {}
    text = message
    while (words := text.split(maxsplit=1)) and words[0] in MODE_PREFIXES:
        modes[MODE_PREFIXES[words[0]]] = True
        text = words[1] if len(words) > 1 else ""
    return text, modes
