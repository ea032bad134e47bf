"""The journal entries of chats and turns (docs/interface.md 5), as drafts."""

from typing import Any
from uuid import UUID

from quarterdeck.agents.port import ModelOffer, TurnOutcome
from quarterdeck.engine.chat_state import (
    CHAT_NOTE,
    COST_NOTE,
    DELETED_NOTE,
    MESSAGE_NOTE,
    NOTICES_NOTE,
    SESSION_NOTE,
    SHOWN_CHARACTERS,
    STEERING_NOTE,
    EngineChat,
)
from quarterdeck.engine.journal import EntryTooLargeError, JournalDraft, JournalNote, event, note
from quarterdeck.wire.agents import AgentModel, AgentModels
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import ChatSettings
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import (
    ChatDeleted,
    ChatInterrupted,
    ErrorEvent,
    EventType,
    JoinedMessages,
    TurnAccepted,
    TurnCompleted,
    TurnDelta,
    TurnStarted,
)
from quarterdeck.wire.history import (
    AgentEvent,
    AgentEventType,
    GitOperationPayload,
    OwnTurnStarted,
    TurnResult,
    UserMessage,
)

MOST_MODELS = 1_000
"""Of one agent; longer lists are cut."""


def opened(chat: EngineChat) -> JournalNote:
    """Return the note of a new chat, for the next engine; the service announces it."""
    return note(CHAT_NOTE, {"chat": chat.record})


def updated(chat: EngineChat, **changes: Any) -> JournalDraft:
    """Change the chat's record and return the event of it."""
    chat.record = chat.record.model_copy(update={"updated_at": utc_now(), **changes})
    return event(EventType.CHAT_UPDATED, {"chat": chat.record})


def turn_began(chat: EngineChat, message_text: str, plan_ready: bool = False) -> JournalDraft:
    """Return the change of a chat whose turn starts.

    A plan of the previous turn no longer waits, unless `plan_ready`.
    """
    return updated(
        chat,
        processing=True,
        processing_since=utc_now(),
        plan_ready=plan_ready,
        turn_failed=None,
        last_message_text=message_text,
    )


def rested(chat: EngineChat, processing: bool, *, failed: bool, **changes: Any) -> JournalDraft:
    """Return the change of a chat whose turn ended; `processing` when another one follows."""
    defaults: dict[str, Any] = {
        "awaiting_input": False,
        "processing_since": None,
        "plan_ready": False,
    }
    return updated(chat, processing=processing, turn_failed=failed, **{**defaults, **changes})


def models_announced(chat: EngineChat, offer: ModelOffer) -> JournalDraft:
    """Return the models that the chat's agent offers."""
    models = [
        AgentModel(id=id, display_name=name if name.isprintable() else id)
        for id, name in offer.models[:MOST_MODELS]
        if id.isprintable()
    ]
    models_event = AgentModels(models=models, default_model=offer.default)
    return event(EventType.CHAT_UPDATED, {"chat": chat.record, "models": models_event})


def settings_announced(chat: EngineChat, settings: ChatSettings, **values: Any) -> JournalDraft:
    """Return the settings that the chat's agent announced; `values` are the record's."""
    chat.record = chat.record.model_copy(update={"updated_at": utc_now(), **values})
    return event(EventType.CHAT_UPDATED, {"chat": chat.record, "settings": settings})


def queue_changed(chat: EngineChat, waiting: list[UUID], canceled: list[UUID]) -> JournalDraft:
    """Return the change of a queue edited by hand; `waiting` may hold messages still on their way."""
    chat.record = chat.record.model_copy(update={"updated_at": utc_now()})
    payload = {"chat": chat.record, "queue": waiting, "canceledMessageIds": canceled}
    return event(EventType.CHAT_UPDATED, payload)


