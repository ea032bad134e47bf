"""The state of a chat.

Kept in memory for each chat, and read back from the journal at start.

While it runs, the engine changes this state first and then journals the change; at start the same
state is folded from the journal's entries and notes:

    #chat       a new chat; older journals have `chat.created` instead
    #message    content of a message, before its `chat.turn.accepted`
    #session    the agent's session id, so that the session can be reopened, and its settings
    #notices    notices for the next prompt of a chat's agent
    #cost       what the person was told about the cost of a chat
    #steering   a message that is being put into the running turn; `chat.updated` says how it ended
    #deleted    a chat whose end is in the event log already
"""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any
from uuid import UUID

from quarterdeck.engine.journal import payload_of_line
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.events import EventType
from quarterdeck.wire.history import AgentEvent, AgentEventType

CHAT_NOTE = "chat"
MESSAGE_NOTE = "message"
SESSION_NOTE = "session"
NOTICES_NOTE = "notices"
COST_NOTE = "cost"
STEERING_NOTE = "steering"
DELETED_NOTE = "deleted"


@dataclass(frozen=True)
class OpenTurn:
    """A turn that an earlier engine did not finish, and which parts of it were journaled."""

    message: DeliverMessage
    message_shown: bool = False
    result_shown: bool = False


DOLLARS = "USD"


@dataclass
class ReportedCost:
    """What the session of an agent has cost, as the agent reports it.

    Agents report the total of the session. One that reports less than before has started to count
    from zero.
    """

    total: float | None = None
    """None when it is not known what the session has cost before."""
    currency: str = ""
    """Empty when no cost was reported."""
    told_unknown: bool = False
    """Whether the person was told that it is not reported."""
    told_limit: float | None = None
    """The cost limit of which the person was told, since the last turn began, that it is reached."""

    @property
    def in_dollars(self) -> bool:
        return self.currency == DOLLARS

    def hear(self, update: dict[str, Any]) -> float:
        """Follow an update of the session; return what it adds, in the currency that was reported."""
        match update:
            case {
                "sessionUpdate": "usage_update",
                "cost": {"amount": int() | float() as amount, "currency": str() as currency},
            } if isfinite(amount) and amount >= 0 and currency.isalpha():
                before, self.total, self.currency = self.total, float(amount), currency
                if before is None:
                    return 0.0
                return amount - before if amount >= before else float(amount)
            case _:
                return 0.0


