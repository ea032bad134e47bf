"""Changes of a chat by hand: its queue, its goal, its end.

Each changes the chat first, without giving way, and then journals what came of it; a disk that
refuses gets the chat as it was. The answer says up to where the journal must be read to see it.
"""

import asyncio
import shutil
from pathlib import Path

from quarterdeck.engine import turn_events
from quarterdeck.engine.chats import Chats
from quarterdeck.engine.drafts import Draft, Note
from quarterdeck.engine.errors import JournalFault
from quarterdeck.engine.journal import Journal
from quarterdeck.wire.engine_chats import (
    CancelQueued,
    ChangeGoal,
    DeleteEngineChat,
    GoalChanged,
    HeldQueues,
    Journaled,
    OrderQueue,
    QueueChanged,
)


class ChatCommands:
    """Carried out on the chats of one engine. `agents_dir` holds what agents keep, by chat."""

    def __init__(self, chats: Chats, journal: Journal, agents_dir: Path) -> None:
        self._chats = chats
        self._journal = journal
        self._agents_dir = agents_dir

    async def cancel(self, call: CancelQueued) -> QueueChanged:
        """Takes messages out of the queue. Those that have started are told, and left alone.

        Raises:
            EngineRefused: NOT_FOUND.
            JournalFault: nothing was changed.
        """
        runner = self._chats.find(call.chat_id)
        async with self._chats.lock(call.chat_id):
            chat = runner.chat
            waiting = set(chat.waiting_ids())
            gone = [id for id in call.message_ids if id in waiting or id not in chat.known]
            before = [one for one in chat.queue if one.message_id in gone]
            chat.cancel(set(gone))
            if gone:
                told = turn_events.queue_changed(chat, chat.standing(), gone)
                try:
                    await self._keep(told)
                except JournalFault:
                    chat.known -= set(gone) - waiting
                    chat.canceled -= set(gone)
                    chat.queue = [*before, *chat.queue]
                    raise
            stopped = [id for id in call.message_ids if id in chat.canceled]
        started = [id for id in call.message_ids if id not in chat.canceled]
        return QueueChanged(index=self._journal.last_index, canceled=stopped, started=started)

    async def order(self, call: OrderQueue) -> QueueChanged:
        """Puts the queue in order; messages that are on their way find their places.

        Raises:
            EngineRefused: NOT_FOUND.
            JournalFault: nothing was changed.
        """
        runner = self._chats.find(call.chat_id)
        async with self._chats.lock(call.chat_id):
            chat = runner.chat
            before, order = chat.waiting_ids(), chat.order
            chat.reorder(call.message_ids)
            standing = chat.standing()
            told = turn_events.queue_changed(chat, standing, [])
            try:
                await self._keep(told)
            except JournalFault:
                chat.reorder(before)
                chat.order = order
                raise
        started = [id for id in call.message_ids if id not in standing]
        return QueueChanged(index=self._journal.last_index, started=started)

    async def held(self) -> HeldQueues:
        """What waits for `release`, by chat."""
        return HeldQueues(held=self._chats.held, queues=self._chats.queues())

    async def release(self) -> None:
        """Goes on with queues and goals. Safe to call twice."""
        self._chats.release()

    async def goal(self, call: ChangeGoal) -> GoalChanged:
        """Sets, pauses or resumes a goal.

        Raises:
            EngineRefused: NOT_FOUND; CONFLICT: there is no goal to change, or none to pause.
            JournalFault: the goal is as it was.
        """
        runner = self._chats.find(call.chat_id)
        if not runner.goals.supported:
            return GoalChanged(index=self._journal.last_index)
        before = runner.goals.goal
        runner.goals.change(call)
        try:
            await self._keep(turn_events.updated(runner.chat))
        except JournalFault:
            runner.chat.record = runner.chat.record.model_copy(update={"goal": before})
            raise
        await runner.tell_goal()
        runner.wake()
        return GoalChanged(index=self._journal.last_index, goal=runner.goals.goal)

    async def delete(self, call: DeleteEngineChat) -> Journaled:
        """Interrupts the chat's turn and ends the chat; what it said stays in the journal.

        Raises:
            EngineRefused: the end of the turn cannot be recorded.
            JournalFault: the chat's end could not be kept; ask again.
        """
        async with self._chats.lock(call.chat_id):
            if (runner := self._chats.runner(call.chat_id)) is not None:
                await runner.retire()
                await self._keep(turn_events.deleted(call.chat_id, call.told))
                await asyncio.to_thread(self._clear, str(call.chat_id))
            self._chats.forget(call.chat_id)
        return Journaled(index=self._journal.last_index)

    async def _keep(self, part: Draft | Note) -> None:
        await self._journal.append(part, durable=True, refusable=True)

    def _clear(self, chat_id: str) -> None:
        shutil.rmtree(self._agents_dir / chat_id, ignore_errors=True)