def joined(
    chat: EngineChat, parts: list[UUID], message: DeliverMessage
) -> tuple[JournalNote, JournalDraft, JournalDraft]:
    """Return the change of a queue in which a message has replaced others."""
    chat.record = chat.record.model_copy(update={"updated_at": utc_now()})
    made = JoinedMessages(message_id=message.message_id, message_ids=parts)
    payload = {
        "chat": chat.record,
        "queue": chat.expected_order(),
        "canceledMessageIds": parts,
        "joined": made,
    }
    kept, taken = accepted(message, chat.waiting_ids().index(message.message_id) + 1)
    return kept, event(EventType.CHAT_UPDATED, payload), taken


def steering(message: DeliverMessage) -> JournalNote:
    """Return the note that a message is being put into the running turn."""
    data = {"chatId": str(message.chat_id), "messageId": str(message.message_id)}
    return note(STEERING_NOTE, data)


def steered(
    chat: EngineChat, of_turn: DeliverMessage, message: DeliverMessage
) -> tuple[JournalDraft, JournalDraft]:
    """Return that a message is in the running turn, and its entry in the transcript."""
    chat.record = chat.record.model_copy(
        update={"updated_at": utc_now(), "last_message_text": message.text[:SHOWN_CHARACTERS]}
    )
    change = {
        "chat": chat.record,
        "queue": chat.expected_order(),
        "steeredMessageIds": [message.message_id],
    }
    shown = _own_delta(
        of_turn, AgentEventType.USER_MESSAGE, _message_payload(message, steered=True)
    )
    return event(EventType.CHAT_UPDATED, change), shown


def deleted(chat_id: UUID, announced: bool) -> JournalDraft | JournalNote:
    """Return the deletion of a chat: an event, or a note once it was `announced`."""
    if announced:
        return note(DELETED_NOTE, {"chatId": str(chat_id)})
    return event(EventType.CHAT_DELETED, ChatDeleted(chat_id=str(chat_id)))


def accepted(message: DeliverMessage, position: int | None) -> tuple[JournalNote, JournalDraft]:
    """Return a message's content as a note, and the event of its acceptance."""
    payload = TurnAccepted(
        chat_id=str(message.chat_id),
        message_id=str(message.message_id),
        queued=position is not None,
        position=position,
    )
    return note(MESSAGE_NOTE, message), event(EventType.CHAT_TURN_ACCEPTED, payload)


def session_opened(chat: EngineChat) -> JournalNote:
    """Return the note of the chat's session and its settings."""
    data = {
        "chatId": str(chat.record.id),
        "sessionId": chat.session_id,
        "model": chat.model,
        "permissionMode": chat.permission_mode,
        "thinkingLevel": chat.thinking_level,
    }
    return note(SESSION_NOTE, data)


def restored(chat: EngineChat, text: str) -> JournalDraft:
    """Return the line of the transcript for files that were restored from a save."""
    payload = GitOperationPayload(operation="restore", text=text)
    agent_event = AgentEvent(
        timestamp=utc_now(),
        type=AgentEventType.GIT_OPERATION,
        payload=payload.model_dump(mode="json", by_alias=True),
    )
    return delta(chat.record.id, None, agent_event)


def noted(chat: EngineChat, text: str) -> JournalDraft:
    """Return a notice for the person as an entry of the transcript."""
    notice = AgentEvent(timestamp=utc_now(), type=AgentEventType.NOTICE, payload={"text": text})
    return delta(chat.record.id, None, notice)


def held_back(chat: EngineChat, reason: str) -> tuple[JournalDraft | JournalNote, ...]:
    """Return that messages of a chat are not run, and why: it needs the person."""
    return noted(chat, reason), updated(chat, turn_failed=True), cost_told(chat)


def cost_told(chat: EngineChat) -> JournalNote:
    """Return the note of what the person was told about the cost of the chat."""
    cost = chat.cost
    data = {"chatId": str(chat.record.id), "unknown": cost.told_unknown, "limit": cost.told_limit}
    return note(COST_NOTE, data)


