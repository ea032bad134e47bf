"""Which events a person is told of, and in what words."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from quarterdeck.service.db.tables import messages
from quarterdeck.service.outward.targets import Notice
from quarterdeck.service.records.chats import find_chat
from quarterdeck.service.records.notification_targets import Target, targets_of
from quarterdeck.service.records.workspaces import WorkspaceRow, find_workspace
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus

TEXT_LENGTH = 500


def notice_for(
    connection: Connection, workspace_id: str, type: str, payload: Mapping[str, Any]
) -> tuple[Notice, list[Target]] | None:
    """What is told, and to whom; None when nobody has to be told."""
    row = find_workspace(connection, workspace_id)
    if row is None or row.warm_state is not None:
        return None
    targets = targets_of(connection, row.organization_id, _people(connection, row, payload))
    notice = _notice(connection, row, type, payload) if targets else None
    return None if notice is None else (notice, targets)


def _people(
    connection: Connection, row: WorkspaceRow, payload: Mapping[str, Any]
) -> set[str] | None:
    """The replica's user and the message's sender; everybody when it has neither."""
    sender = select(messages.c.sender_user_id).where(
        messages.c.id == str(payload.get("messageId")), messages.c.workspace_id == row.id
    )
    found = {row.user_id, connection.execute(sender).scalar()} - {None}
    return {one for one in found if one is not None} or None


def _notice(
    connection: Connection, row: WorkspaceRow, type: str, payload: Mapping[str, Any]
) -> Notice | None:
    match type:
        case EventType.CHAT_TURN_COMPLETED if payload.get("isComplete"):
            return Notice(f"{row.name}: done", _last_words(connection, row, payload))
        case EventType.CHAT_TURN_COMPLETED:
            return Notice(f"{row.name}: stopped", "The turn was interrupted, or it failed.")
        case EventType.CHAT_UPDATED:
            return Notice(f"{row.name}: waits for you", "The agent asks something.")
        case _ if payload.get("workspaceStatus") == WorkspaceStatus.ERROR:
            return Notice(f"{row.name}: failed", _short(row.error or "The replica failed."))
        case _:
            return None


def _last_words(connection: Connection, row: WorkspaceRow, payload: Mapping[str, Any]) -> str:
    chat = find_chat(connection, row.id, str(payload.get("chatId")))
    return _short((chat and chat.last_message_text) or "The turn is over.")


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…"
