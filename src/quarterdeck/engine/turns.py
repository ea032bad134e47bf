"""Runs the turns of one chat, one after the other, and journals them in the contract's order.

accepted (chats.py) -> started -> updated -> user-message -> the agent's events ...
-> turn-result -> completed [-> interrupted] -> updated
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import uuid4

from quarterdeck.agents.port import (
    AgentDiedError,
    AgentError,
    AgentSession,
    AgentUnavailableError,
    GoalSession,
    ModelOffer,
    ModelSession,
    PolicySession,
    Prompt,
    SteerableSession,
    StopReason,
    TurnOutcome,
)
from quarterdeck.engine import turn_events
from quarterdeck.engine.agent_session import AgentPlace, AgentSessionHolder
from quarterdeck.engine.chat_state import EngineChat, LastMessage, OpenTurn
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.goals import Goals
from quarterdeck.engine.journal import JournalDraft, JournalNote
from quarterdeck.engine.prompts import with_uploads
from quarterdeck.engine.questions import Questions
from quarterdeck.engine.redaction import StreamRedactor
from quarterdeck.engine.running_turn import Budget, RunningTurn, TurnMeter
from quarterdeck.engine.settings import SettingsOfChat, model_in_use
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.wire.chats import GoalStatus, Interrupted
from quarterdeck.wire.engine import Answer, AskPerson, ChangeSettings, DeliverMessage, PersonAsked
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.history import AgentEvent, TurnOrigin

logger = logging.getLogger(__name__)

RESTARTED = "The engine was restarted in the middle of this turn."
STOPPED = "The workspace was stopped in the middle of this turn."
DRIVER_FAILED = (
    "The agent sent something that could not be handled, so it was ended; the engine's log says more. "
    "The next message reopens its session."
)
INTERRUPT_SECONDS = 10.0
"""An agent that does not end its turn within this time is killed."""

Publish = Callable[..., Awaitable[None]]
"""Journals drafts; `durable=True` waits for the disk, `relaxed=True` does not wait if possible."""


class ChatRunner:
    """One chat's worker: `wake` makes it run the queue, `stop` ends it and its agent."""

    def __init__(
        self,
        chat: EngineChat,
        place: AgentPlace,
        publish: Publish,
        tasks: TaskOwner,
        on_turn_end: Callable[[], None],
        held: Callable[[], bool],
        budget: Budget,
    ) -> None:
        self.chat = chat
        provider = chat.record.provider
        self.goals = Goals(
            chat,
            lambda: place.catalog().supports_goal(provider),
            lambda: place.catalog().native_goals(provider),
        )
        self._held = held
        self._budget = budget
        self._publish = publish
        self._tasks = tasks
        self._on_turn_end = on_turn_end
        self._agent = AgentSessionHolder(place, chat, self._hear, self.wake)
        self._pieces = StreamRedactor(place.credentials)
        self._offer: ModelOffer | None = None
        self._meter = TurnMeter(budget, chat.cost)
        self.settings = SettingsOfChat(chat, publish)
        self._turn: RunningTurn | None = None
        self._worker: asyncio.Task[None] | None = None
        self._questions = Questions(self._hear)
        self._stopping = False
        self._cut_off = TurnOutcome(StopReason.FAILED, error=STOPPED)
        self._retired = False

    def wake(self) -> None:
        """Run the queue, unless it is running."""
        if self._stopping or (self._worker is not None and not self._worker.done()):
            return
        chat = self.chat
        if chat.open_turn is not None or self._more or chat.record.processing or self._must_tell:
            self._worker = self._tasks.start(self._work(), f"chat {chat.record.id}")

    @property
    def working(self) -> bool:
        """Whether a turn is running or will follow."""
        chat = self.chat
        return chat.record.processing or chat.current is not None or self._more

    async def interrupt(self) -> Interrupted:
        """Stop the running turn and wait for its end; pause an active goal (docs/interface.md 4).

        The goal is paused before the turn has ended, whichever turn set it: a goal that is set
        while the turn is being stopped is newer and stays active.
        """
        paused = self.goals.pause()
        turn = self._turn
        if turn is None or turn.ended.is_set():
            if paused:
                await self._publish(turn_events.updated(self.chat), durable=True)
                await self.send_goal()
            return Interrupted(interrupted=False, queue=self.chat.waiting_ids())
        await self._end(turn)
        cancelled = turn.outcome is not None and turn.outcome.stop_reason == StopReason.CANCELLED
        return Interrupted(interrupted=cancelled, queue=self.chat.waiting_ids())

    def turn_to_steer(self) -> tuple[RunningTurn, AgentSession]:
        """Return the running turn and its session.

        Raises:
            EngineRefusedError: CONFLICT: no turn runs that could take a message.
        """
        turn, session = self._turn, self._agent.session
        if turn is None or turn.outcome is not None or turn.interrupting:
            raise EngineRefusedError.conflict("No turn is running that could take the message.")
        if turn.questions or self._questions.waiting:
            raise EngineRefusedError.conflict(
                "The agent waits for an answer. Answer its question first; the message still waits."
            )
        if session is None or not turn.prompting:
            raise EngineRefusedError.conflict(
                "The turn is only beginning. Try again in a moment; the message still waits."
            )
        return turn, session

    async def steer(
        self, turn: RunningTurn, session: SteerableSession, message: DeliverMessage
    ) -> None:
        """Put a message into the running turn; `RunningTurn.shown` has its entries then.

        Raises:
            AgentError: the agent did not take it.
        """
        prompt = Prompt(
            message_id=str(message.message_id),
            text=with_uploads(message.text, message.uploads or []),
            images=message.images or [],
        )
        try:
            async with asyncio.timeout(INTERRUPT_SECONDS):
                await session.steer(prompt, lambda: turn.take(message))
        except (TimeoutError, AgentDiedError):
            turn.take(message)  # it may have it, and a message is never run twice

    async def give_way(self, turn: RunningTurn) -> None:
        """Interrupt a turn for the next message, and wait for its end.

        Raises:
            EngineRefusedError: the end of the turn cannot be recorded.
        """
        if not turn.ended.is_set():
            turn.gives_way = True
            await self._end(turn)

    async def send_goal(self) -> None:
        """Send the goal to a running agent with native goals.

        Otherwise its next turn sends it.
        """
        session = self._agent.session
        if not isinstance(session, GoalSession):
            return
        try:
            while (wish := self.goals.wish()) is not None:
                await session.change_goal(wish)
                if wish.active == self.goals.active:
                    return
                # It was paused or resumed while the agent accepted the change.
        except AgentError:
            # The agent's goal is now unknown; its next process starts with ours.
            logger.exception("an agent did not accept its goal")
            if self._turn is None:
                await self._agent.drop()

    async def respond(self, answer: Answer) -> None:
        """Pass an answer to the agent.

        Raises:
            EngineRefusedError: CONFLICT: no question with this id is open; INVALID_REQUEST: the
                question does not have this answer; it stays open.
        """
        if await self._questions.answer(answer.request_id, answer.option_id):
            return
        session = self._agent.session
        try:
            accepted = session is not None and await session.respond(
                answer.request_id, answer.option_id, answer.text
            )
        except AgentError as error:
            raise EngineRefusedError.invalid(
                "The question does not have this answer.", str(error)
            ) from error
        if not accepted:
            raise EngineRefusedError.conflict("The agent no longer waits for this answer.")

    async def review_questions(self) -> None:
        """Answer the agent's open questions that the permission policy decides now."""
        if isinstance(session := self._agent.session, PolicySession):
            await session.review_questions()

    async def ask(self, call: AskPerson) -> PersonAsked:
        """Ask a person for the service, and wait for the answer; the end of the turn cancels it."""
        return PersonAsked(option_id=await self._questions.ask(call))

    async def retire(self) -> None:
        """Interrupt the running turn and end for good; the queue is not run any more.

        Raises:
            EngineRefusedError: the end of the turn cannot be recorded.
        """
        self._retired = True
        await self.interrupt()
        await self.stop()

    async def stop(self, by_request: bool = False) -> None:
        """End the running turn, and the agent. The turn has failed unless a person requested it."""
        self._stopping = True
        if by_request:
            self._cut_off = TurnOutcome(StopReason.CANCELLED)
        if self._turn is not None and self._turn.task is not None:
            self._turn.task.cancel()
        await self._agent.drop()
        if self._worker is not None:
            await asyncio.wait({self._worker})

    # The worker

    async def _work(self) -> None:
        if self.chat.open_turn is not None:
            await self._close_broken(self.chat.open_turn)
        while (message := self._next()) or self.chat.record.processing or self._must_tell:
            if message is not None:
                await self._run(message)
            elif self.chat.record.processing:  # the turn that the last one announced was canceled
                await self._publish(turn_events.updated(self.chat, processing=False), durable=True)
            else:
                await self._hold_back()

    async def _hold_back(self) -> None:
        """Say that the cost limit is reached, and end what the agent began by itself."""
        if self._agent.own_turn_waits:
            await self._agent.drop()
        self.chat.cost.told_limit = self._budget.limit
        await self._publish(*turn_events.held_back(self.chat, self._budget.reason()), durable=True)

    @property
    def held_back(self) -> bool:
        """Whether messages that wait, or a goal, do not go on because of the cost limit."""
        waiting = bool(self.chat.queue) or self.goals.active
        return waiting and self._at_limit and self.chat.current is None

    @property
    def _must_tell(self) -> bool:
        """Whether the cost limit holds work back, and the chat does not say so.

        What the agent began by itself is held back only by ending it.
        """
        told = self.chat.cost.told_limit == self._budget.limit
        return (self._agent.own_turn_waits and self._at_limit) or (self.held_back and not told)

    @property
    def _at_limit(self) -> bool:
        return self._may_run and self._budget.reached

    @property
    def _may_run(self) -> bool:
        return not (self._stopping or self._retired or self._held())

    @property
    def _more(self) -> bool:
        """Whether another turn will follow."""
        if not self._may_run or self._budget.reached:
            return False
        return bool(self.chat.queue) or self.goals.active or self._agent.own_turn_waits

    def _next(self) -> DeliverMessage | None:
        """Return the next message to run: a queued one, else the next turn towards the goal.

        What the agent has begun by itself comes before both, so that nothing cancels it.
        """
        if not self._more:
            return None
        if self._agent.own_turn_waits:
            return DeliverMessage(
                chat_id=self.chat.record.id,
                message_id=uuid4(),
                text="",
                origin=TurnOrigin.AGENT,
            )
        return self.chat.queue.pop(0) if self.chat.queue else self.goals.next_message()

    async def _close_broken(self, turn: OpenTurn) -> None:
        failed = TurnOutcome(StopReason.FAILED, error=RESTARTED)
        drafts: list[JournalDraft] = []
        if not turn.message_shown:
            drafts.append(turn_events.turn_head(turn.message))
        if self.chat.steering is not None:
            drafts += turn_events.steered(self.chat, turn.message, self.chat.steering)
        if not turn.result_shown:
            drafts.append(turn_events.turn_result(turn.message, failed))
        more = self._more
        drafts.append(turn_events.completed(turn.message, is_complete=False, processing=more))
        drafts.append(turn_events.rested(self.chat, processing=more, failed=True))
        await self._publish(*drafts, durable=True)
        self.chat.open_turn = self.chat.steering = None

    async def _run(self, message: DeliverMessage) -> None:
        turn = self._turn = RunningTurn(message)
        self.chat.current = message
        self.chat.cost.told_limit = None
        self._meter.begin()
        if turn.own:
            turn.last_message = LastMessage(self.chat.record.last_message_text or "")
            turn.plan_waits = bool(self.chat.record.plan_ready)
        else:
            self.chat.last = message
        turn.prompt = self.goals.begin(message)
        turn.notices = self._notices_with(message)
        await self._publish(
            *(turn_events.accepted(message, None) if message.continuation or turn.own else ()),
            turn_events.started(message),
            turn_events.turn_began(self.chat, turn.last_message.text, turn.plan_waits),
            turn_events.turn_head(message),
        )
        outcome = await self._outcome(turn)
        turn.outcome = turn.limited(outcome, self._budget)
        if turn.outcome is not outcome:
            self.chat.cost.told_limit = self._budget.limit
        await self._finish(turn, turn.outcome)

    async def _outcome(self, turn: RunningTurn) -> TurnOutcome:
        """Return the turn's outcome; raise only when the worker is cancelled."""
        if self._stopping:
            return self._cut_off
        if turn.interrupting:
            return TurnOutcome(StopReason.CANCELLED)
        turn.task = self._tasks.start(self._prompt(turn), f"turn {turn.message.message_id}")
        await asyncio.wait({turn.task})
        if self._stopping:
            return self._cut_off
        if turn.task.cancelled():
            return TurnOutcome(StopReason.CANCELLED)
        outcome = turn.task.result()
        if turn.interrupting and outcome.stop_reason == StopReason.FAILED:
            return TurnOutcome(StopReason.CANCELLED)  # it died because it was stopped
        return outcome

    async def _prompt(self, turn: RunningTurn) -> TurnOutcome:
        try:
            return await self._ask_agent(turn)
        except AgentError as error:
            if isinstance(error, AgentDiedError):
                turn.lost = True
                await self._agent.drop()
            return TurnOutcome(StopReason.FAILED, error=_sentence(error))
        except Exception:
            logger.exception("an agent's driver failed")
            await self._agent.drop()
            return TurnOutcome(StopReason.FAILED, error=DRIVER_FAILED)

    async def _ask_agent(self, turn: RunningTurn) -> TurnOutcome:
        message = turn.message
        if turn.own:
            turn.prompting = True
            session = self._agent.session
            if session is None:  # it was dropped, and what it did with it
                return TurnOutcome(StopReason.CANCELLED)
            self._meter.model = self.chat.model or model_in_use(session)
            await self._agent.keep_checkpoints(message)  # it may have changed files before
            own = Prompt(message_id=str(message.message_id), text="", own_turn=True)
            return await session.prompt(own)
        model = message.model or self.chat.model or message.usual_model
        keeping = self._tasks.start(self._agent.keep_checkpoints(message), "checkpoints")
        session = await self._agent.open(model)
        await asyncio.wait({keeping})  # before the agent can change a file
        if session.id != self.chat.session_id:
            self.chat.cost.total = 0.0
            self.chat.session_id = session.id
            await self._publish(turn_events.session_opened(self.chat), *self._instruct(turn))
        await self._announce_models(session)
        await self.settings.announce(session)
        if message.thinking_level is not None:
            self.chat.thinking_level = message.thinking_level
        prompt = Prompt(
            message_id=str(message.message_id),
            text="\n\n".join([*turn.notices, with_uploads(turn.prompt, message.uploads or [])]),
            images=message.images or [],
            plan_mode=message.plan_mode,
            model=model,
            fast_mode=message.fast_mode,
            thinking_level=self.chat.thinking_level,
            permission_mode=self.chat.permission_mode,
            goal=self.goals.wish(),
            continuation=message.continuation,
        )
        turn.prompting = True
        return await self._prompted(session, prompt, message.model or self.chat.model)

    def _instruct(self, turn: RunningTurn) -> list[JournalNote]:
        """Have the environment's instructions precede the first message of a new session."""
        preamble = self._agent.preamble
        if preamble is None:
            return []
        self.chat.notices = [preamble, *(n for n in self.chat.notices if n != preamble)]
        turn.notices = self._notices_with(turn.message)
        return [turn_events.notices_changed(self.chat)]

    def _notices_with(self, message: DeliverMessage) -> list[str]:
        """Return the notices that precede a message; empty when they cannot be read."""
        # A slash command must come first, and a native goal continues without a prompt.
        if (
            message.origin is not None
            or message.text.startswith("/")
            or (message.continuation and self.goals.native)
        ):
            return []
        return list(self.chat.notices)

    async def _announce_models(self, session: AgentSession) -> None:
        """Announce the agent's models when they have changed."""
        offer = session.models if isinstance(session, ModelSession) else None
        if offer is not None and offer != self._offer:
            self._offer = offer
            await self._publish(turn_events.models_announced(self.chat, offer))

    async def change_settings(self, change: ChangeSettings) -> None:
        """Change settings of the agent; see `SettingsOfChat.change`."""
        await self.settings.change(change, self._agent.session, in_turn=self._turn is not None)

    async def _prompted(
        self, session: AgentSession, prompt: Prompt, chosen: str | None
    ) -> TurnOutcome:
        """Prompt with the chosen model, which later messages keep unless the agent cannot use it."""
        before = self.chat.model
        await self._choose(chosen)
        self._meter.model = prompt.model or model_in_use(session)
        try:
            outcome = await session.prompt(prompt)
        except AgentUnavailableError:
            await self._choose(before)
            raise
        if not outcome.asked:
            await self._choose(before)
        await self._announce_models(session)
        if outcome.asked:
            await self.settings.announce(session, in_turn=True)
        return outcome

    async def _choose(self, model: str | None) -> None:
        if model != self.chat.model:
            self.chat.model = model
            await self._publish(turn_events.session_opened(self.chat))

    async def _finish(self, turn: RunningTurn, outcome: TurnOutcome) -> None:
        async with turn.steering:
            await self._questions.cancel_all()
        if self.chat.steering is not None:  # nobody said whether the agent took it
            turn.take(self.chat.steering)
        for held in self._pieces.flush():
            await self._record(held)
        message, chat = turn.message, self.chat
        cancelled = outcome.stop_reason == StopReason.CANCELLED
        failed = outcome.stop_reason == StopReason.FAILED
        keeps_goal = self._stopping or turn.gives_way or turn.too_expensive
        self.goals.settle(outcome, cut_off=keeps_goal, lost=turn.lost)
        if outcome.goal is not None and outcome.goal.status == GoalStatus.ACTIVE:
            await self._report_goal_end()
        more = self._more
        chat.current = None
        planned = turn.last_message.spoken if outcome.planned is None else outcome.planned
        ended = outcome.stop_reason == StopReason.END_TURN
        plan = message.plan_mode and planned and ended
        plan_ready = bool(plan or turn.plan_waits) and not more and not chat.queue
        drafts = [
            *turn.shown(chat),
            turn_events.turn_result(
                message, outcome, stopped=outcome is self._cut_off, **self._meter.spent()
            ),
            turn_events.completed(message, not (cancelled or failed), more, plan_ready),
        ]
        if cancelled:
            drafts.append(turn_events.interrupted(chat))
        last_text = turn.last_message.text or None
        notes: list[JournalNote] = []
        if ended and not chat.cost.told_unknown and (warning := self._budget.warning(chat.cost)):
            chat.cost.told_unknown = True
            drafts.insert(-1, turn_events.noted(chat, warning))
            notes.append(turn_events.cost_told(chat))
        elif chat.cost.told_limit is not None:
            notes.append(turn_events.cost_told(chat))
        if turn.notices and turn.prompting and outcome.asked and not failed:
            chat.notices = [notice for notice in chat.notices if notice not in turn.notices]
            notes.append(turn_events.notices_changed(chat))
        drafts.append(
            turn_events.rested(
                chat,
                processing=more,
                failed=failed,
                plan_ready=plan_ready,
                last_message_text=last_text,
                **self.settings.shown(in_turn=False),
            )
        )
        await self._publish(*drafts, *notes, durable=True)
        self._turn = None
        turn.ended.set()
        self._on_turn_end()

    async def _report_goal_end(self) -> None:
        """Report the goal's end to an agent that would otherwise continue automatically."""
        if not self.goals.active and not self._stopping:
            await self.send_goal()

    # The agent's events

    async def _hear(self, agent_event: AgentEvent) -> None:
        for safe in self._pieces.take(agent_event):
            await self._record(safe)

    async def _record(self, agent_event: AgentEvent) -> None:
        turn = self._turn
        self._meter.hear(agent_event)
        heard = turn_events.heard(self.chat.record.id, turn and turn.message, agent_event)
        drafts: list[JournalDraft | JournalNote] = [heard]
        if turn is not None:
            drafts = [*turn.shown(self.chat), *drafts]
            turn.last_message.hear(agent_event)
            self.goals.hear(agent_event)
            if turn.awaiting_changed(agent_event):
                drafts.append(turn_events.updated(self.chat, awaiting_input=bool(turn.questions)))
        elif self._questions.waiting is not self.chat.record.awaiting_input:
            drafts.append(turn_events.updated(self.chat, awaiting_input=self._questions.waiting))
        await self._publish(*drafts, relaxed=True)
        if turn is not None and self._budget.reached and not turn.interrupting:
            turn.too_expensive = turn.interrupting = True
            self._tasks.start(self._end(turn), "cost limit")
        if turn is not None and turn.prompting:
            await self.settings.hear(agent_event, self._agent.session)

    # Interrupting

    async def _end(self, turn: RunningTurn) -> None:
        turn.interrupting = True
        await self._ask_to_stop(turn)
        await self._wait_or_kill(turn)

    async def _ask_to_stop(self, turn: RunningTurn) -> None:
        session = self._agent.session
        if session is None or not turn.prompting:
            if turn.task is not None:
                turn.task.cancel()
            return
        try:
            async with asyncio.timeout(INTERRUPT_SECONDS):
                await session.interrupt()
        except (TimeoutError, AgentError) as error:
            logger.warning("an agent did not accept the interrupt: %r", error)

    async def _wait_or_kill(self, turn: RunningTurn) -> None:
        if await turn.ends_in(INTERRUPT_SECONDS):
            return
        await self._agent.drop()
        if turn.task is not None:
            turn.task.cancel()
        if not await turn.ends_in(INTERRUPT_SECONDS):
            raise EngineRefusedError(
                ErrorCode.INTERNAL_ERROR, "The end of the turn cannot be recorded."
            )


def _sentence(error: AgentError) -> str:
    return str(error) or "The agent's process ended unexpectedly."
