"""The running turn of a chat, what turns take (time, model and cost), and what they may cost."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from quarterdeck.agents.port import StopReason, TurnOutcome
from quarterdeck.engine import turn_events
from quarterdeck.engine.chat_state import EngineChat, LastMessage, ReportedCost
from quarterdeck.engine.journal import JournalDraft
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.history import AgentEvent, AgentEventType, TurnCost


class RunningTurn:
    """One turn, until its end is recorded."""

    def __init__(self, message: DeliverMessage) -> None:
        self.message = message
        self.own = message.origin is not None
        self.last_message = LastMessage(message.text)
        self.prompt = message.text
        self.notices: list[str] = []
        self.prompting = False
        self.interrupting = False
        self.lost = False
        self.task: asyncio.Task[TurnOutcome] | None = None
        self.ended = asyncio.Event()
        self.outcome: TurnOutcome | None = None
        self.questions: set[str] = set()
        self.plan_waits = False
        """Whether a plan of the previous turn waits for approval during it."""
        self.steering = asyncio.Lock()
        """Held while a message is put into the turn; its end is not recorded before."""
        self._taken: DeliverMessage | None = None
        self.gives_way = False
        """Whether it is interrupted for the next message, so that a goal stays active."""
        self.too_expensive = False
        """Whether it is interrupted because the cost limit is reached."""

    async def ends_in(self, seconds: float) -> bool:
        """Wait for the end; return whether it came in time."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True

    def limited(self, outcome: TurnOutcome, budget: "Budget") -> TurnOutcome:
        """Return the outcome; that of a turn which the cost limit has stopped is a failure."""
        if not self.too_expensive or outcome.stop_reason != StopReason.CANCELLED:
            return outcome
        return replace(outcome, stop_reason=StopReason.FAILED, error=budget.reason())

    def awaiting_changed(self, event: AgentEvent) -> bool:
        """Follow the agent's questions; return whether it begins or ceases to wait for an answer."""
        before = bool(self.questions)
        request = str(event.payload.get("requestId"))
        match event.type:
            case AgentEventType.PERMISSION_REQUEST:
                self.questions.add(request)
            case AgentEventType.PERMISSION_OUTCOME:
                self.questions.discard(request)
            case _:
                pass
        return bool(self.questions) != before

    def take(self, message: DeliverMessage) -> None:
        """Note that the agent has a message that was put into the turn; `shown` has its entries."""
        self._taken = message

    def shown(self, chat: EngineChat) -> Sequence[JournalDraft]:
        """Return the entries of a message that was put into the turn, once."""
        message, self._taken = self._taken, None
        if message is None:
            return ()
        chat.steering = None
        self.last_message.restart(message.text)
        return turn_events.steered(chat, self.message, message)


class Budget:
    """What the agents of a workspace have cost in dollars, and how much they may.

    `spent` begins with the cost that agents reported to earlier engines. Only what agents report is
    counted.
    """

    def __init__(self, spent: float, limit: Callable[[], float | None]) -> None:
        self.spent = spent
        self._limit = limit

    @property
    def limit(self) -> float | None:
        """The current limit in dollars."""
        return self._limit()

    @property
    def reached(self) -> bool:
        """Whether there is a limit, and no turn may run because of it."""
        return self.limit is not None and self.spent >= self.limit

    def reason(self) -> str:
        """Return why nothing is run, and what to do."""
        limit = self.limit or 0.0
        return (
            f"The cost limit of ${limit:.2f} is reached: ${self.spent:.2f} so far."
            " Raise or remove it in the permissions of the replica to go on."
        )

    def warning(self, cost: ReportedCost) -> str | None:
        """Return that an agent's cost is not counted; None without a limit."""
        limit = self.limit
        if limit is None or cost.in_dollars:
            return None
        return (
            "The agent does not report its cost in dollars, so it does not count towards the limit of"
            f" ${limit:.2f}. Once other agents have reached the limit, it is stopped too."
        )


class TurnMeter:
    """Measures one turn after the other of a chat, whose cost it follows."""

    def __init__(self, budget: Budget, cost: ReportedCost) -> None:
        self._budget = budget
        self._cost = cost
        self._spent = 0.0
        self._began = monotonic()
        self.model: str | None = None
        """Id of the model that the turn runs with; None when it is not known."""

    def begin(self) -> None:
        """Start to measure a turn."""
        self._spent, self._began, self.model = 0.0, monotonic(), None

    def hear(self, event: AgentEvent) -> None:
        """Follow the cost that the agent reports."""
        if event.type != AgentEventType.SESSION_UPDATE:
            return
        added = self._cost.hear(event.payload)
        self._spent += added
        if self._cost.in_dollars:
            self._budget.spent += added

    def spent(self) -> dict[str, Any]:
        """Return the values of the turn for its `TurnResult`."""
        cost = None
        if self._spent > 0:
            cost = TurnCost(amount=round(self._spent, 6), currency=self._cost.currency)
        took = round((monotonic() - self._began) * 1000)
        return {"duration_ms": took, "model": self.model, "cost": cost}
