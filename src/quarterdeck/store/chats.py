"""Chats of a replica: their state, commands and tokens."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast
from uuid import UUID

from quarterdeck.client.errors import ConflictError, NotFoundError
from quarterdeck.store.disk import OutgoingMessage
from quarterdeck.store.signals import ChatChange, ListChanged, ReplicaChanged
from quarterdeck.transcript.blocks import PlanState, QuestionBlock, UserBlock
from quarterdeck.transcript.fold import BlockChanges as TranscriptFold
from quarterdeck.transcript.fold import Transcript
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.chats import (
    Chat,
    ChatSettings,
    CreateChat,
    QueuedMessage,
    SlashCommand,
    UpdateGoal,
    UpdateSettings,
)
from quarterdeck.wire.events import TurnDelta
from quarterdeck.wire.history import NOTED_STATE, AgentEvent, AgentEventType, History

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.agents import Agent, AgentModels
    from quarterdeck.wire.files import CanvasUpload, FoundFile


_USAGE_UPDATE = "usage_update"


class TokenUse(NamedTuple):
    """`context` of `window` tokens are used; `turn` is the use of the turn that ended last.

    `cost` is the cost of the chat as the agent reports it, in units of `currency` (ISO 4217).
    """

    context: int | None = None
    window: int | None = None
    turn: int | None = None
    cost: float | None = None
    currency: str = ""
    session_cost: float = 0.0
    """Of the agent's current session: a restarted agent counts from zero."""

    def after(self, event: AgentEvent) -> "TokenUse":
        """Return the use after an event; itself when the event does not change it."""
        payload = event.payload
        match event.type:
            case AgentEventType.SESSION_UPDATE if payload.get("sessionUpdate") == _USAGE_UPDATE:
                used, size = _count(payload.get("used")), _count(payload.get("size"))
                return self._with_cost(payload.get("cost"))._replace(context=used, window=size)
            case AgentEventType.TURN_RESULT:
                usage = payload.get("usage")
                total = _count(usage.get("totalTokens")) if isinstance(usage, dict) else None
                return self if total is None else self._replace(turn=total)
            case _:
                return self

    def _with_cost(self, reported: object) -> "TokenUse":
        """Return the use with the reported total of the agent's session; itself when that is not an amount."""
        match reported:
            case {"amount": int() | float() as amount, "currency": str() as currency}:
                if isinstance(amount, bool) or not isfinite(amount) or amount < 0:
                    return self
            case _:
                return self
        if not currency.isalpha():
            return self
        before = self.session_cost if amount >= self.session_cost else 0.0
        total = (self.cost or 0.0) + amount - before
        return self._replace(cost=total, currency=currency, session_cost=amount)

    def after_all(self, events: Iterable[AgentEvent]) -> "TokenUse":
        """Return the use after several events."""
        use = self
        for event in events:
            use = use.after(event)
        return use


