"""A new chat: its row and its event in one transaction, so that both are there in every state."""

from typing import Any

from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.records.chats import add_chat, find_chat
from quarterdeck.service.records.events import NewEvent
from quarterdeck.wire.chats import Chat, EventChat
from quarterdeck.wire.events import EventType


def store_chat(
    writer: LogWriter,
    workspace_id: str,
    chat_id: str,
    provider: str,
    now: str,
    client_request_id: str | None = None,
    **values: Any,
) -> Chat:
    """Stores a chat and tells it; `values` are further columns. The engine only opens it.

    Raises:
        IntegrityError: the id is taken.
    """
    add_chat(writer.connection, workspace_id, chat_id, provider, now, **values)
    made = find_chat(writer.connection, workspace_id, chat_id)
    assert made is not None  # stored just now
    told: dict[str, Any] = {
        "chat": EventChat.model_validate(made.model_dump()).model_dump(mode="json")
    }
    if client_request_id is not None:
        told["clientRequestId"] = client_request_id
    writer.append(workspace_id, [NewEvent(EventType.CHAT_CREATED, told)])
    return made
