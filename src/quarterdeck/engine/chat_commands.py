"""Changes of a chat by hand: its title, its turn, its queue, its goal, its end.

A queue or goal is changed first, without awaiting, and the result is then journaled; when the disk
refuses, the change is undone. Every answer says up to which index the journal must be read to see
the change.
"""

import asyncio
import shutil
from pathlib import Path

from quarterdeck.agents.port import AgentError, SteerableSession
from quarterdeck.engine import turn_events
from quarterdeck.engine.chat_state import EngineChat
from quarterdeck.engine.chats import ChatRegistry
from quarterdeck.engine.errors import EngineRefusedError, JournalError
from quarterdeck.engine.journal import EntryTooLargeError, Journal, JournalDraft, JournalNote
from quarterdeck.engine.running_turn import RunningTurn
from quarterdeck.engine.turns import ChatRunner
from quarterdeck.wire.base import Id
from quarterdeck.wire.engine import (
    Answer,
    AskPerson,
    CancelQueued,
    ChangeGoal,
    ChangeSettings,
    ChatCall,
    ChatRenamed,
    DeleteEngineChat,
    DeliverMessage,
    GiveNotice,
    GoalChanged,
    HeldQueues,
    JoinQueued,
    Journaled,
    OrderQueue,
    PersonAsked,
    QueueChanged,
    RenameEngineChat,
    Steered,
    SteerQueued,
    TurnInterrupted,
)


