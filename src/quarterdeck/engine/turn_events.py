"""The journal entries of chats and turns (INTERFACE 5), as drafts."""

from typing import Any
from uuid import UUID

from quarterdeck.agents.port import TurnOutcome
from quarterdeck.engine.chat_state import (
    CHAT_NOTE,
    DELETED_NOTE,
    MESSAGE_NOTE,
    SESSION_NOTE,
    ChatState,
)
from quarterdeck.engine.drafts import Draft, Note, event, note
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.events import (
    ChatDeleted,
    ChatInterrupted,
    EventType,
    TurnAccepted,
    TurnCompleted,
    TurnDelta,
    TurnStarted,
)
from quarterdeck.wire.history import AgentEvent, AgentEventType, TurnResult, UserMessage


def opened(chat: ChatState) -> Note:
    """A new chat, for the next engine: who made it has told everyone."""
    return note(CHAT_NOTE, {"chat": chat.record})


def updated(chat: ChatState, **changes: Any) -> Draft:
    """Changes the chat's record and tells it."""
    chat.record = chat.record.model_copy(update={"updated_at": utc_now(), **changes})
    return event(EventType.CHAT_UPDATED, {"chat": chat.record})


def begun(chat: ChatState, words: str) -> Draft:
    """A turn begins, whose message said this; what the one before it planned waits no longer."""
    return updated(
        chat,
        processing=True,
        processing_since=utc_now(),
        plan_ready=False,
        last_message_text=words,
    )


def rested(chat: ChatState, processing: bool, **changes: Any) -> Draft:
    """No turn runs now; `processing` when one is to follow at once."""
    rest: dict[str, Any] = {"awaiting_input": False, "processing_since": None, "plan_ready": False}
    return updated(chat, processing=processing, **{**rest, **changes})


def queue_changed(chat: ChatState, waiting: list[UUID], canceled: list[UUID]) -> Draft:
    """The queue was changed by hand; `waiting` may hold messages that are still on their way."""
    chat.record = chat.record.model_copy(update={"updated_at": utc_now()})
    told = {"chat": chat.record, "queue": waiting, "canceledMessageIds": canceled}
    return event(EventType.CHAT_UPDATED, told)


def deleted(chat_id: UUID, told: bool) -> Draft | Note:
    """The end of a chat: for everyone, or when they know already, for the next engine."""
    if told:
        return note(DELETED_NOTE, {"chatId": str(chat_id)})
    return event(EventType.CHAT_DELETED, ChatDeleted(chat_id=str(chat_id)))


def accepted(message: DeliverMessage, position: int | None) -> tuple[Note, Draft]:
    """A message's content for the next engine, and its acceptance for everyone."""
    told = TurnAccepted(
        chat_id=str(message.chat_id),
        message_id=str(message.message_id),
        queued=position is not None,
        position=position,
    )
    return note(MESSAGE_NOTE, message), event(EventType.CHAT_TURN_ACCEPTED, told)


def session_opened(chat: ChatState) -> Note:
    told = {"chatId": str(chat.record.id), "sessionId": chat.session_id, "model": chat.model}
    return note(SESSION_NOTE, told)


def started(message: DeliverMessage) -> Draft:
    told = TurnStarted(chat_id=str(message.chat_id), message_id=str(message.message_id))
    return event(EventType.CHAT_TURN_STARTED, told)


def user_message(message: DeliverMessage) -> Draft:
    images = [image.model_dump(mode="json") for image in message.images or []]
    payload = UserMessage(
        message_id=str(message.message_id),
        text=message.text,
        images=images or None,
        uploads=message.uploads or None,
        plan_mode=message.plan_mode,
        goal_mode=message.goal_mode,
    )
    return _own_delta(message, AgentEventType.USER_MESSAGE, payload.model_dump(by_alias=True))


def turn_result(message: DeliverMessage, outcome: TurnOutcome) -> Draft:
    payload = TurnResult(
        message_id=str(message.message_id),
        stop_reason=outcome.stop_reason,
        error=outcome.error,
        usage=outcome.usage,
    )
    return _own_delta(message, AgentEventType.TURN_RESULT, payload.model_dump(by_alias=True))


def delta(chat_id: UUID, message: DeliverMessage | None, agent_event: AgentEvent) -> Draft:
    """What an agent said, as it said it."""
    told = TurnDelta(
        chat_id=str(chat_id),
        message_id=str(message.message_id) if message else None,
        event=agent_event,
    )
    return event(EventType.CHAT_TURN_DELTA, told)


def completed(
    message: DeliverMessage, is_complete: bool, processing: bool, plan_ready: bool = False
) -> Draft:
    told = TurnCompleted(
        chat_id=str(message.chat_id),
        message_id=str(message.message_id),
        is_complete=is_complete,
        processing=processing,
        plan_ready=plan_ready,
    )
    return event(EventType.CHAT_TURN_COMPLETED, told)


def interrupted(chat: ChatState) -> Draft:
    told = ChatInterrupted(
        chat_id=str(chat.record.id),
        interrupted=True,
        queue=[str(id) for id in chat.waiting_ids()],
    )
    return event(EventType.CHAT_INTERRUPTED, told)


def _own_delta(message: DeliverMessage, type: AgentEventType, payload: dict[str, Any]) -> Draft:
    own = AgentEvent(timestamp=utc_now(), type=type.value, payload=payload)
    return delta(message.chat_id, message, own)
