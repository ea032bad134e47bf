"""One chat as the cockpit knows it: its record, queue, unsent messages and, when open, transcript."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from quarterdeck.store.disk import Outgoing
from quarterdeck.store.tokens import TokenUse
from quarterdeck.transcript.blocks import UserBlock
from quarterdeck.transcript.fold import Change as TranscriptFold
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.events import TurnDelta
from quarterdeck.wire.history import AgentEvent, AgentEventType, History
from quarterdeck.wire.messages import QueuedMessage


@dataclass
class ChatState:
    """State of a chat. `transcript` is None until the chat is opened."""

    record: Chat
    queue: list[QueuedMessage] = field(default_factory=list[QueuedMessage])
    outgoing: list[Outgoing] = field(default_factory=list[Outgoing])
    transcript: Transcript | None = None
    before_cursor: str | None = None
    turn_started_at: datetime | None = None
    turn_message_id: str | None = None
    last_turn_failed: bool = False
    loading: bool = False
    tokens: TokenUse = field(default_factory=TokenUse)
    model: str | None = None
    """The model that the person wants from the next message on; None: the agent's own choice."""
    _started: set[str] = field(default_factory=set[str])
    _early: list[tuple[int | None, AgentEvent]] = field(
        default_factory=list[tuple[int | None, AgentEvent]]
    )

    def __post_init__(self) -> None:
        self._take_beginning()

    @property
    def id(self) -> UUID:
        return self.record.id

    @property
    def plan_waits(self) -> bool:
        """Whether a plan waits for the person's word."""
        if self.record.processing or self.record.awaiting_input:
            return False
        if self.record.plan_ready is not None:
            return self.record.plan_ready
        return self._shows_plan()

    def _shows_plan(self) -> bool:
        """Whether the newest turn was to make a plan, and has ended well: not every server says so."""
        if self.transcript is None or self.transcript.turn.stop_reason != "end_turn":
            return False
        blocks = reversed(self.transcript.blocks)
        newest = next((block for block in blocks if isinstance(block, UserBlock)), None)
        return newest is not None and newest.plan_mode and newest.turn is self.transcript.turn

    @property
    def has_older(self) -> bool:
        """Whether earlier pages of the history exist."""
        return self.before_cursor is not None

    def take_record(self, record: Chat) -> None:
        """Takes over what the service says of the chat."""
        self.record = record
        self._take_beginning()

    def _take_beginning(self) -> None:
        # A server may say that a turn runs, and not since when.
        if not self.record.processing:
            self.turn_started_at = None
        elif self.record.processing_since is not None:
            self.turn_started_at = self.record.processing_since

    def begin_loading(self) -> None:
        """Deltas that arrive from now on are kept aside until the page is here."""
        self.loading = True
        self._early.clear()

    def finish_loading(self, page: History) -> None:
        """Starts the transcript from the newest page and joins what arrived meanwhile to it.

        The page says which index of the event log it reflects; deltas up to it are in the page
        already. A server that does not say so has them told apart by their content.
        """
        transcript = Transcript(page.events)
        self.tokens = TokenUse().after_all(page.events)
        tail = page.events[-len(self._early) :] if self._early else []
        for index, event in self._early:
            if page.log_index is not None and index is not None:
                known = index <= page.log_index
            else:
                known = event in tail
            if not known:
                transcript.append(event)
                self.tokens = self.tokens.after(event)
        self._early.clear()
        self.loading = False
        self.transcript = transcript
        self.before_cursor = page.before_cursor

    def abandon_loading(self) -> None:
        """The page did not come; the transcript stays as it was."""
        self.loading = False
        self._early.clear()

    def add_older(self, page: History) -> TranscriptFold | None:
        """Puts an earlier page in front."""
        self.before_cursor = page.before_cursor
        if self.transcript is None:
            return None
        return self.transcript.prepend(page.events)

    def add_delta(self, index: int | None, delta: TurnDelta) -> TranscriptFold | None:
        """Folds one agent event in; None when the chat's transcript is not open."""
        if delta.event.type == AgentEventType.TURN_RESULT:
            self.last_turn_failed = delta.event.payload.get("stopReason") == "failed"
        self.tokens = self.tokens.after(delta.event)
        if self.loading:
            self._early.append((index, delta.event))
            return None
        if self.transcript is None:
            return None
        return self.transcript.append(delta.event)

    def take_queue(self, queue: list[QueuedMessage]) -> None:
        """Takes over the queue as read; what has started since it was read is left out."""
        self.queue = [entry for entry in queue if str(entry.id) not in self._started]

    def start_turn(self, message_id: str, at: datetime) -> None:
        """The agent has a message now: it waits no longer."""
        self._started.add(message_id)
        self.take_queue(self.queue)
        self.turn_started_at = at
        self.turn_message_id = message_id
        self.last_turn_failed = False
        self.record.processing = True
        if self.record.plan_ready is not None:
            self.record.plan_ready = False

    def end_turn(self, processing: bool, plan_ready: bool | None = None) -> None:
        """The turn is over; `plan_ready` when that is told."""
        if plan_ready is not None:
            self.record.plan_ready = plan_ready
        self.record.processing_since = None
        self.turn_started_at = None
        self.turn_message_id = None
        self.record.processing = processing
