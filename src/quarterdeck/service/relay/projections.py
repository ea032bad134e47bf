"""What journal entries change in the rows of chats, messages and workspaces."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, select

from quarterdeck.service.db.tables import chats
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.chats import Deletion, add_chat, change_chat
from quarterdeck.service.records.hook_logs import add_hook_log
from quarterdeck.service.records.messages import MessageState, move_message, order_waiting
from quarterdeck.service.storable import storable_json
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import JournalEntry
from quarterdeck.wire.events import (
    PAYLOADS,
    ChatChanged,
    ChatDeleted,
    EngineReady,
    EventType,
    HooksChanged,
    Payload,
    ReposChanged,
    TurnAccepted,
    TurnCompleted,
    TurnStarted,
)

TITLE_LENGTH = 100
HOOK_LOG = "log"
"""Field of `hooks.status` with a hook's log, between the engine and the service only."""
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
            case ChatChanged() as changed:
                _keep_chat(connection, workspace_id, changed.chat)
                _keep_queue(connection, workspace_id, changed)
            case ChatDeleted(chat_id=id):
                change_chat(connection, workspace_id, id, deletion=Deletion.GONE)
            case TurnAccepted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.DELIVERED)
            case TurnStarted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.STARTED)
            case TurnCompleted(message_id=id):
                move_message(connection, workspace_id, id, MessageState.DONE)
            case HooksChanged():
                if log := entry.payload.get(HOOK_LOG):
                    add_hook_log(connection, workspace_id, log)
            case _:
                pass
    return columns


def public_payload(entry: JournalEntry) -> dict[str, Any]:
    """The payload as the stream tells it: a hook's log is kept as a row, and asked for."""
    if entry.type != EventType.HOOKS_STATUS or HOOK_LOG not in entry.payload:
        return entry.payload
    return {name: value for name, value in entry.payload.items() if name != HOOK_LOG}


def _payload(entry: JournalEntry) -> Payload | None:
    """The typed payload; None for an unknown type or shape, which is stored all the same."""
    try:
        type = EventType(entry.type)
        return (
            None if type in _PLAIN else PAYLOADS[type].model_validate(storable_json(entry.payload))
        )
    except (ValueError, ValidationError):
        return None


def _keep_chat(connection: Connection, workspace_id: str, chat: EventChat) -> None:
    values = {
        "title": chat.title and chat.title[:TITLE_LENGTH],
        "processing": chat.processing,
        "awaiting_input": chat.awaiting_input,
        "last_message_text": chat.last_message_text,
        "plan_ready": chat.plan_ready,
        "processing_since": chat.processing_since and moment_text(chat.processing_since),
        "goal_json": chat.goal and chat.goal.model_dump_json(by_alias=False),
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


def _keep_queue(connection: Connection, workspace_id: str, changed: ChatChanged) -> None:
    for message_id in changed.canceled_message_ids or ():
        move_message(connection, workspace_id, message_id, MessageState.CANCELED)
    if changed.queue is not None:
        order_waiting(connection, str(changed.chat.id), changed.queue)


def _is_elsewhere(connection: Connection, chat_id: str) -> bool:
    return connection.execute(select(chats.c.id).where(chats.c.id == chat_id)).first() is not None
