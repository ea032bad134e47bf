"""What the engine knows of each chat, and how it is read back from the journal at start.

While it runs, the engine changes this state first and journals what came of it; at start the same
state is folded from the journal's entries and notes:

    #chat       a new chat; journals of before have `chat.created` in its place
    #message    content of a message, before its `chat.turn.accepted`
    #session    the agent's own session id, so that the session can be reopened, and the model
    #deleted    a chat whose end the event log knows already
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from quarterdeck.engine.drafts import payload_of_line
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.events import EventType
from quarterdeck.wire.history import AgentEventType

CHAT_NOTE = "chat"
MESSAGE_NOTE = "message"
SESSION_NOTE = "session"
DELETED_NOTE = "deleted"


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
    """Every message ever accepted, or canceled before it came."""
    canceled: set[UUID] = field(default_factory=set[UUID])
    order: list[UUID] = field(default_factory=list[UUID])
    """The order that was asked for last; messages that come later take their places in it."""
    last: DeliverMessage | None = None
    """The message whose turn began last; the next turn towards a goal is like it."""
    current: DeliverMessage | None = None
    """The message of the running turn."""
    model: str | None = None
    """The model chosen last; messages that name none go by it."""
    session_id: str | None = None
    open_turn: OpenTurn | None = None

    @property
    def busy(self) -> bool:
        return self.current is not None or bool(self.queue) or self.open_turn is not None

    def waiting_ids(self) -> list[UUID]:
        return [message.message_id for message in self.queue]

    def place_of_new(self, message_id: UUID) -> int:
        """Where in the queue a message that comes now belongs, from 0."""
        if message_id not in self.order:
            return len(self.queue)
        behind = set(self.order[self.order.index(message_id) + 1 :])
        places = (n for n, one in enumerate(self.queue) if one.message_id in behind)
        return next(places, len(self.queue))

    def standing(self) -> list[UUID]:
        """What waits in its order, with those that are expected and not here yet."""
        waiting = self.waiting_ids()
        named = [id for id in self.order if id in waiting or id not in self.known]
        return [*named, *(id for id in waiting if id not in named)]

    def reorder(self, order: list[UUID]) -> None:
        """Sorts the queue; messages that the order does not name stay behind the others."""
        self.order = order
        ranks = {message_id: rank for rank, message_id in enumerate(order)}
        self.queue.sort(key=lambda one: ranks.get(one.message_id, len(ranks)))

    def cancel(self, message_ids: set[UUID]) -> None:
        """Takes messages out of the queue for good; those that were never here never run."""
        self.queue = [one for one in self.queue if one.message_id not in message_ids]
        self.known |= message_ids
        self.canceled |= message_ids


class ChatFold:
    """Builds the chats from a journal's lines, told in order; give `visit` to the journal."""

    def __init__(self) -> None:
        self.chats: dict[UUID, ChatState] = {}
        self.deleted: set[UUID] = set()
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
            chat.model = data.get("model")

    def _created(self, payload: dict[str, Any]) -> None:
        record = EventChat.model_validate(payload["chat"])
        self.chats[record.id] = ChatState(record)

    def _updated(self, payload: dict[str, Any]) -> None:
        record = EventChat.model_validate(payload["chat"])
        if (chat := self.chats.get(record.id)) is None:
            return
        chat.record = record
        chat.cancel(set(_ids(payload.get("canceledMessageIds"))))
        if payload.get("queue") is not None:
            chat.reorder(_ids(payload["queue"]))

    def _deleted(self, payload: dict[str, Any]) -> None:
        self.chats.pop(UUID(payload["chatId"]), None)
        self.deleted.add(UUID(payload["chatId"]))

    def _accepted(self, payload: dict[str, Any]) -> None:
        chat, message = self._find(payload), self._messages.get(UUID(payload["messageId"]))
        if chat and message:
            chat.known.add(message.message_id)
            chat.queue.insert(chat.place_of_new(message.message_id), message)

    def _started(self, payload: dict[str, Any]) -> None:
        message = self._messages.pop(UUID(payload["messageId"]), None)
        chat = self._find(payload)
        if chat and message:
            chat.queue = [one for one in chat.queue if one.message_id != message.message_id]
            chat.open_turn = OpenTurn(message)
            chat.last = message

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
        f"#{CHAT_NOTE}": _created,
        f"#{MESSAGE_NOTE}": _message,
        f"#{SESSION_NOTE}": _session,
        f"#{DELETED_NOTE}": _deleted,
        EventType.CHAT_CREATED.value: _created,
        EventType.CHAT_UPDATED.value: _updated,
        EventType.CHAT_DELETED.value: _deleted,
        EventType.CHAT_TURN_ACCEPTED.value: _accepted,
        EventType.CHAT_TURN_STARTED.value: _started,
        EventType.CHAT_TURN_DELTA.value: _delta,
        EventType.CHAT_TURN_COMPLETED.value: _completed,
    }


_FOLDS = ChatFold.FOLDS


def _ids(texts: list[str] | None) -> list[UUID]:
    return [UUID(text) for text in texts or []]


def _may_matter(line: bytes) -> bool:
    return b'"turn-result"' in line or b'"user-message"' in line
