"""Turns and goals of codex."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import GoalReport, GoalWish
from quarterdeck.agents.session.process import LinkLostError
from quarterdeck.wire.chats import GoalStatus

Params = dict[str, Any]

MOST_UNASKED = 100
"""Turns started by codex that wait to be requested; the oldest beyond them is forgotten."""

_USAGE = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
    "cachedInputTokens": "cachedReadTokens",
    "reasoningOutputTokens": "thoughtTokens",
}
"""Codex's names of usage counts, and the protocol's."""


@dataclass(eq=False)
class NativeTurn:
    """One turn. `ended` receives codex's record of it."""

    id: str
    used: Counter[str] = field(default_factory=Counter[str])
    goal: GoalReport | None = None
    """The goal at the end of the turn: later counts may include the next turn."""
    ended: asyncio.Future[Params] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def usage(self) -> dict[str, int] | None:
        return dict(self.used) or None


class ThreadTurns:
    """The running turn, and turns that codex started and the engine has not requested yet."""

    def __init__(self) -> None:
        self._turns: dict[str, NativeTurn] = {}
        self._unasked: deque[NativeTurn] = deque()
        self._next: asyncio.Future[NativeTurn] | None = None
        self.running: NativeTurn | None = None
        self.ours: NativeTurn | None = None
        """The turn of codex that belongs to the engine's turn."""

    def started(self, turn_id: str) -> None:
        """Note that codex started a turn."""
        turn = self.running = self._turn(turn_id)
        if turn is self.ours:
            return
        self._unasked.append(turn)
        if len(self._unasked) > MOST_UNASKED:
            self._turns.pop(self._unasked.popleft().id, None)
        if self._next is not None and not self._next.done():
            self._next.set_result(self._take(turn))

    def completed(self, record: Params) -> NativeTurn:
        """Note that codex ended a turn, and return it."""
        turn = self._turn(str(record.get("id")))
        self._turns.pop(turn.id, None)
        if turn is self.running:
            self.running = None
        if not turn.ended.done():
            turn.ended.set_result(record)
        return turn

    def used(self, turn_id: str, usage: Params) -> None:
        """Add the usage of one request to the model."""
        if turn_id not in self._turns:
            return  # of a turn before the thread was reopened
        counts = {name: usage.get(native) for native, name in _USAGE.items()}
        known = {name: count for name, count in counts.items() if isinstance(count, int)}
        self._turns[turn_id].used.update(known)

    def adopt(self, turn_id: str) -> NativeTurn:
        """Use this turn as the requested one."""
        return self._take(self._turn(turn_id))

    def take_unasked(self) -> NativeTurn | None:
        """Return the oldest turn that codex started on its own."""
        return self._take(self._unasked[0]) if self._unasked else None

    def next_turn(self) -> asyncio.Future[NativeTurn]:
        """Return the next turn that codex starts, which is then ours."""
        self._next = asyncio.get_running_loop().create_future()
        return self._next

    @property
    def unasked(self) -> bool:
        """Whether codex started turns that the engine has not requested yet."""
        return bool(self._unasked)

    def forget_unasked(self) -> None:
        """Forget turns that have ended and were reported."""
        self._unasked.clear()

    def release(self) -> None:
        """Note that the engine's turn has ended."""
        self.ours = self._next = None

    def lost(self) -> None:
        """Note that codex has ended, and with it every turn."""
        waiting = [turn.ended for turn in self._turns.values()]
        for future in [*waiting, *([self._next] if self._next else [])]:
            if not future.done():
                future.set_exception(LinkLostError())
                future.exception()  # there may be no waiting caller
        self._turns.clear()
        self._unasked.clear()
        self.running = None

    def _take(self, turn: NativeTurn) -> NativeTurn:
        if turn in self._unasked:
            self._unasked.remove(turn)
        self.ours = turn
        return turn

    def _turn(self, turn_id: str) -> NativeTurn:
        if turn_id not in self._turns:
            self._turns[turn_id] = NativeTurn(turn_id)
        return self._turns[turn_id]


_STATUS = {
    "active": GoalStatus.ACTIVE,
    "paused": GoalStatus.PAUSED,
    "blocked": GoalStatus.BLOCKED,
    "usageLimited": GoalStatus.USAGE_LIMITED,
    "budgetLimited": GoalStatus.BUDGET_LIMITED,
    "complete": GoalStatus.COMPLETE,
}


class NativeGoal:
    """Follows codex's reports of the goal."""

    def __init__(self) -> None:
        self._goal: Params = {}

    @property
    def active(self) -> bool:
        return self._goal.get("status") == "active"

    def follow(self, goal: object) -> None:
        """Note the goal as reported by codex; null when it was removed."""
        self._goal = as_object(goal)

    def report(self) -> GoalReport | None:
        """Return the goal for the engine; None when there is none, or its status is unknown."""
        status = _STATUS.get(str(self._goal.get("status")))
        if status is None:
            return None
        used, seconds = self._goal.get("tokensUsed"), self._goal.get("timeUsedSeconds")
        return GoalReport(status, _count(used), _count(seconds))

    def matches(self, wish: GoalWish) -> bool:
        """Return whether codex already has this goal."""
        return not wish.fresh and self._goal.get("objective") == wish.objective

    def change(self, wish: GoalWish) -> Params | None:
        """Return the change that codex's goal needs to match the wish; None for no change."""
        status = "active" if wish.active else "paused"
        if not self.matches(wish):
            budget = {"tokenBudget": wish.token_budget} if wish.token_budget else {}
            return {"objective": wish.objective, "status": status, "origin": "user", **budget}
        change: Params = {}
        if self._goal.get("status") != status and (wish.active or self.active):
            change["status"] = status
        if wish.token_budget and self._goal.get("tokenBudget") != wish.token_budget:
            change["tokenBudget"] = wish.token_budget
        return change or None

    @property
    def exists(self) -> bool:
        return bool(self._goal)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