class EngineChatCommands:
    """Commands on the chats of one engine. `agents_dir` holds the files of agents, by chat."""

    def __init__(self, chats: ChatRegistry, journal: Journal, agents_dir: Path) -> None:
        self._chats = chats
        self._journal = journal
        self._agents_dir = agents_dir

    async def rename(self, call: RenameEngineChat) -> ChatRenamed:
        """Give a chat its title; see `ChatRegistry.rename`."""
        record = await self._chats.rename(call)
        return ChatRenamed(index=self._journal.last_index, **record.model_dump(by_alias=False))

    async def interrupt(self, call: ChatCall) -> TurnInterrupted:
        """Stop the running turn, if there is one, and wait for its end.

        Raises:
            EngineRefusedError: NOT_FOUND, or the end of the turn cannot be recorded.
        """
        result = await self._chats.find(call.chat_id).interrupt()
        return TurnInterrupted(index=self._journal.last_index, **result.model_dump())

    async def respond(self, call: Answer) -> Journaled:
        """Answer an agent's question; see `ChatRunner.respond`.

        A message is accepted before, as the answer may end the turn, and canceled on a refusal.
        """
        runner, message = self._chats.find(call.chat_id), call.message
        if message is not None:
            await self._chats.send(message, wake=False)
            ahead = dict.fromkeys([message.message_id, *runner.chat.expected_order()])
            await self.order(OrderQueue(chat_id=call.chat_id, message_ids=list(ahead)))
        try:
            await runner.respond(call)
        except EngineRefusedError:
            if message is not None:
                canceled = CancelQueued(chat_id=call.chat_id, message_ids=[message.message_id])
                await self.cancel(canceled)
            raise
        if message is not None:
            await self._chats.send(message)  # it is known: this only wakes the chat
        # The outcome was journaled without waiting for the disk; an empty append is enough.
        return Journaled(index=await self._journal.append())

    async def ask(self, call: AskPerson) -> PersonAsked:
        """Ask a person for the service; see `ChatRunner.ask`.

        Raises:
            EngineRefusedError: CONFLICT: the workspace has no such chat.
        """
        runner = self._chats.for_question(call.chat_id)
        if runner is None:
            raise EngineRefusedError.conflict("The replica has no chat to show the question in.")
        return await runner.ask(call)

    async def notice(self, call: GiveNotice) -> None:
        """Add a notice to the agent's next prompt; a repeated notice changes nothing.

        Raises:
            EngineRefusedError: NOT_FOUND.
            JournalError: it was not kept.
        """
        chat = self._chats.find(call.chat_id).chat
        if call.text in chat.notices:
            return
        chat.notices.append(call.text)
        try:
            await self._keep(turn_events.notices_changed(chat))
        except JournalError:
            chat.notices.remove(call.text)
            raise

    async def cancel(self, call: CancelQueued) -> QueueChanged:
        """Take messages out of the queue. Those that have started are reported, and left alone.

        Raises:
            EngineRefusedError: NOT_FOUND.
            JournalError: nothing was changed.
        """
        runner = self._chats.find(call.chat_id)
        async with self._chats.lock(call.chat_id):
            chat = runner.chat
            waiting = set(chat.waiting_ids())
            removed = [id for id in call.message_ids if id in waiting or id not in chat.known]
            before = [message for message in chat.queue if message.message_id in removed]
            chat.cancel(set(removed))
            if removed:
                change = turn_events.queue_changed(chat, chat.expected_order(), removed)
                try:
                    await self._keep(change)
                except JournalError:
                    chat.known -= set(removed) - waiting
                    chat.canceled -= set(removed)
                    chat.queue = [*before, *chat.queue]
                    raise
            stopped = [id for id in call.message_ids if id in chat.canceled]
        started = [id for id in call.message_ids if id not in chat.canceled]
        return QueueChanged(index=self._journal.last_index, canceled=stopped, started=started)

    async def order(self, call: OrderQueue) -> QueueChanged:
        """Put the queue in order; messages on their way take their places when they arrive.

        Raises:
            EngineRefusedError: NOT_FOUND.
            JournalError: nothing was changed.
        """
        runner = self._chats.find(call.chat_id)
        async with self._chats.lock(call.chat_id):
            chat = runner.chat
            before, order = chat.waiting_ids(), chat.order
            chat.reorder(call.message_ids)
            expected = chat.expected_order()
            change = turn_events.queue_changed(chat, expected, [])
            try:
                await self._keep(change)
            except JournalError:
                chat.reorder(before)
                chat.order = order
                raise
        started = [id for id in call.message_ids if id not in expected]
        return QueueChanged(index=self._journal.last_index, started=started)

    async def held(self) -> HeldQueues:
        """Return the held queues, and which turns are still to be closed, by chat."""
        chats = self._chats
        return HeldQueues(
            held=chats.held,
            queues=chats.queues(),
            open=chats.open_turns(),
            index=self._journal.last_index,
        )

    async def release(self) -> None:
        """Continue queues and goals. Safe to call twice."""
        self._chats.release()

    async def goal(self, call: ChangeGoal) -> GoalChanged:
        """Set, pause, resume or remove a goal.

        Raises:
            EngineRefusedError: NOT_FOUND; CONFLICT: there is no goal to change, or none to pause.
            JournalError: the goal is as it was.
        """
        runner = self._chats.find(call.chat_id)
        if not runner.goals.supported:
            return GoalChanged(index=self._journal.last_index)
        before = runner.goals.goal
        if call.remove:
            # An agent with its own goals keeps working until its goal is paused.
            if runner.goals.pause():
                await runner.send_goal()
            runner.goals.remove()
        else:
            runner.goals.change(call)
        try:
            await self._keep(turn_events.updated(runner.chat))
        except JournalError:
            runner.chat.record = runner.chat.record.model_copy(update={"goal": before})
            raise
        await runner.send_goal()
        runner.wake()
        return GoalChanged(index=self._journal.last_index, goal=runner.goals.goal)

    async def settings(self, call: ChangeSettings) -> Journaled:
        """Change settings of a chat's agent; see `ChatRunner.change_settings`."""
        await self._chats.find(call.chat_id).change_settings(call)
        return Journaled(index=self._journal.last_index)

    async def delete(self, call: DeleteEngineChat) -> Journaled:
        """Interrupt the chat's turn and end the chat; its entries stay in the journal.

        Raises:
            EngineRefusedError: the end of the turn cannot be recorded.
            JournalError: the chat's end could not be written; try again.
        """
        async with self._chats.lock(call.chat_id):
            if (runner := self._chats.runner(call.chat_id)) is not None:
                await runner.retire()
                await self._keep(turn_events.deleted(call.chat_id, call.logged))
                await asyncio.to_thread(self._clear, str(call.chat_id))
            self._chats.forget(call.chat_id)
        return Journaled(index=self._journal.last_index)

    async def _keep(self, part: JournalDraft | JournalNote) -> None:
        await self._journal.append(part, durable=True, refusable=True)

    def _clear(self, chat_id: str) -> None:
        shutil.rmtree(self._agents_dir / chat_id, ignore_errors=True)