@dataclass
class EngineChat:
    """One chat. `record` is the chat as events show it; `queue` is in the order to run."""

    record: EventChat
    queue: list[DeliverMessage] = field(default_factory=list[DeliverMessage])
    known: set[UUID] = field(default_factory=set[UUID])
    """Every message ever accepted, or canceled before it came."""
    canceled: set[UUID] = field(default_factory=set[UUID])
    order: list[UUID] = field(default_factory=list[UUID])
    """The order that was requested last; messages that arrive later take their places in it."""
    last: DeliverMessage | None = None
    """The message whose turn started last; the next turn towards a goal uses its options."""
    current: DeliverMessage | None = None
    """The message of the running turn."""
    steering: DeliverMessage | None = None
    """The message that is being put into the running turn: in no queue, and perhaps with the agent."""
    model: str | None = None
    """The model chosen last; messages that name none use it."""
    permission_mode: str | None = None
    """The permission mode chosen last, by a person or the agent; None: the agent's own."""
    thinking_level: str | None = None
    """The thinking level chosen last; messages that name none use it."""
    session_id: str | None = None
    notices: list[str] = field(default_factory=list[str])
    """Notices for the agent's next prompt; kept until a turn that carries them succeeds."""
    open_turn: OpenTurn | None = None
    cost: ReportedCost = field(default_factory=ReportedCost)

    def keep_settings(self) -> None:
        """Choose what the record shows: the chat is from an engine that was lost."""
        shown = self.record
        self.permission_mode = shown.permission_mode and shown.permission_mode.id
        self.model = shown.model and shown.model.id
        self.thinking_level = shown.thinking_level and shown.thinking_level.id

    @property
    def busy(self) -> bool:
        return self.current is not None or bool(self.queue) or self.open_turn is not None

    def waiting_ids(self) -> list[UUID]:
        return [message.message_id for message in self.queue]

    def held_ids(self) -> list[UUID]:
        """Return the messages that have not run, with one that was being put into a turn."""
        steering = [] if self.steering is None else [self.steering.message_id]
        return [*steering, *self.waiting_ids()]

    def place_of_new(self, message_id: UUID) -> int:
        """Return the place in the queue of a message that arrives now, from 0."""
        if message_id not in self.order:
            return len(self.queue)
        later = set(self.order[self.order.index(message_id) + 1 :])
        places = (n for n, message in enumerate(self.queue) if message.message_id in later)
        return next(places, len(self.queue))

    def expected_order(self) -> list[UUID]:
        """Return the queue in order, with messages that are expected and not here yet."""
        waiting = self.waiting_ids()
        named = [id for id in self.order if id in waiting or id not in self.known]
        return [*named, *(id for id in waiting if id not in named)]

    def reorder(self, order: list[UUID]) -> None:
        """Sort the queue; messages that the order does not name come after the others."""
        self.order = order
        ranks = {message_id: rank for rank, message_id in enumerate(order)}
        self.queue.sort(key=lambda message: ranks.get(message.message_id, len(ranks)))

    def take_for_turn(self, message: DeliverMessage) -> None:
        """Take a message out of the queue, to put it into the running turn."""
        self.queue = [queued for queued in self.queue if queued is not message]
        self.steering = message

    def put_back(self, place: int) -> None:
        """Return the message to its place in the queue: the turn did not take it."""
        assert self.steering is not None
        self.queue.insert(place, self.steering)
        self.steering = None

    def replace(self, message_ids: list[UUID], message: DeliverMessage) -> None:
        """Put a message in the place of the first of some, which never run."""
        expected = self.expected_order()
        places = (expected.index(id) for id in message_ids if id in expected)
        expected.insert(min(places, default=len(expected)), message.message_id)
        self.cancel(set(message_ids))
        self.order = [id for id in expected if id not in message_ids]
        self.known.add(message.message_id)
        self.queue.insert(self.place_of_new(message.message_id), message)

    def cancel(self, message_ids: set[UUID]) -> None:
        """Take messages out of the queue for good; those that have not arrived never run."""
        self.queue = [message for message in self.queue if message.message_id not in message_ids]
        self.known |= message_ids
        self.canceled |= message_ids


