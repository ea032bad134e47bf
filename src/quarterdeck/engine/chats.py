"""The chats of a workspace: made, named, sent to, interrupted; each with its own `ChatRunner`.

What changes a chat by hand (queue, goal, end) is in `chat_commands`.

A message is taken by writing its content and its acceptance into the journal in one durable write;
from then on it is run once, whatever is killed. The journal is also how a new engine learns of
chats, queues and turns that were under way.
"""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from quarterdeck.engine import turn_events
from quarterdeck.engine.agent_desk import AgentPlace
from quarterdeck.engine.chat_state import ChatFold, ChatState
from quarterdeck.engine.drafts import Draft, EntryTooLarge, Note
from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.journal import Journal
from quarterdeck.engine.tasks import Tasks
from quarterdeck.engine.turns import ChatRunner
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import EventChat, Interrupted
from quarterdeck.wire.engine import (
    Answer,
    Delivered,
    DeliverMessage,
    OpenChat,
    RenameEngineChat,
)
from quarterdeck.wire.errors import ErrorCode

logger = logging.getLogger(__name__)


class Chats:
    """All chats by id, as `fold` read them from the journal; `start` takes them up again.

    While `held`, turns that were cut off are closed and messages taken, but nothing is run until
    `release`: what was canceled while there was no engine is to be told first.
    `extra` is asked for drafts that go with every change (the engine's counts).
    """

    def __init__(
        self,
        fold: ChatFold,
        place: AgentPlace,
        journal: Journal,
        on_turn_end: Callable[[], None],
        extra: Callable[[int, int], list[Draft]],
        held: bool = False,
    ) -> None:
        self._place = place
        self._journal = journal
        self._on_turn_end = on_turn_end
        self._extra = extra
        self._tasks = Tasks()
        self._started = False
        self._locks: dict[UUID, asyncio.Lock] = {}
        self._deleted = fold.deleted
        self.held = held
        self._runners = {id: self._runner(state) for id, state in fold.chats.items()}

    @property
    def total(self) -> int:
        return len(self._runners)

    @property
    def processing(self) -> int:
        return sum(runner.chat.record.processing for runner in self._runners.values())

    def start(self) -> None:
        """Closes turns that were cut off and goes on with the queues."""
        self._started = True
        for runner in self._runners.values():
            runner.wake()

    async def open(self, request: OpenChat) -> EventChat:
        """Makes a chat; a known id is answered with the chat as it is.

        Raises:
            EngineRefused: NOT_FOUND: it was deleted.
            JournalFault: the chat was not made.
        """
        async with self.lock(request.chat_id):
            if request.chat_id in self._deleted:
                raise EngineRefused.not_found("The chat was deleted.")
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
                plan_ready=False,
            )
            state = ChatState(record)
            await self._journal.append(turn_events.opened(state), durable=True, refusable=True)
            self._runners[record.id] = self._runner(state)
        await self._publish()
        return record

    async def rename(self, request: RenameEngineChat) -> EventChat:
        """Gives a chat its title.

        Raises:
            EngineRefused: NOT_FOUND.
            JournalFault: the title is as it was.
        """
        chat = self.find(request.chat_id).chat
        before = chat.record.title
        try:
            await self._journal.append(
                turn_events.updated(chat, title=request.title), durable=True, refusable=True
            )
        except EngineRefused:
            chat.record = chat.record.model_copy(update={"title": before})
            raise
        return chat.record

    async def send(self, message: DeliverMessage) -> Delivered:
        """Takes a message; a known id changes nothing.

        Raises:
            EngineRefused: NOT_FOUND, or PAYLOAD_TOO_LARGE.
            JournalFault: the message was not taken.
        """
        runner = self.find(message.chat_id)
        async with self.lock(message.chat_id):
            if message.message_id not in runner.chat.known:
                await self._accept(runner, message)
        if self._started:  # else the workspace is being set up; `start` takes it up
            runner.wake()
        return _place_of(runner.chat, message.message_id)

    async def interrupt(self, chat_id: UUID) -> Interrupted:
        """Stops the running turn, if there is one, and waits for its end."""
        return await self.find(chat_id).interrupt()

    async def respond(self, answer: Answer) -> None:
        """Answers an agent's question; see `ChatRunner.respond`."""
        await self.find(answer.chat_id).respond(answer)

    async def stop(self) -> None:
        """Ends every turn and agent; queues stay for the next engine."""
        await asyncio.gather(*(runner.stop() for runner in self._runners.values()))
        await self._tasks.close()

    async def _accept(self, runner: ChatRunner, message: DeliverMessage) -> None:
        chat = runner.chat
        position = chat.place_of_new(message.message_id) + 1 if chat.busy else None
        try:
            drafts = turn_events.accepted(message, position)
            turn_events.user_message(message)
        except EntryTooLarge as error:
            raise EngineRefused(
                ErrorCode.PAYLOAD_TOO_LARGE, "The message is too large.", str(error)
            ) from error
        await self._journal.append(*drafts, durable=True, refusable=True)
        chat.known.add(message.message_id)
        chat.queue.insert(chat.place_of_new(message.message_id), message)

    async def _publish(
        self, *drafts: Draft | Note, durable: bool = False, behind: bool = False
    ) -> None:
        parts = (*drafts, *self._extra(self.total, self.processing))
        if parts and behind:
            await self._journal.append_behind(*parts)
        elif parts:
            await self._journal.append(*parts, durable=durable)

    def _runner(self, state: ChatState) -> ChatRunner:
        return ChatRunner(
            state, self._place, self._publish, self._tasks, self._on_turn_end, lambda: self.held
        )

    # For the commands

    def lock(self, chat_id: UUID) -> asyncio.Lock:
        """Held while a chat's queue, or the chat itself, is changed."""
        return self._locks.setdefault(chat_id, asyncio.Lock())

    def queues(self) -> dict[str, list[UUID]]:
        """What waits, by chat."""
        found = {str(id): runner.chat.waiting_ids() for id, runner in self._runners.items()}
        return {id: waiting for id, waiting in found.items() if waiting}

    def release(self) -> None:
        """Runs what was held."""
        self.held = False
        if self._started:
            self.start()

    def runner(self, chat_id: UUID) -> ChatRunner | None:
        """The runner of a chat, if there is one."""
        return self._runners.get(chat_id)

    def forget(self, chat_id: UUID) -> None:
        """The chat is gone; its id is not taken again."""
        self._deleted.add(chat_id)
        self._runners.pop(chat_id, None)

    def find(self, chat_id: UUID) -> ChatRunner:
        """The runner of a chat.

        Raises:
            EngineRefused: NOT_FOUND.
        """
        runner = self._runners.get(chat_id)
        if runner is None:
            raise EngineRefused.not_found("There is no chat with this id.")
        return runner


def _place_of(chat: ChatState, message_id: UUID) -> Delivered:
    waiting = chat.waiting_ids()
    if message_id not in waiting:
        return Delivered(queued=False)
    place = waiting.index(message_id)
    idle = chat.current is None and chat.open_turn is None
    if idle and place == 0:
        return Delivered(queued=False)  # it is the next thing to happen
    return Delivered(queued=True, position=place + 1)
