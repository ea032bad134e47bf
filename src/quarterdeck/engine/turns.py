"""Runs the turns of one chat, one after the other, and journals them in the contract's order.

accepted (chats.py) -> started -> updated -> user-message -> the agent's events ...
-> turn-result -> completed [-> interrupted] -> updated
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from quarterdeck.agents.port import (
    AgentDiedError,
    AgentError,
    AgentSession,
    AgentUnavailableError,
    GoalSession,
    Prompt,
    StopReason,
    TurnOutcome,
)
from quarterdeck.engine import turn_events
from quarterdeck.engine.agent_desk import AgentDesk, AgentPlace
from quarterdeck.engine.chat_state import ChatState, OpenTurn
from quarterdeck.engine.drafts import Draft, EntryTooLarge, Note, event
from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.goals import Goals
from quarterdeck.engine.last_words import LastWords
from quarterdeck.engine.tasks import Tasks
from quarterdeck.wire.chats import Interrupted
from quarterdeck.wire.engine import Answer, DeliverMessage
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import ErrorEvent, EventType
from quarterdeck.wire.goals import GoalStatus
from quarterdeck.wire.history import AgentEvent, AgentEventType

logger = logging.getLogger(__name__)

RESTARTED = "The engine was restarted in the middle of this turn."
STOPPED = "The workspace was stopped in the middle of this turn."
INTERRUPT_SECONDS = 10.0
"""An agent that does not end its turn within this is killed."""

Publish = Callable[..., Awaitable[None]]
"""Journals drafts; `durable=True` waits for the disk, `behind=True` for nothing while it can."""


class _Turn:
    """A running turn."""

    def __init__(self, message: DeliverMessage) -> None:
        self.message = message
        self.words = LastWords(message.text)
        self.prompt = message.text
        self.prompting = False
        self.interrupting = False
        self.lost = False
        self.task: asyncio.Task[TurnOutcome] | None = None
        self.ended = asyncio.Event()
        self.outcome: TurnOutcome | None = None
        self.questions: set[str] = set()


class ChatRunner:
    """One chat's worker: `wake` makes it run what is queued, `stop` ends it with its agent."""

    def __init__(
        self,
        chat: ChatState,
        place: AgentPlace,
        publish: Publish,
        tasks: Tasks,
        on_turn_end: Callable[[], None],
        held: Callable[[], bool],
    ) -> None:
        self.chat = chat
        provider = chat.record.provider
        self.goals = Goals(
            chat,
            lambda: place.catalog().supports_goal(provider),
            lambda: place.catalog().native_goals(provider),
        )
        self._held = held
        self._publish = publish
        self._tasks = tasks
        self._on_turn_end = on_turn_end
        self._desk = AgentDesk(place, chat, self._hear)
        self._turn: _Turn | None = None
        self._worker: asyncio.Task[None] | None = None
        self._stopping = False
        self._retired = False

    def wake(self) -> None:
        """Runs what waits, unless that is being done."""
        if self._stopping or (self._worker is not None and not self._worker.done()):
            return
        chat = self.chat
        if chat.open_turn is not None or self._more or chat.record.processing:
            self._worker = self._tasks.start(self._work(), f"chat {chat.record.id}")

    async def interrupt(self) -> Interrupted:
        """Stops the running turn and waits for its end."""
        turn = self._turn
        if turn is None or turn.ended.is_set():
            if self.goals.pause():
                await self._publish(turn_events.updated(self.chat), durable=True)
                await self.tell_goal()
            return Interrupted(interrupted=False, queue=self.chat.waiting_ids())
        turn.interrupting = True
        await self._ask_to_stop(turn)
        await self._wait_or_kill(turn)
        cancelled = turn.outcome is not None and turn.outcome.stop_reason == StopReason.CANCELLED
        return Interrupted(interrupted=cancelled, queue=self.chat.waiting_ids())

    async def tell_goal(self) -> None:
        """Tells the goal to an agent that works towards it by itself, if it runs.

        Otherwise its next turn does.
        """
        session = self._desk.session
        if not isinstance(session, GoalSession) or (wish := self.goals.wish()) is None:
            return
        try:
            await session.change_goal(wish)
        except AgentError:
            # What it has in mind now is not known; its next process begins with what we know.
            logger.exception("an agent did not take its goal")
            if self._turn is None:
                await self._desk.drop()

    async def respond(self, answer: Answer) -> None:
        """Passes an answer to the agent.

        Raises:
            EngineRefused: CONFLICT: nothing is awaited under this id any more; INVALID_REQUEST: it
                is no answer to the question, which is still awaited.
        """
        session = self._desk.session
        try:
            taken = session is not None and await session.respond(
                answer.request_id, answer.option_id, answer.text
            )
        except AgentError as error:
            raise EngineRefused.invalid("This is no answer to the question.", str(error)) from error
        if not taken:
            raise EngineRefused.conflict("The agent no longer waits for this answer.")

    async def retire(self) -> None:
        """Interrupts the running turn and ends for good; nothing that waits is run any more.

        Raises:
            EngineRefused: the end of the turn cannot be recorded.
        """
        self._retired = True
        await self.interrupt()
        await self.stop()

    async def stop(self) -> None:
        """Ends the running turn as failed, and the agent."""
        self._stopping = True
        if self._turn is not None and self._turn.task is not None:
            self._turn.task.cancel()
        await self._desk.drop()
        if self._worker is not None:
            await asyncio.wait({self._worker})

    # The worker

    async def _work(self) -> None:
        if self.chat.open_turn is not None:
            await self._close_broken(self.chat.open_turn)
        while (message := self._next()) is not None or self.chat.record.processing:
            if message is not None:
                await self._run(message)
            else:  # what was to follow was canceled or paused after the last turn had told of it
                await self._publish(turn_events.updated(self.chat, processing=False), durable=True)

    @property
    def _more(self) -> bool:
        """Whether a turn is to follow."""
        if self._stopping or self._retired or self._held():
            return False
        return bool(self.chat.queue) or self.goals.active

    def _next(self) -> DeliverMessage | None:
        """What is to be run now: a message that waits, else the next turn towards the goal."""
        if not self._more:
            return None
        return self.chat.queue.pop(0) if self.chat.queue else self.goals.next_message()

    async def _close_broken(self, turn: OpenTurn) -> None:
        failed = TurnOutcome(StopReason.FAILED, error=RESTARTED)
        drafts: list[Draft] = []
        if not turn.message_shown:
            drafts.append(turn_events.user_message(turn.message))
        if not turn.result_shown:
            drafts.append(turn_events.turn_result(turn.message, failed))
        more = self._more
        drafts.append(turn_events.completed(turn.message, is_complete=False, processing=more))
        self.chat.open_turn = None
        drafts.append(turn_events.rested(self.chat, processing=more))
        await self._publish(*drafts, durable=True)

    async def _run(self, message: DeliverMessage) -> None:
        turn = self._turn = _Turn(message)
        self.chat.current = self.chat.last = message
        turn.prompt = self.goals.begin(message)
        await self._publish(
            *(turn_events.accepted(message, None) if message.continuation else ()),
            turn_events.started(message),
            turn_events.begun(self.chat, turn.words.text),
            turn_events.user_message(message),
        )
        turn.outcome = await self._outcome(turn)
        await self._finish(turn, turn.outcome)

    async def _outcome(self, turn: _Turn) -> TurnOutcome:
        """However the turn ends: this never raises but for the cancelling of the worker."""
        if self._stopping:
            return TurnOutcome(StopReason.FAILED, error=STOPPED)
        if turn.interrupting:
            return TurnOutcome(StopReason.CANCELLED)
        turn.task = self._tasks.start(self._prompt(turn), f"turn {turn.message.message_id}")
        await asyncio.wait({turn.task})
        if self._stopping:
            return TurnOutcome(StopReason.FAILED, error=STOPPED)
        if turn.task.cancelled():
            return TurnOutcome(StopReason.CANCELLED)
        outcome = turn.task.result()
        if turn.interrupting and outcome.stop_reason == StopReason.FAILED:
            return TurnOutcome(StopReason.CANCELLED)  # it died of being stopped
        return outcome

    async def _prompt(self, turn: _Turn) -> TurnOutcome:
        try:
            return await self._ask_agent(turn)
        except AgentDiedError as error:
            turn.lost = True
            await self._desk.drop()
            return TurnOutcome(StopReason.FAILED, error=_sentence(error))
        except AgentError as error:
            return TurnOutcome(StopReason.FAILED, error=_sentence(error))
        except Exception as error:
            logger.exception("an agent's driver failed")
            await self._desk.drop()
            return TurnOutcome(StopReason.FAILED, error=f"The agent failed: {error!r}")

    async def _ask_agent(self, turn: _Turn) -> TurnOutcome:
        message = turn.message
        model = message.model or self.chat.model or message.usual_model
        session = await self._desk.open(model)
        if session.id != self.chat.session_id:
            self.chat.session_id = session.id
            await self._publish(turn_events.session_opened(self.chat))
        prompt = Prompt(
            message_id=str(message.message_id),
            text=_with_uploads(turn.prompt, message.uploads or []),
            images=message.images or [],
            plan_mode=message.plan_mode,
            model=model,
            fast_mode=message.fast_mode,
            thinking_level=message.thinking_level,
            goal=self.goals.wish(),
            continuation=message.continuation,
        )
        turn.prompting = True
        return await self._prompted(session, prompt, message.model or self.chat.model)

    async def _prompted(
        self, session: AgentSession, prompt: Prompt, chosen: str | None
    ) -> TurnOutcome:
        """Messages that follow go by the model chosen here, unless the agent cannot use it."""
        before = self.chat.model
        await self._choose(chosen)
        try:
            outcome = await session.prompt(prompt)
        except AgentUnavailableError:
            await self._choose(before)
            raise
        if not outcome.asked:
            await self._choose(before)
        return outcome

    async def _choose(self, model: str | None) -> None:
        if model != self.chat.model:
            self.chat.model = model
            await self._publish(turn_events.session_opened(self.chat))

    async def _finish(self, turn: _Turn, outcome: TurnOutcome) -> None:
        message, chat = turn.message, self.chat
        cancelled = outcome.stop_reason == StopReason.CANCELLED
        failed = outcome.stop_reason == StopReason.FAILED
        self.goals.settle(outcome, cut_off=self._stopping, lost=turn.lost)
        if outcome.goal is not None and outcome.goal.status == GoalStatus.ACTIVE:
            await self._rest()
        more = self._more
        chat.current = None
        plan = message.plan_mode and outcome.stop_reason == StopReason.END_TURN
        plan_ready = plan and not more and not chat.queue
        drafts = [
            turn_events.turn_result(message, outcome),
            turn_events.completed(message, not (cancelled or failed), more, plan_ready),
        ]
        if cancelled:
            drafts.append(turn_events.interrupted(chat))
        words = turn.words.text or None
        drafts.append(
            turn_events.rested(
                chat, processing=more, plan_ready=plan_ready, last_message_text=words
            )
        )
        await self._publish(*drafts, durable=True)
        self._turn = None
        turn.ended.set()
        self._on_turn_end()

    async def _rest(self) -> None:
        """An agent that goes on by itself stops when its goal is not active any more."""
        if not self.goals.active and not self._stopping:
            await self.tell_goal()

    # The agent's events

    async def _hear(self, agent_event: AgentEvent) -> None:
        turn = self._turn
        drafts: list[Draft | Note] = [self._delta(turn, agent_event)]
        if turn is not None:
            turn.words.hear(agent_event)
            self.goals.hear(agent_event)
            if self._awaiting_changed(turn, agent_event):
                drafts.append(turn_events.updated(self.chat, awaiting_input=bool(turn.questions)))
        await self._publish(*drafts, behind=True)

    def _delta(self, turn: _Turn | None, agent_event: AgentEvent) -> Draft:
        message = turn.message if turn else None
        try:
            return turn_events.delta(self.chat.record.id, message, agent_event)
        except EntryTooLarge as error:
            told = ErrorEvent(
                code=ErrorCode.PAYLOAD_TOO_LARGE,
                message="Something the agent said was too large to keep.",
                details=str(error),
            )
            return event(EventType.ERROR, told)

    def _awaiting_changed(self, turn: _Turn, agent_event: AgentEvent) -> bool:
        before = bool(turn.questions)
        request = str(agent_event.payload.get("requestId"))
        match agent_event.type:
            case AgentEventType.PERMISSION_REQUEST:
                turn.questions.add(request)
            case AgentEventType.PERMISSION_OUTCOME:
                turn.questions.discard(request)
            case _:
                pass
        return bool(turn.questions) != before

    # Interrupting

    async def _ask_to_stop(self, turn: _Turn) -> None:
        session = self._desk.session
        if session is None or not turn.prompting:
            if turn.task is not None:
                turn.task.cancel()
            return
        try:
            async with asyncio.timeout(INTERRUPT_SECONDS):
                await session.interrupt()
        except (TimeoutError, AgentError) as error:
            logger.warning("an agent did not take the interrupt: %r", error)

    async def _wait_or_kill(self, turn: _Turn) -> None:
        if await _in_time(turn.ended):
            return
        await self._desk.drop()
        if turn.task is not None:
            turn.task.cancel()
        if not await _in_time(turn.ended):
            raise EngineRefused(ErrorCode.INTERNAL_ERROR, "The end of the turn cannot be recorded.")


async def _in_time(ended: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(INTERRUPT_SECONDS):
            await ended.wait()
    except TimeoutError:
        return False
    return True


def _with_uploads(text: str, uploads: list[str]) -> str:
    if not uploads:
        return text
    files = "\n".join(f"- {path}" for path in uploads)
    return f"{text}\n\nFiles that come with this message:\n{files}".lstrip()


def _sentence(error: AgentError) -> str:
    return str(error) or "The agent's process ended unexpectedly."
