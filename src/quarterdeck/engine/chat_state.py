"""What the engine knows of each chat, and how it is read back from the journal at start.

While it runs, the engine changes this state first and journals what came of it; at start the same
state is folded from the journal's entries and notes:

    #message    content of a message, before its `chat.turn.accepted`
    #session    the agent's own session id, so that the session can be reopened
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from quarterdeck.engine.drafts import payload_of_line
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.events import EventType
from quarterdeck.wire.history import AgentEventType

MESSAGE_NOTE = "message"
SESSION_NOTE = "session"


@dataclass(frozen=True)
class OpenTurn:
    """A turn that an engine before this one did not finish, and what of it was journaled."""

    message: DeliverMessage
    message_shown: bool = False
    result_shown: bool = False


@dataclass
class ChatState:
    """One chat. `record` is the chat as events show it; `queue` waits, first to run first."""

    record: EventChat
    queue: list[DeliverMessage] = field(default_factory=list[DeliverMessage])
    known: set[UUID] = field(default_factory=set[UUID])
    """Every message ever accepted."""
    current: DeliverMessage | None = None
    """The message of the running turn."""
    session_id: str | None = None
    open_turn: OpenTurn | None = None

    @property
    def busy(self) -> bool:
        return self.current is not None or bool(self.queue) or self.open_turn is not None

    def waiting_ids(self) -> list[UUID]:
        return [message.message_id for message in self.queue]


class ChatFold:
    """Builds the chats from a journal's lines, told in order; give `visit` to the journal."""

    def __init__(self) -> None:
        self.chats: dict[UUID, ChatState] = {}
        self._messages: dict[UUID, DeliverMessage] = {}

    def visit(self, type: str, line: bytes) -> None:
        """Takes one line. Deltas are skipped unless a turn's beginning or end may be in them."""
        if type == EventType.CHAT_TURN_DELTA and not _may_matter(line):
            return
        fold = _FOLDS.get(type)
        if fold is not None:
            fold(self, payload_of_line(line))

    def _message(self, data: dict[str, Any]) -> None:
        message = DeliverMessage.model_validate(data)
        self._messages[message.message_id] = message

    def _session(self, data: dict[str, Any]) -> None:
        if chat := self._find(data):
            chat.session_id = data["sessionId"]

    def _created(self, payload: dict[str, Any]) -> None:
        record = EventChat.model_validate(payload["chat"])
        self.chats[record.id] = ChatState(record)

    def _updated(self, payload: dict[str, Any]) -> None:
        record = EventChat.model_validate(payload["chat"])
        if record.id in self.chats:
            self.chats[record.id].record = record

    def _deleted(self, payload: dict[str, Any]) -> None:
        self.chats.pop(UUID(payload["chatId"]), None)

    def _accepted(self, payload: dict[str, Any]) -> None:
        chat, message = self._find(payload), self._messages.get(UUID(payload["messageId"]))
        if chat and message:
            chat.known.add(message.message_id)
            chat.queue.append(message)

    def _started(self, payload: dict[str, Any]) -> None:
        message = self._messages.pop(UUID(payload["messageId"]), None)
        chat = self._find(payload)
        if chat and message:
            chat.queue = [one for one in chat.queue if one.message_id != message.message_id]
            chat.open_turn = OpenTurn(message)

    def _delta(self, payload: dict[str, Any]) -> None:
        chat = self._find(payload)
        if chat is None or (turn := chat.open_turn) is None:
            return
        match payload["event"]["type"]:
            case AgentEventType.USER_MESSAGE:
                chat.open_turn = OpenTurn(turn.message, True, turn.result_shown)
            case AgentEventType.TURN_RESULT:
                chat.open_turn = OpenTurn(turn.message, turn.message_shown, True)
            case _:
                pass

    def _completed(self, payload: dict[str, Any]) -> None:
        if chat := self._find(payload):
            chat.open_turn = None

    def _find(self, payload: dict[str, Any]) -> ChatState | None:
        return self.chats.get(UUID(payload["chatId"]))

    FOLDS = {
        f"#{MESSAGE_NOTE}": _message,
        f"#{SESSION_NOTE}": _session,
        EventType.CHAT_CREATED.value: _created,
        EventType.CHAT_UPDATED.value: _updated,
        EventType.CHAT_DELETED.value: _deleted,
        EventType.CHAT_TURN_ACCEPTED.value: _accepted,
        EventType.CHAT_TURN_STARTED.value: _started,
        EventType.CHAT_TURN_DELTA.value: _delta,
        EventType.CHAT_TURN_COMPLETED.value: _completed,
    }


_FOLDS = ChatFold.FOLDS


def _may_matter(line: bytes) -> bool:
    return b'"turn-result"' in line or b'"user-message"' in line
