"""Codex's own goal of a thread, as the engine knows goals."""

from typing import Any

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import GoalReport, GoalWish
from quarterdeck.wire.goals import GoalStatus

Params = dict[str, Any]

_STATUS = {
    "active": GoalStatus.ACTIVE,
    "paused": GoalStatus.PAUSED,
    "blocked": GoalStatus.BLOCKED,
    "usageLimited": GoalStatus.USAGE_LIMITED,
    "budgetLimited": GoalStatus.BUDGET_LIMITED,
    "complete": GoalStatus.COMPLETE,
}


class NativeGoal:
    """Follows what codex tells of the goal."""

    def __init__(self) -> None:
        self._goal: Params = {}

    @property
    def active(self) -> bool:
        return self._goal.get("status") == "active"

    def follow(self, goal: object) -> None:
        """Takes the goal as codex tells it; null when there is none any more."""
        self._goal = as_object(goal)

    def report(self) -> GoalReport | None:
        """The goal for the engine; None when there is none, or in a state nobody knows."""
        status = _STATUS.get(str(self._goal.get("status")))
        if status is None:
            return None
        used, seconds = self._goal.get("tokensUsed"), self._goal.get("timeUsedSeconds")
        return GoalReport(status, _count(used), _count(seconds))

    def is_that_of(self, wish: GoalWish) -> bool:
        """Whether codex has this goal, and it is not set anew."""
        return not wish.fresh and self._goal.get("objective") == wish.objective

    def change(self, wish: GoalWish) -> Params | None:
        """What brings codex's goal in line with the wish; None when it is."""
        status = "active" if wish.active else "paused"
        if not self.is_that_of(wish):
            budget = {"tokenBudget": wish.token_budget} if wish.token_budget else {}
            return {"objective": wish.objective, "status": status, "origin": "user", **budget}
        found: Params = {}
        if self._goal.get("status") != status and (wish.active or self.active):
            found["status"] = status
        if wish.token_budget and self._goal.get("tokenBudget") != wish.token_budget:
            found["tokenBudget"] = wish.token_budget
        return found or None

    @property
    def there(self) -> bool:
        return bool(self._goal)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