def _noted_state(event: AgentEvent) -> str:
    meta = event.payload.get("_meta")
    return (
        str(cast("dict[str, Any]", meta).get(NOTED_STATE) or "") if isinstance(meta, dict) else ""
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


@dataclass
class ChatState:
    """State of a chat. `transcript` is None until the chat is opened."""

    record: Chat
    queue: list[QueuedMessage] = field(default_factory=list[QueuedMessage])
    outgoing: list[OutgoingMessage] = field(default_factory=list[OutgoingMessage])
    transcript: Transcript | None = None
    before_cursor: str | None = None
    turn_started_at: datetime | None = None
    turn_message_id: str | None = None
    last_turn_failed: bool = False
    loading: bool = False
    tokens: TokenUse = field(default_factory=TokenUse)
    model: str | None = None
    """The model for the next messages; None: the agent's default."""
    noted_state: str = ""
    """What the agent is doing while it does not go on, such as reconnecting; empty for nothing."""
    _started: set[str] = field(default_factory=set[str])
    _early: list[tuple[int | None, AgentEvent]] = field(
        default_factory=list[tuple[int | None, AgentEvent]]
    )

    def __post_init__(self) -> None:
        self._take_turn()

    @property
    def id(self) -> UUID:
        return self.record.id

    @property
    def plan_waits(self) -> bool:
        """Whether a plan waits for the person's approval."""
        if self.record.processing or self.record.awaiting_input:
            return False
        if self.record.plan_ready is not None:
            return self.record.plan_ready
        return self._shows_plan()

    @property
    def plan_progress(self) -> tuple[int, int]:
        """Done steps and all steps of the running turn's plan; no steps without one."""
        plan = self.transcript.turn.plan if self.transcript else None
        if plan is None or not self.record.processing:
            return (0, 0)
        done = sum(entry.state is PlanState.COMPLETED for entry in plan.entries)
        return (done, len(plan.entries))

    @property
    def open_questions(self) -> list[QuestionBlock]:
        """Questions that wait for an answer; the first one is shown, and answered next."""
        if self.transcript is None or not self.record.awaiting_input:
            return []
        return self.transcript.open_questions

    def _shows_plan(self) -> bool:
        """Return whether the newest turn was in plan mode and succeeded: not every server reports it."""
        if self.transcript is None or self.transcript.turn.stop_reason != "end_turn":
            return False
        blocks = reversed(self.transcript.blocks)
        prompts = (b for b in blocks if isinstance(b, UserBlock) and not b.steered)
        newest = next(prompts, None)
        return newest is not None and newest.plan_mode and newest.turn is self.transcript.turn

    @property
    def has_older(self) -> bool:
        """Whether earlier pages of the history exist."""
        return self.before_cursor is not None

    def take_record(self, record: Chat) -> None:
        """Apply the service's record of the chat."""
        self.record = record
        self._take_turn()

    def _take_turn(self) -> None:
        if self.record.turn_failed is not None:
            self.last_turn_failed = self.record.turn_failed
        elif self.record.processing:
            self.last_turn_failed = False
        # A server may report that a turn runs, but not since when.
        if not self.record.processing:
            self.turn_started_at = None
        elif self.record.processing_since is not None:
            self.turn_started_at = self.record.processing_since

    def begin_loading(self) -> None:
        """Buffer the deltas that arrive before the page."""
        self.loading = True
        self._early.clear()

    def finish_loading(self, page: History) -> None:
        """Start the transcript from the newest page and append the deltas that arrived meanwhile.

        The page has the index of the event log that it reflects; it includes deltas up to that. For a
        server without it, deltas are compared by content.
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
        """Note that the page could not be read; the transcript stays as it was."""
        self.loading = False
        self._early.clear()

    def add_older(self, page: History) -> TranscriptFold | None:
        """Prepend an earlier page."""
        self.before_cursor = page.before_cursor
        if self.transcript is None:
            return None
        return self.transcript.prepend(page.events)

    def add_delta(self, index: int | None, delta: TurnDelta) -> TranscriptFold | None:
        """Fold one agent event; return None when the chat's transcript is not open."""
        if delta.event.type == AgentEventType.TURN_RESULT:
            self.last_turn_failed = delta.event.payload.get("stopReason") == "failed"
        self.tokens = self.tokens.after(delta.event)
        self.noted_state = _noted_state(delta.event)
        if self.loading:
            self._early.append((index, delta.event))
            return None
        if self.transcript is None:
            return None
        return self.transcript.append(delta.event)

    def take_queue(self, queue: list[QueuedMessage]) -> None:
        """Apply the queue as read, without messages that have started since."""
        self.queue = [entry for entry in queue if str(entry.id) not in self._started]

    def start_turn(self, message_id: str, at: datetime) -> None:
        """Note that the agent has received a message, which is no longer queued."""
        self._started.add(message_id)
        self.take_queue(self.queue)
        self.turn_started_at = at
        self.turn_message_id = message_id
        self.last_turn_failed = False
        self.record.processing = True
        if self.record.plan_ready is not None:
            self.record.plan_ready = False

    def end_turn(self, processing: bool, plan_ready: bool | None = None) -> None:
        """Note the end of the turn; `plan_ready` is None where the server does not report it."""
        if plan_ready is not None:
            self.record.plan_ready = plan_ready
        self.record.processing_since = None
        self.turn_started_at = None
        self.turn_message_id = None
        self.record.processing = processing


MOST_FILES = 50
"""Files requested by a search for a mention."""


class ChatCommands:
    """Commands on the chats of one service.

    Raises:
        ClientError: from every method, when the service refuses or cannot be reached.
    """

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner

    # chats

    async def create(self, replica_id: UUID, provider: str, model: str | None = None) -> UUID:
        """Create a chat for an agent; `model` is for its messages."""
        record = await self._owner.client.chats.create(replica_id, CreateChat(provider=provider))
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.take_chat(record).model = model
            self._publish_change(replica_id)
        return record.id

    async def rename(self, replica_id: UUID, chat_id: UUID, name: str) -> None:
        """Give a chat its title. Raises `NotActiveError` too."""
        record = await self._owner.client.chats.rename(replica_id, chat_id, name)
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.take_chat(record)
            self._publish_change(replica_id)

    async def delete(self, replica_id: UUID, chat_id: UUID) -> None:
        """Delete a chat with its history; not an error when it was already deleted."""
        with contextlib.suppress(NotFoundError):
            await self._owner.client.chats.delete(replica_id, chat_id)
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.chats.pop(chat_id, None)
            self._publish_change(replica_id)

    # goal

    async def set_goal(
        self, replica_id: UUID, chat_id: UUID, objective: str | None, budget: int | None
    ) -> bool:
        """Set a goal, or only its budget; False when the chat's agent has no goals."""
        change = UpdateGoal(objective=objective, token_budget=budget)
        return await self._change_goal(replica_id, chat_id, change)

    async def switch_goal(
        self, replica_id: UUID, chat_id: UUID, status: Literal["active", "paused"]
    ) -> bool:
        """Pause or resume the goal; False when the chat's agent has no goals."""
        return await self._change_goal(replica_id, chat_id, UpdateGoal(status=status))

    async def remove_goal(self, replica_id: UUID, chat_id: UUID) -> None:
        """Remove the goal; a running turn continues."""
        await self._owner.client.chats.delete_goal(replica_id, chat_id)
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None:
            chat.record.goal = None
            self._owner.publish(ChatChange(replica_id, chat_id))

    async def _change_goal(self, replica_id: UUID, chat_id: UUID, change: UpdateGoal) -> bool:
        goal = await self._owner.client.chats.update_goal(replica_id, chat_id, change)
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None and goal is not None:
            chat.record.goal = goal
            self._owner.publish(ChatChange(replica_id, chat_id))
        return goal is not None

    # settings of the agent

    async def settings(self, replica_id: UUID, chat_id: UUID) -> ChatSettings:
        """Return what the chat's agent offers."""
        return await self._owner.client.chats.settings(replica_id, chat_id)

    async def change_setting(self, replica_id: UUID, chat_id: UUID, name: str, value: str) -> None:
        """Change the permission mode or the thinking level. Raises `NotActiveError` too."""
        change = UpdateSettings.model_validate({name: value})
        record = await self._owner.client.chats.update_settings(replica_id, chat_id, change)
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None:
            chat.take_record(record)
            self._owner.publish(ChatChange(replica_id, chat_id))

    # queue

    async def dequeue(self, replica_id: UUID, chat_id: UUID, message: QueuedMessage) -> bool:
        """Remove a message from the queue; False when it has started meanwhile."""
        messages = self._owner.client.messages
        try:
            queue = await messages.remove_queued(replica_id, chat_id, message.id)
        except (ConflictError, NotFoundError):
            return False
        self._take_queue(replica_id, chat_id, queue)
        return True

    async def move_queued(
        self, replica_id: UUID, chat_id: UUID, message: QueuedMessage, by: int
    ) -> bool:
        """Move a message in the queue; False when there is no such place, or it has started."""
        chat = self._owner.chat(replica_id, chat_id)
        order = [entry.id for entry in chat.queue] if chat else []
        place = order.index(message.id) + by if message.id in order else -1
        if not 0 <= place < len(order):
            return False
        messages = self._owner.client.messages
        try:
            queue = await messages.reorder_queue(replica_id, chat_id, message.id, place)
        except (ConflictError, NotFoundError):
            return False
        self._take_queue(replica_id, chat_id, queue)
        return True

    async def steer(self, replica_id: UUID, chat_id: UUID, message_id: UUID) -> None:
        """Put a queued message into the running turn; not an error when it has started meanwhile."""
        messages = self._owner.client.messages
        try:
            queue = (await messages.steer(replica_id, chat_id, message_id)).queue
        except (ConflictError, NotFoundError):
            queue = await self.read_queue(replica_id, chat_id)
            if any(entry.id == message_id for entry in queue):
                raise
        else:
            self._take_queue(replica_id, chat_id, queue)

    async def read_queue(self, replica_id: UUID, chat_id: UUID) -> list[QueuedMessage]:
        """Return the messages that wait, also those whose events have not come yet."""
        queue = (await self._owner.client.messages.queue(replica_id, chat_id)).queue
        self._take_queue(replica_id, chat_id, queue)
        return queue

    async def join_queued(
        self, replica_id: UUID, chat_id: UUID, message: QueuedMessage | None = None
    ) -> UUID | None:
        """Join a queued message to the one before it, or all that wait.

        Returns:
            The new message; None when there is none before.
        """
        chat = self._owner.chat(replica_id, chat_id)
        order = [entry.id for entry in chat.queue] if chat else []
        parts: list[UUID] | None = None
        if message is not None:
            place = order.index(message.id) if message.id in order else 0
            if not place:
                return None
            parts = [order[place - 1], message.id]
        queue = await self._owner.client.messages.join(replica_id, chat_id, parts)
        self._take_queue(replica_id, chat_id, queue)
        return next((entry.id for entry in queue if entry.id not in order), None)

    def _take_queue(self, replica_id: UUID, chat_id: UUID, queue: list[QueuedMessage]) -> None:
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None:
            chat.take_queue(queue)
            self._owner.publish(ChatChange(replica_id, chat_id))

    # content of messages

    async def slash_commands(self, replica_id: UUID, chat_id: UUID) -> list[SlashCommand]:
        """Return the slash commands that a message may start with."""
        return await self._owner.client.chats.slash_commands(replica_id, chat_id)

    async def find_files(self, replica_id: UUID, query: str) -> "list[FoundFile]":
        """Return the files of the repositories, best match first."""
        page = await self._owner.client.files.search(replica_id, query, limit=MOST_FILES)
        return page.files

    async def upload(self, replica_id: UUID, path: Path, content: bytes) -> "CanvasUpload":
        """Upload a file to the canvas; for a replica that is not active it waits for the start."""
        return await self._owner.client.canvas.upload(replica_id, path.name, content)

    async def agents(self) -> "list[Agent]":
        """Return the agents that the service knows, usable ones first."""
        agents = await self._owner.client.agents.list()
        return sorted(agents, key=lambda agent: not agent.available)

    async def unsteerable(self, provider: str) -> str | None:
        """Return the name of an agent that takes no messages while it works; None for another."""
        agent = next((one for one in await self.agents() if one.id == provider), None)
        if agent is not None and agent.supports_steer:
            return None
        return one_line(agent.name if agent else provider)

    async def models(self, agent: str) -> "AgentModels":
        """Return the known models of an agent."""
        return await self._owner.client.agents.models(agent)

    def _publish_change(self, replica_id: UUID) -> None:
        self._owner.publish(ReplicaChanged(replica_id))
        self._owner.publish(ListChanged())