class QueueChanges:
    """Changes of the queues of one engine's chats that are more than an order: messages steered or joined.

    A message that is put into the running turn leaves the queue by a note that is on the disk before the
    agent hears of it, and the chat's next change says whether it is in the turn or back in the queue. An
    engine that is killed between the two cannot know, so the next one shows the message in the turn: it is
    never run twice.
    """

    def __init__(self, chats: ChatRegistry, journal: Journal) -> None:
        self._chats = chats
        self._journal = journal

    async def steer(self, call: SteerQueued) -> Steered:
        """Put a message into the running turn.

        If the agent cannot take messages during a turn, the turn is interrupted and the message is
        the next one; a goal that the turn worked towards stays active.

        Raises:
            EngineRefusedError: NOT_FOUND; CONFLICT: no turn runs, a question is open, or the turn
                cannot take the message, which still waits then.
            JournalError: nothing was changed.
        """
        runner = self._chats.find(call.chat_id)
        async with self._chats.lock(call.chat_id):
            message = _waiting(runner.chat, call.message_id)
            turn, session = runner.turn_to_steer()
            if isinstance(session, SteerableSession):
                _check_modes(message, turn.message, runner.chat)
                async with turn.steering:
                    await self._put_in(runner, turn, session, message)
                return Steered(index=self._journal.last_index)
            await self._put_first(runner.chat, message)
        await runner.give_way(turn)
        return Steered(index=self._journal.last_index, interrupted=True)

    async def _put_in(
        self,
        runner: ChatRunner,
        turn: RunningTurn,
        session: SteerableSession,
        message: DeliverMessage,
    ) -> None:
        chat = runner.chat
        place = chat.queue.index(message)
        chat.take_for_turn(message)
        try:
            note = turn_events.steering(message)
            await self._journal.append(note, durable=True, refusable=True)
        except JournalError:
            chat.put_back(place)
            raise
        try:
            await runner.steer(turn, session, message)
        except AgentError as error:
            chat.put_back(place)
            back = turn_events.queue_changed(chat, chat.expected_order(), [])
            await self._journal.append(back, durable=True)
            raise EngineRefusedError.conflict(f"{error} The message still waits.") from error
        await self._journal.append(*turn.shown(chat), durable=True)

    async def _put_first(self, chat: EngineChat, message: DeliverMessage) -> None:
        before, order = chat.waiting_ids(), chat.order
        first = dict.fromkeys([message.message_id, *chat.expected_order()])
        chat.reorder(list(first))
        try:
            change = turn_events.queue_changed(chat, list(first), [])
            await self._journal.append(change, durable=True, refusable=True)
        except JournalError:
            chat.reorder(before)
            chat.order = order
            raise

    async def join(self, call: JoinQueued) -> Journaled:
        """Replace messages by one; a repeated call changes nothing.

        Raises:
            EngineRefusedError: NOT_FOUND; CONFLICT: one of them no longer waits.
            JournalError: nothing was changed.
        """
        runner, joined = self._chats.find(call.chat_id), call.message
        async with self._chats.lock(call.chat_id):
            chat = runner.chat
            if joined.message_id not in chat.known:
                waiting = chat.waiting_ids()
                if any(id in chat.known and id not in waiting for id in call.message_ids):
                    raise EngineRefusedError.conflict("One of the messages no longer waits.")
                await self._replace(chat, call.message_ids, joined)
        return Journaled(index=self._journal.last_index)

    async def _replace(self, chat: EngineChat, parts: list[Id], joined: DeliverMessage) -> None:
        before = (chat.queue, chat.known, chat.canceled, chat.order)
        chat.queue, chat.known, chat.canceled = (
            chat.queue[:],
            chat.known.copy(),
            chat.canceled.copy(),
        )
        chat.replace(parts, joined)
        try:
            drafts = turn_events.joined(chat, parts, joined)
            await self._journal.append(*drafts, durable=True, refusable=True)
        except (EntryTooLargeError, JournalError) as error:
            chat.queue, chat.known, chat.canceled, chat.order = before
            if isinstance(error, JournalError):
                raise
            raise EngineRefusedError.conflict("Together the messages are too large.") from error


def _waiting(chat: EngineChat, message_id: Id) -> DeliverMessage:
    message = next((one for one in chat.queue if one.message_id == message_id), None)
    if message is not None:
        return message
    if message_id in chat.known:
        raise EngineRefusedError.conflict("The message no longer waits.")
    raise EngineRefusedError.not_found("The queue has no message with this id.")


def _check_modes(message: DeliverMessage, of_turn: DeliverMessage, chat: EngineChat) -> None:
    """Refuse a message that asks for more than the running turn can give.

    Raises:
        EngineRefusedError: CONFLICT.
    """
    model, thinking = of_turn.model or chat.model, of_turn.thinking_level or chat.thinking_level
    asked = {
        "goal mode": message.goal_mode,
        "plan mode": message.plan_mode and not of_turn.plan_mode,
        "fast mode": message.fast_mode and not of_turn.fast_mode,
        "another model": message.model not in (None, model),
        "another thinking level": message.thinking_level not in (None, thinking),
    }
    for what, is_asked in asked.items():
        if is_asked:
            raise EngineRefusedError.conflict(
                f"The message asks for {what}, so it needs a turn of its own. It still waits."
            )