class ChatFold:
    """Builds the chats from a journal's lines in order; give `visit` to the journal."""

    def __init__(self) -> None:
        self.chats: dict[UUID, EngineChat] = {}
        self.deleted: set[UUID] = set()
        self.spent = 0.0
        """Cost of all chats in dollars, as far as their agents reported it."""
        self._messages: dict[UUID, DeliverMessage] = {}

    def visit(self, type: str, line: bytes) -> None:
        """Fold one line. Deltas are skipped unless a cost, or a turn's start or end may be in them."""
        if type == EventType.CHAT_TURN_DELTA and not _may_matter(line):
            return
        fold = _FOLDS.get(type)
        if fold is not None:
            fold(self, payload_of_line(line))

    def lost_end(self) -> None:
        """Note that later lines are lost: the service knows how the turns that seem open ended."""
        for chat in self.chats.values():
            chat.open_turn = None

    def _message(self, data: dict[str, Any]) -> None:
        message = DeliverMessage.model_validate(data)
        self._messages[message.message_id] = message

    def _session(self, data: dict[str, Any]) -> None:
        if chat := self._find(data):
            if chat.session_id != data["sessionId"]:
                chat.cost.total = 0.0
            chat.session_id = data["sessionId"]
            chat.model = data.get("model")
            chat.permission_mode = data.get("permissionMode")
            chat.thinking_level = data.get("thinkingLevel")

    def _noticed(self, data: dict[str, Any]) -> None:
        if chat := self._find(data):
            chat.notices = data["notices"]

    def _cost_told(self, data: dict[str, Any]) -> None:
        if chat := self._find(data):
            chat.cost.told_unknown, chat.cost.told_limit = data["unknown"], data["limit"]

    def _created(self, payload: dict[str, Any]) -> None:
        record = EventChat.model_validate(payload["chat"])
        chat = self.chats[record.id] = EngineChat(record)
        chat.keep_settings()

    def _updated(self, payload: dict[str, Any]) -> None:
        record = EventChat.model_validate(payload["chat"])
        if (chat := self.chats.get(record.id)) is None:
            return
        chat.record = record
        chat.cancel(set(_ids(payload.get("canceledMessageIds"))))
        if payload.get("steeredMessageIds"):
            chat.steering = None
        if payload.get("queue") is not None:
            order = _ids(payload["queue"])
            if chat.steering is not None and chat.steering.message_id in order:
                chat.put_back(0)
            chat.reorder(order)

    def _deleted(self, payload: dict[str, Any]) -> None:
        self.chats.pop(UUID(payload["chatId"]), None)
        self.deleted.add(UUID(payload["chatId"]))

    def _accepted(self, payload: dict[str, Any]) -> None:
        chat, message = self._find(payload), self._messages.get(UUID(payload["messageId"]))
        if chat and message:
            chat.known.add(message.message_id)
            chat.queue.insert(chat.place_of_new(message.message_id), message)

    def _steering(self, data: dict[str, Any]) -> None:
        chat, message = self._find(data), self._messages.get(UUID(data["messageId"]))
        if chat and message and message in chat.queue:
            chat.take_for_turn(message)

    def _started(self, payload: dict[str, Any]) -> None:
        message = self._messages.pop(UUID(payload["messageId"]), None)
        chat = self._find(payload)
        if chat and message:
            chat.queue = [
                queued for queued in chat.queue if queued.message_id != message.message_id
            ]
            chat.open_turn = OpenTurn(message)
            chat.cost.told_limit = None
            if message.origin is None:
                chat.last = message

    def _delta(self, payload: dict[str, Any]) -> None:
        chat, event = self._find(payload), payload["event"]
        if chat is None:
            return
        if event["type"] == AgentEventType.SESSION_UPDATE:
            added = chat.cost.hear(event["payload"])
            self.spent += added if chat.cost.in_dollars else 0.0
        if (turn := chat.open_turn) is None:
            return
        match event["type"]:
            case AgentEventType.USER_MESSAGE | AgentEventType.TURN_STARTED:
                chat.open_turn = OpenTurn(turn.message, True, turn.result_shown)
            case AgentEventType.TURN_RESULT:
                chat.open_turn = OpenTurn(turn.message, turn.message_shown, True)
            case _:
                pass

    def _completed(self, payload: dict[str, Any]) -> None:
        if chat := self._find(payload):
            chat.open_turn = None

    def _find(self, payload: dict[str, Any]) -> EngineChat | None:
        return self.chats.get(UUID(payload["chatId"]))

    FOLDS = {
        f"#{CHAT_NOTE}": _created,
        f"#{MESSAGE_NOTE}": _message,
        f"#{SESSION_NOTE}": _session,
        f"#{NOTICES_NOTE}": _noticed,
        f"#{COST_NOTE}": _cost_told,
        f"#{STEERING_NOTE}": _steering,
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
    return any(kind in line for kind in _KINDS)


_KINDS = (b'"turn-result"', b'"user-message"', b'"turn-started"', b'"usage_update"')


SHOWN_CHARACTERS = 500


class LastMessage:
    """Follows a turn's events and keeps the start of the agent's newest message."""

    def __init__(self, user_text: str) -> None:
        self._text = user_text
        self._speaking = False
        self.spoken = False
        """Whether the agent said anything in the turn."""

    @property
    def text(self) -> str:
        return self._text[:SHOWN_CHARACTERS].strip()

    def restart(self, text: str) -> None:
        """Note that the person said something in the turn."""
        self._text, self._speaking = text, False

    def hear(self, event: AgentEvent) -> None:
        if event.type != AgentEventType.SESSION_UPDATE:
            return
        text = spoken(event)
        self.spoken = self.spoken or bool(text and text.strip())
        if text is None:
            self._speaking = False
        elif not self._speaking:
            self._text, self._speaking = text, True
        elif len(self._text) < SHOWN_CHARACTERS:
            self._text += text


def spoken(event: AgentEvent) -> str | None:
    """Return what an event adds to the agent's message; None when it is something else."""
    match event.payload:
        case {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": str(text)},
        }:
            return text
        case _:
            return None
