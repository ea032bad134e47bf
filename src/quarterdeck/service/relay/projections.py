"""What journal entries change in the rows of chats, messages and workspaces."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, select

from quarterdeck.service.db.tables import chats
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.chats import add_chat, change_chat
from quarterdeck.service.records.messages import MessageState, move_message
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import JournalEntry
from quarterdeck.wire.events import (
    PAYLOADS,
    ChatChanged,
    EngineReady,
    EventType,
    Payload,
    ReposChanged,
    TurnAccepted,
    TurnCompleted,
    TurnStarted,
)

TITLE_LENGTH = 100
_PLAIN = (EventType.CHAT_TURN_DELTA, EventType.ENGINE_STATUS_CHANGED)
"""The many that change no row; their payload is not looked at."""


def project(
    connection: Connection, workspace_id: str, entries: Iterable[JournalEntry]
) -> dict[str, Any]:
    """Applies entries to chats and messages; returns the workspace's columns to set."""
    columns: dict[str, Any] = {}
    for entry in entries:
        if entry.type.startswith("chat."):
            columns["last_activity_at"] = moment_text(entry.ts)
        match _payload(entry):
            case EngineReady(version=version):
                columns["engine_version"] = version[:40]
            case ReposChanged(repos=repos):
                columns["repository_statuses_json"] = json.dumps(
                    [one.model_dump(mode="json") for one in repos]
                )
            case ChatChanged(chat=chat):
                _keep_chat(connection, workspace_id, chat)
            case TurnAccepted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.DELIVERED)
            case TurnStarted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.STARTED)
            case TurnCompleted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.DONE)
            case _:
                pass
    return columns


def _payload(entry: JournalEntry) -> Payload | None:
    """The typed payload; None for an unknown type or shape, which is stored all the same."""
    try:
        type = EventType(entry.type)
        return None if type in _PLAIN else PAYLOADS[type].model_validate(entry.payload)
    except (ValueError, ValidationError):
        return None


def _keep_chat(connection: Connection, workspace_id: str, chat: EventChat) -> None:
    values = {
        "title": chat.title and chat.title[:TITLE_LENGTH],
        "processing": chat.processing,
        "awaiting_input": chat.awaiting_input,
        "last_message_text": chat.last_message_text,
        "updated_at": moment_text(chat.updated_at),
    }
    chat_id = str(chat.id)
    if change_chat(connection, workspace_id, chat_id, **values):
        return
    if _is_elsewhere(connection, chat_id):
        return  # an engine cannot touch what is not its own
    add_chat(
        connection,
        workspace_id,
        chat_id,
        chat.provider[:100],
        moment_text(chat.created_at),
        parent_chat_id=chat.parent_chat_id and str(chat.parent_chat_id),
        **values,
    )


def _is_elsewhere(connection: Connection, chat_id: str) -> bool:
    return connection.execute(select(chats.c.id).where(chats.c.id == chat_id)).first() is not None
