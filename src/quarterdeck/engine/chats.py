"""The chats of a workspace, each with its own `ChatRunner`.

Changes by hand (of a turn, queue or goal, and deletion) are in `chat_commands`.

A message is accepted by writing its content and its acceptance into the journal in one durable
write; from then on it is run once, whatever is killed. From the journal a new engine also restores
chats, queues and turns that were running.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from uuid import UUID

from quarterdeck.engine import turn_events
from quarterdeck.engine.agent_session import AgentPlace
from quarterdeck.engine.chat_state import ChatFold, EngineChat
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.journal import EntryTooLargeError, Journal, JournalDraft, JournalNote, event
from quarterdeck.engine.running_turn import Budget
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.engine.turns import ChatRunner
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import Delivered, DeliverMessage, OpenChat, RenameEngineChat
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EngineStatus, EngineStatusChanged, EventType

logger = logging.getLogger(__name__)


class ChatRegistry:
    """All chats by id, as `fold` read them from the journal; `start` continues them.

    While `held`, turns that were cut off are closed and messages accepted, but nothing is run
    until `release`: cancellations made while there was no engine must arrive first. `extra` returns
    drafts that go with every change (the engine's counts). `restored` says what was restored from a
    save: each chat that had begun before, and its agent, is told.
    """

    def __init__(
        self,
        fold: ChatFold,
        place: AgentPlace,
        journal: Journal,
        on_turn_end: Callable[[], None],
        extra: Callable[[int, int], list[JournalDraft]],
        held: bool = False,
        restored: str | None = None,
    ) -> None:
        self._place = place
        self._journal = journal
        self._on_turn_end = on_turn_end
        self._extra = extra
        self._tasks = TaskOwner()
        self._started = False
        self._locks: dict[UUID, asyncio.Lock] = {}
        self._deleted = fold.deleted
        self.held = held
        self._restored = restored
        self._budget = Budget(fold.spent, lambda: place.permissions().cost_limit)
        self._runners = {id: self._runner(state) for id, state in fold.chats.items()}

    @property
    def total(self) -> int:
        return len(self._runners)

    @property
    def processing(self) -> int:
        return sum(runner.chat.record.processing for runner in self._runners.values())

    @property
    def held_back(self) -> list[UUID]:
        """Chats whose work waits for a higher cost limit."""
        return [id for id, runner in self._runners.items() if runner.held_back]

    @property
    def working(self) -> bool:
        """Whether a turn runs or messages that are not held are queued."""
        return any(runner.working for runner in self._runners.values())

    def start(self) -> None:
        """Close turns that were cut off and continue the queues."""
        self._started = True
        for runner in self._runners.values():
            runner.wake()

    async def open(self, request: OpenChat) -> EventChat:
        """Make a chat; a known id is answered with the chat as it is.

        Raises:
            EngineRefusedError: NOT_FOUND: it was deleted.
            JournalError: the chat was not made.
        """
        async with self.lock(request.chat_id):
            if request.chat_id in self._deleted:
                raise EngineRefusedError.not_found("The chat was deleted.")
            if runner := self._runners.get(request.chat_id):
                return runner.chat.record
            now = utc_now()
            record = EventChat(
                id=request.chat_id,
                provider=request.provider,
                title=request.title,
                created_at=request.created_at or now,
                updated_at=request.created_at or now,
                parent_chat_id=request.parent_chat_id,
                last_message_text=request.last_message_text,
                goal=request.goal,
                plan_ready=request.plan_ready,
                turn_failed=request.turn_failed,
                permission_mode=request.permission_mode,
                model=request.model,
                thinking_level=request.thinking_level,
            )
            state = EngineChat(record)
            state.keep_settings()
            parts: list[JournalDraft | JournalNote] = [turn_events.opened(state)]
            if self._restored and request.last_message_text is not None:
                state.notices = [self._restored]
                parts.append(turn_events.restored(state, self._restored))
                parts.append(turn_events.notices_changed(state))
            await self._journal.append(*parts, durable=True, refusable=True)
            self._runners[record.id] = self._runner(state)
        await self._publish()
        return record

    async def rename(self, request: RenameEngineChat) -> EventChat:
        """Give a chat its title.

        Raises:
            EngineRefusedError: NOT_FOUND.
            JournalError: the title is as it was.
        """
        chat = self.find(request.chat_id).chat
        before = chat.record.title
        try:
            await self._journal.append(
                turn_events.updated(chat, title=request.title), durable=True, refusable=True
            )
        except EngineRefusedError:
            chat.record = chat.record.model_copy(update={"title": before})
            raise
        return chat.record

    async def send(self, message: DeliverMessage, *, wake: bool = True) -> Delivered:
        """Accept a message; a known id changes nothing. Without `wake` an idle chat stays idle.

        Raises:
            EngineRefusedError: NOT_FOUND, or PAYLOAD_TOO_LARGE.
            JournalError: the message was not accepted.
        """
        runner = self.find(message.chat_id)
        async with self.lock(message.chat_id):
            if message.message_id not in runner.chat.known:
                await self._accept(runner, message)
        if wake and self._started:  # else the workspace is being set up, and `start` continues it
            runner.wake()
        return _place_of(runner.chat, message.message_id)

    async def review_questions(self) -> None:
        """Answer the agents' open questions that the permissions, which have changed, decide.

        Run what a cost limit held back.
        """
        for runner in list(self._runners.values()):
            await runner.review_questions()
        if self._started:
            self.start()

    async def stop(self, by_request: bool = False) -> None:
        """End every turn and agent; queues stay for the next engine.

        `by_request`: a person puts the workspace to rest, so the turns have not failed.
        """
        await asyncio.gather(*(runner.stop(by_request) for runner in self._runners.values()))
        await self._tasks.close()

    async def _accept(self, runner: ChatRunner, message: DeliverMessage) -> None:
        chat = runner.chat
        position = chat.place_of_new(message.message_id) + 1 if chat.busy else None
        try:
            drafts = turn_events.accepted(message, position)
            turn_events.user_message(message)
        except EntryTooLargeError as error:
            raise EngineRefusedError(
                ErrorCode.PAYLOAD_TOO_LARGE, "The message is too large.", str(error)
            ) from error
        await self._journal.append(*drafts, durable=True, refusable=True)
        chat.known.add(message.message_id)
        chat.queue.insert(chat.place_of_new(message.message_id), message)

    async def _publish(
        self, *drafts: JournalDraft | JournalNote, durable: bool = False, relaxed: bool = False
    ) -> None:
        parts = (*drafts, *self._extra(self.total, self.processing))
        if parts and relaxed:
            await self._journal.append_relaxed(*parts)
        elif parts:
            await self._journal.append(*parts, durable=durable)

    def _runner(self, state: EngineChat) -> ChatRunner:
        return ChatRunner(
            state,
            self._place,
            self._publish,
            self._tasks,
            self._on_turn_end,
            lambda: self.held,
            self._budget,
        )

    # For the commands

    def lock(self, chat_id: UUID) -> asyncio.Lock:
        """Return the lock that is held while a chat's queue, or the chat itself, is changed."""
        return self._locks.setdefault(chat_id, asyncio.Lock())

    def queues(self) -> dict[UUID, list[UUID]]:
        """Return the messages that wait, by chat."""
        queues = {id: runner.chat.held_ids() for id, runner in self._runners.items()}
        return {id: waiting for id, waiting in queues.items() if waiting}

    def open_turns(self) -> dict[UUID, UUID]:
        """Return the messages of unclosed turns in which an earlier engine was cut off."""
        chats = [runner.chat for runner in self._runners.values()]
        return {
            chat.record.id: chat.open_turn.message.message_id
            for chat in chats
            if chat.open_turn is not None
        }

    def release(self) -> None:
        """Run what was held."""
        self.held = False
        if self._started:
            self.start()

    def for_question(self, chat_id: UUID | None) -> ChatRunner | None:
        """Return the runner of a chat, or of the most recently active one."""
        if chat_id is not None and (runner := self._runners.get(chat_id)):
            return runner
        return max(
            self._runners.values(),
            key=lambda runner: (runner.chat.record.processing, runner.chat.record.updated_at),
            default=None,
        )

    def runner(self, chat_id: UUID) -> ChatRunner | None:
        """Return the runner of a chat, or None."""
        return self._runners.get(chat_id)

    def forget(self, chat_id: UUID) -> None:
        """Note that the chat was deleted; its id is not accepted again."""
        self._deleted.add(chat_id)
        self._runners.pop(chat_id, None)

    def find(self, chat_id: UUID) -> ChatRunner:
        """Return the runner of a chat.

        Raises:
            EngineRefusedError: NOT_FOUND.
        """
        runner = self._runners.get(chat_id)
        if runner is None:
            raise EngineRefusedError.not_found("There is no chat with this id.")
        return runner


def _place_of(chat: EngineChat, message_id: UUID) -> Delivered:
    waiting = chat.waiting_ids()
    if message_id not in waiting:
        return Delivered(queued=False)
    place = waiting.index(message_id)
    idle = chat.current is None and chat.open_turn is None
    if idle and place == 0:
        return Delivered(queued=False)  # it is the next thing to happen
    return Delivered(queued=True, position=place + 1)


@dataclass
class Counts:
    """Uptime, activity, and the counts that were reported last. `now` counts seconds."""

    repos_total: int
    listeners: Callable[[], int]
    now: Callable[[], float] = monotonic

    def __post_init__(self) -> None:
        self._started = self.now()
        self._reported = (0, 0)
        self._active_at = self._started

    def touch(self) -> None:
        """Note that the workspace is in use. Cheap, may be called often."""
        self._active_at = self.now()

    def rested(self, seconds: float) -> None:
        """Note that nobody used the workspace for this long."""
        self._active_at = self.now() - seconds

    @property
    def idle_seconds(self) -> float:
        """Seconds since the workspace was last used."""
        return self.now() - self._active_at

    def status(self, chats_total: int, chats_processing: int) -> EngineStatus:
        return EngineStatus(
            uptime_seconds=int(self.now() - self._started),
            active_sse_clients=self.listeners(),
            chats_total=chats_total,
            chats_processing=chats_processing,
            repos_total=self.repos_total,
        )

    def news(self, chats_total: int, chats_processing: int) -> list[JournalDraft]:
        """Return an `engine.status.changed` entry when the chats' counts have changed."""
        if self._reported == (chats_total, chats_processing):
            return []
        self._reported = (chats_total, chats_processing)
        changed = EngineStatusChanged(status=self.status(chats_total, chats_processing))
        return [event(EventType.ENGINE_STATUS_CHANGED, changed.model_dump(exclude_none=True))]
