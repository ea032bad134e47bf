"""What a turn took is told with its end."""

from typing import Any

import pytest

from quarterdeck.engine.chat_state import ReportedCost
from quarterdeck.engine.running_turn import Budget, TurnMeter
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.history import AgentEvent, TurnCost


def usage(amount: Any, currency: str = "USD") -> AgentEvent:
    payload = {"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": currency}}
    return AgentEvent(timestamp=utc_now(), type="acp-session_update", payload=payload)


def meter_from(total: float | None) -> TurnMeter:
    return TurnMeter(Budget(0.0, lambda: None), ReportedCost(total))


def cost_of_turn(meter: TurnMeter, *amounts: Any) -> TurnCost | None:
    meter.begin()
    for amount in amounts:
        meter.hear(usage(amount))
    return meter.spent()["cost"]


def test_the_cost_of_each_turn_of_a_session() -> None:
    meter = meter_from(0.0)
    meter.begin()
    meter.hear(usage(0.02))
    meter.hear(usage(0.05))
    assert meter.spent()["cost"] == TurnCost(amount=0.05, currency="USD")
    assert cost_of_turn(meter, 0.05, 0.12) == TurnCost(amount=0.07, currency="USD")
    assert cost_of_turn(meter) is None
    assert cost_of_turn(meter, 0.01) == TurnCost(amount=0.01, currency="USD")  # it counts anew


def test_the_cost_is_not_guessed_when_the_total_before_is_unknown() -> None:
    meter = meter_from(None)
    assert cost_of_turn(meter, 4.0) is None
    assert cost_of_turn(meter, 4.5) == TurnCost(amount=0.5, currency="USD")


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), "1", None])
def test_what_is_no_amount_is_ignored(amount: Any) -> None:
    meter = meter_from(0.0)
    assert cost_of_turn(meter, amount) is None


def test_time_and_model() -> None:
    meter = meter_from(None)
    meter.begin()
    meter.model = "gpt-5"
    spent = meter.spent()
    assert spent["model"] == "gpt-5" and 0 <= spent["duration_ms"] < 10_000
    meter.begin()
    assert meter.spent()["model"] is None
