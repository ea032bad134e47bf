"""The running turn of a chat, and what turns take: time, model and cost."""

import asyncio
from collections.abc import Sequence
from math import isfinite
from time import monotonic
from typing import Any

from quarterdeck.agents.port import TurnOutcome
from quarterdeck.engine import turn_events
from quarterdeck.engine.chat_state import EngineChat, LastMessage
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


class TurnMeter:
    """Measures one turn after the other.

    Agents report the cost of their whole session. A turn's cost is the difference, so it is known
    only when the total before the turn is: after a restart of the engine, from the second turn on.
    """

    def __init__(self) -> None:
        self._total: float | None = None
        self._currency = ""
        self._before: float | None = None
        self._began = monotonic()
        self.model: str | None = None
        """Id of the model that the turn runs with; None when it is not known."""

    def new_session(self) -> None:
        """Note that the agent counts from zero."""
        self._total = self._before = 0.0

    def begin(self) -> None:
        """Start to measure a turn."""
        self._before, self._began, self.model = self._total, monotonic(), None

    def hear(self, event: AgentEvent) -> None:
        """Follow the cost that the agent reports."""
        if event.type != AgentEventType.SESSION_UPDATE:
            return
        match event.payload:
            case {
                "sessionUpdate": "usage_update",
                "cost": {"amount": int() | float() as amount, "currency": str() as currency},
            } if isfinite(amount) and amount >= 0 and currency.isalpha():
                if self._before is not None and amount < self._before:
                    self._before = 0.0  # a restarted agent counts from zero
                self._total, self._currency = float(amount), currency
            case _:
                pass

    def spent(self) -> dict[str, Any]:
        """Return the values of the turn for its `TurnResult`."""
        cost = None
        if self._before is not None and self._total is not None and self._total > self._before:
            cost = TurnCost(amount=round(self._total - self._before, 6), currency=self._currency)
        took = round((monotonic() - self._began) * 1000)
        return {"duration_ms": took, "model": self.model, "cost": cost}
