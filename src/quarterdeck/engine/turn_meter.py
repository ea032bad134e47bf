"""What the turns of a chat take: time, model and cost."""

from math import isfinite
from time import monotonic
from typing import Any

from quarterdeck.wire.history import AgentEvent, AgentEventType, TurnCost


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
