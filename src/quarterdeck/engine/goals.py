"""The goal of one chat: set by a message or by hand, worked towards turn after turn.

The goal itself is part of the chat's record, so it is in the journal and outlives every process.
An agent says how it stands in the last line of its message (`GOAL: complete` or `GOAL: blocked`).
One with goals of its own works by itself and counts by itself: it is told what is wished, and what
it reports at a turn's end wins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from uuid import uuid4

from quarterdeck.agents.port import GoalWish, StopReason, TurnOutcome
from quarterdeck.engine.chat_state import ChatState
from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.goal_words import FinalLine, asked_with, go_on, next_turn
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.engine_chats import ChangeGoal
from quarterdeck.wire.goals import EventGoal, GoalStatus
from quarterdeck.wire.history import AgentEvent

IDLE_TURNS = 3
"""After so many turns of its own without any tool call, an agent is going nowhere."""


@dataclass
class _Watch:
    """The running turn, as far as the goal is concerned. `goal` is the one it works for."""

    message: DeliverMessage
    number: int | None
    began: float
    final: FinalLine
    worked: bool = False


class Goals:
    """Keeps the goal of one chat. Changes its record; who calls tells the journal."""

    def __init__(
        self,
        chat: ChatState,
        supported: Callable[[], bool],
        native: Callable[[], bool] = lambda: False,
    ) -> None:
        self._chat = chat
        self._supported = supported
        self._native = native
        self._fresh = False
        self._losses = 0
        self._number = 0
        self._idle = 0
        self._watch: _Watch | None = None

    @property
    def goal(self) -> EventGoal | None:
        return self._chat.record.goal

    @property
    def active(self) -> bool:
        """Whether the next turn is begun without being asked."""
        return self.goal is not None and self.goal.status == GoalStatus.ACTIVE

    @property
    def supported(self) -> bool:
        """Whether the chat's agent has goals."""
        return self._supported()

    def wish(self) -> GoalWish | None:
        """The goal for an agent that works towards it by itself. What is fresh is so once."""
        goal = self.goal
        if goal is None or not self._native():
            return None
        fresh, self._fresh = self._fresh, False
        return GoalWish(goal.objective, self.active, goal.token_budget, fresh)

    def change(self, asked: ChangeGoal) -> None:
        """Sets, pauses or resumes the goal by hand.

        Raises:
            EngineRefused: CONFLICT: there is none, or it cannot be paused any more.
        """
        if asked.objective is not None:
            self._replace(asked.objective, asked.token_budget)
        goal = self.goal
        if goal is None:
            raise EngineRefused.conflict("The chat has no goal. Set one with an objective.")
        if asked.status == GoalStatus.PAUSED and goal.status not in _PAUSABLE:
            raise EngineRefused.conflict(f"The goal is {goal.status}, so it cannot be paused.")
        budget = goal.token_budget if asked.token_budget is None else asked.token_budget
        self._set(goal, status=asked.status or goal.status, token_budget=budget)
        self._limit()
        self._idle = 0

    def pause(self) -> bool:
        """Stops working towards an active goal; whether there was one."""
        if self.goal is None or not self.active:
            return False
        self._set(self.goal, status=GoalStatus.PAUSED)
        return True

    def begin(self, message: DeliverMessage) -> str:
        """A turn begins; a message in goal mode sets the goal. Returns the text for the agent."""
        of_goal = message.goal_mode and self.supported
        if of_goal and not message.continuation:
            self._replace(message.text, None)
        number = self._number if self.active else None
        self._watch = _Watch(message, number, monotonic(), FinalLine())
        told = of_goal and not message.continuation and not self._native()
        return asked_with(message.text) if told else message.text

    def hear(self, event: AgentEvent) -> None:
        """Takes what the agent says in the turn."""
        if self._watch is not None:
            self._watch.final.hear(event)
            self._watch.worked |= event.payload.get("sessionUpdate") == "tool_call"

    def settle(self, outcome: TurnOutcome, cut_off: bool, lost: bool = False) -> None:
        """The turn ended; `cut_off` when the engine ends, which says nothing about the goal, and
        `lost` when the agent's process did.
        """
        self._losses = self._losses + 1 if lost else 0
        watch, self._watch = self._watch, None
        goal = self.goal
        if goal is None or watch is None or watch.number != self._number:
            return
        self._count(goal, watch, outcome)
        if self._native():
            self._heed(outcome, cut_off)
        elif self.active and not cut_off:
            self._judge(watch, outcome)

    def next_message(self) -> DeliverMessage | None:
        """The message of the next turn towards the goal."""
        if self.goal is None or not self.active or not self.supported:
            return None
        like = self._chat.last
        return DeliverMessage(
            chat_id=self._chat.record.id,
            message_id=uuid4(),
            text=go_on(self.goal) if self._native() else next_turn(self.goal),
            model=like.model if like else None,
            fast_mode=like.fast_mode if like else False,
            thinking_level=like.thinking_level if like else None,
            goal_mode=True,
            continuation=True,
        )

    def _count(self, goal: EventGoal, watch: _Watch, outcome: TurnOutcome) -> None:
        if report := outcome.goal:
            used, seconds = report.tokens_used, report.time_used_seconds
        else:
            used = goal.tokens_used + _tokens(outcome)
            seconds = goal.time_used_seconds + round(monotonic() - watch.began)
        self._set(goal, tokens_used=used, time_used_seconds=seconds)

    def _heed(self, outcome: TurnOutcome, cut_off: bool) -> None:
        """Takes an agent's own word. That it goes on, or rests, is for us to say."""
        goal = self.goal
        assert goal is not None  # its turn has just ended
        status = outcome.goal.status if outcome.goal else None
        if status is not None and status not in _PAUSABLE:
            self._set(goal, status=status)
        elif self.active and not cut_off and outcome.stop_reason == StopReason.CANCELLED:
            self._set(goal, status=GoalStatus.PAUSED)
        elif self.active and not cut_off and self._failed(outcome):
            self._set(goal, status=GoalStatus.BLOCKED)

    def _failed(self, outcome: TurnOutcome) -> bool:
        """An agent that was killed goes on in its next process; once, lest it dies for ever."""
        return outcome.stop_reason == StopReason.FAILED and self._losses != 1

    def _judge(self, watch: _Watch, outcome: TurnOutcome) -> None:
        goal = self.goal
        assert goal is not None  # it is active
        status = self._verdict(watch, outcome)
        if status is not None:
            self._set(goal, status=status)
        self._limit()

    def _verdict(self, watch: _Watch, outcome: TurnOutcome) -> GoalStatus | None:
        if outcome.stop_reason == StopReason.CANCELLED:
            return GoalStatus.PAUSED
        if outcome.goal_status is not None:
            return outcome.goal_status
        if outcome.stop_reason in (StopReason.FAILED, StopReason.REFUSAL):
            return GoalStatus.BLOCKED if watch.message.goal_mode else None
        if said := watch.final.status:
            return said
        self._idle = 0 if watch.worked or not watch.message.continuation else self._idle + 1
        return GoalStatus.BLOCKED if self._idle >= IDLE_TURNS else None

    def _limit(self) -> None:
        goal = self.goal
        if goal is None or goal.status != GoalStatus.ACTIVE or goal.token_budget is None:
            return
        if goal.tokens_used >= goal.token_budget:
            self._set(goal, status=GoalStatus.BUDGET_LIMITED)

    def _replace(self, objective: str, budget: int | None) -> None:
        self._number += 1
        self._idle = 0
        self._fresh = True
        goal = EventGoal(objective=objective, status=GoalStatus.ACTIVE, token_budget=budget)
        self._chat.record = self._chat.record.model_copy(update={"goal": goal})

    def _set(self, goal: EventGoal, **changes: object) -> None:
        changed = goal.model_copy(update=changes)
        self._chat.record = self._chat.record.model_copy(update={"goal": changed})


_PAUSABLE = (GoalStatus.ACTIVE, GoalStatus.PAUSED)


def _tokens(outcome: TurnOutcome) -> int:
    """What a turn used: the total, or its parts when the agent tells no total."""
    usage = outcome.usage or {}
    total = usage.get("totalTokens")
    counts = [total] if total is not None else [usage.get(name) for name in _PARTS]
    return sum(count for count in counts if isinstance(count, int) and count > 0)


_PARTS = ("inputTokens", "outputTokens")