def notices_changed(chat: EngineChat) -> JournalNote:
    """Return the note of notices that the agent has not received yet."""
    return note(NOTICES_NOTE, {"chatId": str(chat.record.id), "notices": chat.notices})


def started(message: DeliverMessage) -> JournalDraft:
    """Return the start of a message's turn, or of one that the agent began."""
    payload = TurnStarted(
        chat_id=str(message.chat_id), message_id=str(message.message_id), origin=message.origin
    )
    return event(EventType.CHAT_TURN_STARTED, payload)


def turn_head(message: DeliverMessage) -> JournalDraft:
    """Return the first entry of a turn in the transcript: the person's message, if there is one."""
    if message.origin is None:
        return user_message(message)
    payload = OwnTurnStarted(message_id=str(message.message_id), origin=message.origin)
    return _own_delta(message, AgentEventType.TURN_STARTED, payload.model_dump(by_alias=True))


def user_message(message: DeliverMessage) -> JournalDraft:
    """Return the person's message as an entry of the transcript."""
    return _own_delta(message, AgentEventType.USER_MESSAGE, _message_payload(message))


def _message_payload(message: DeliverMessage, steered: bool = False) -> dict[str, Any]:
    images = [image.model_dump(mode="json") for image in message.images or []]
    payload = UserMessage(
        message_id=str(message.message_id),
        text=message.text,
        images=images or None,
        uploads=message.uploads or None,
        plan_mode=message.plan_mode,
        goal_mode=message.goal_mode,
        steered=steered,
    )
    return payload.model_dump(by_alias=True)


def turn_result(
    message: DeliverMessage, outcome: TurnOutcome, stopped: bool = False, **spent: Any
) -> JournalDraft:
    """Return how a turn ended, and what it took, as an entry of the transcript."""
    payload = TurnResult(
        message_id=str(message.message_id),
        stop_reason=outcome.stop_reason,
        error=outcome.error,
        usage=outcome.usage,
        stopped=stopped,
        **spent,
    )
    return _own_delta(message, AgentEventType.TURN_RESULT, payload.model_dump(by_alias=True))


def delta(chat_id: UUID, message: DeliverMessage | None, agent_event: AgentEvent) -> JournalDraft:
    """Return an agent's event unchanged."""
    payload = TurnDelta(
        chat_id=str(chat_id),
        message_id=str(message.message_id) if message else None,
        event=agent_event,
    )
    return event(EventType.CHAT_TURN_DELTA, payload)


def heard(chat_id: UUID, message: DeliverMessage | None, agent_event: AgentEvent) -> JournalDraft:
    """Return the same; an error in place of an event that is too large to store."""
    try:
        return delta(chat_id, message, agent_event)
    except EntryTooLargeError as error:
        error_event = ErrorEvent(
            code=ErrorCode.PAYLOAD_TOO_LARGE,
            message="A message of the agent was too large to store.",
            details=str(error),
        )
        return event(EventType.ERROR, error_event)


def completed(
    message: DeliverMessage, is_complete: bool, processing: bool, plan_ready: bool = False
) -> JournalDraft:
    """Return the end of a message's turn; `processing` when another turn follows immediately."""
    payload = TurnCompleted(
        chat_id=str(message.chat_id),
        message_id=str(message.message_id),
        is_complete=is_complete,
        processing=processing,
        plan_ready=plan_ready,
    )
    return event(EventType.CHAT_TURN_COMPLETED, payload)


def interrupted(chat: EngineChat) -> JournalDraft:
    """Return the interruption of a chat, with the messages that still wait."""
    payload = ChatInterrupted(
        chat_id=str(chat.record.id),
        interrupted=True,
        queue=[str(id) for id in chat.waiting_ids()],
    )
    return event(EventType.CHAT_INTERRUPTED, payload)


def _own_delta(
    message: DeliverMessage, type: AgentEventType, payload: dict[str, Any]
) -> JournalDraft:
    own = AgentEvent(timestamp=utc_now(), type=type.value, payload=payload)
    return delta(message.chat_id, message, own)
