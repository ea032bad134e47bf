"""Messages that wait: put into the running turn, or joined to one.

A message that is put into the turn leaves the queue by a note that is on the disk before the agent
hears of it, and the chat's next change says whether it is in the turn or back in the queue. An engine
that is killed between the two cannot know, so the next one shows the message in the turn: it is never
run twice.
"""

from quarterdeck.agents.port import AgentError, SteerableSession
from quarterdeck.engine import turn_events
from quarterdeck.engine.chat_state import EngineChat
from quarterdeck.engine.chats import ChatRegistry
from quarterdeck.engine.errors import EngineRefusedError, JournalError
from quarterdeck.engine.journal import EntryTooLargeError, Journal
from quarterdeck.engine.running_turn import RunningTurn
from quarterdeck.engine.turns import ChatRunner
from quarterdeck.wire.base import Id
from quarterdeck.wire.engine import DeliverMessage, JoinQueued, Journaled, Steered, SteerQueued


class QueueChanges:
    """Changes of the queues of one engine's chats that are more than an order."""

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
