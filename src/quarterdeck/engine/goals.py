"""The goal of a chat: set by a message or by hand, worked towards turn after turn.

The goal is part of the chat's record, so it is in the journal and outlives every process. An agent
reports progress in the last line of its message (`GOAL: complete` or `GOAL: blocked`). One with
native goals works and counts on its own: it is given the goal, and its report at a turn's end wins.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from uuid import uuid4

from quarterdeck.agents.port import GoalWish, StopReason, TurnOutcome
from quarterdeck.engine.chat_state import EngineChat, spoken
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.wire.chats import EventGoal, GoalStatus
from quarterdeck.wire.engine import ChangeGoal, DeliverMessage
from quarterdeck.wire.history import AgentEvent, AgentEventType

KEPT_CHARACTERS = 400
_STATUS_LINE = re.compile(r"^\W*GOAL:\W*(complete|blocked)\b", re.IGNORECASE)
_RULE = (
    "When the goal is reached and you have checked it, end your message with a line that says "
    "`GOAL: complete`. When you cannot go on without a person, say what you need and end with a "
    "line that says `GOAL: blocked`. Otherwise you are asked to go on after this turn."
)


def with_rule(objective: str) -> str:
    """Return the message that sets a goal, as sent to the agent."""
    return f"{objective}\n\nThis is your goal; work until it is reached. {_RULE}"


def next_turn(goal: EventGoal) -> str:
    """Return the message of the next turn."""
    budget = ""
    if goal.token_budget is not None:
        budget = f"\n\nUsed so far: {goal.tokens_used} of {goal.token_budget} tokens."
    return f"Go on towards the goal.\n\n{goal.objective}{budget}\n\n{_RULE}"


def go_on(goal: EventGoal) -> str:
    """Return the same for an agent with native goals."""
    return f"Go on towards the goal.\n\n{goal.objective}"


class FinalLine:
    """Follows a turn's events and keeps the end of the agent's newest message."""

    def __init__(self) -> None:
        self._tail = ""

    def hear(self, event: AgentEvent) -> None:
        if event.type != AgentEventType.SESSION_UPDATE:
            return
        text = spoken(event)
        if text is not None:
            self._tail = (self._tail + text)[-KEPT_CHARACTERS:]
        elif event.payload.get("sessionUpdate") == "tool_call":
            self._tail = ""  # the message was not its last

    @property
    def status(self) -> GoalStatus | None:
        """The goal's status according to the last line."""
        lines = self._tail.strip().splitlines()
        match = _STATUS_LINE.match(lines[-1]) if lines else None
        return GoalStatus(match[1].lower()) if match else None


IDLE_TURNS = 3
"""After this many continuation turns without a tool call, an agent counts as blocked."""


@dataclass
class _Watch:
    """The running turn. `number` is that of the goal it works for, None for none."""

    message: DeliverMessage
    number: int | None
    began: float
    final: FinalLine
    worked: bool = False


class Goals:
    """Keeps the goal of one chat. Changes its record; the caller writes the journal."""

    def __init__(
        self,
        chat: EngineChat,
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
        """Whether the next turn starts automatically."""
        return self.goal is not None and self.goal.status == GoalStatus.ACTIVE

    @property
    def supported(self) -> bool:
        """Whether the chat's agent supports goals."""
        return self._supported()

    @property
    def native(self) -> bool:
        """Whether the chat's agent has native goals."""
        return self._native()

    def wish(self) -> GoalWish | None:
        """Return the goal for an agent with native goals. A new goal is `fresh` once."""
        goal = self.goal
        if goal is None or not self._native():
            return None
        fresh, self._fresh = self._fresh, False
        return GoalWish(goal.objective, self.active, goal.token_budget, fresh)

    def change(self, request: ChangeGoal) -> None:
        """Set, pause or resume the goal by hand.

        Raises:
            EngineRefusedError: CONFLICT: there is none, or it can no longer be paused.
        """
        if request.objective is not None:
            self._replace(request.objective, request.token_budget)
        goal = self.goal
        if goal is None:
            raise EngineRefusedError.conflict("The chat has no goal. Set one with an objective.")
        if request.status == GoalStatus.PAUSED and goal.status not in _PAUSABLE:
            raise EngineRefusedError.conflict(f"The goal is {goal.status}, so it cannot be paused.")
        budget = goal.token_budget if request.token_budget is None else request.token_budget
        self._set(goal, status=request.status or goal.status, token_budget=budget)
        self._limit()
        self._idle = 0

    def remove(self) -> None:
        """Forget the goal; the running turn no longer counts towards it."""
        self._number += 1
        self._fresh = False
        self._chat.record = self._chat.record.model_copy(update={"goal": None})

    def pause(self) -> bool:
        """Stop working towards an active goal; return whether there was one."""
        if self.goal is None or not self.active:
            return False
        self._set(self.goal, status=GoalStatus.PAUSED)
        return True

    def begin(self, message: DeliverMessage) -> str:
        """Start a turn and return the text for the agent; a message in goal mode sets the goal."""
        of_goal = message.goal_mode and self.supported
        if of_goal and not message.continuation:
            self._replace(message.text, None)
        number = self._number if self.active else None
        self._watch = _Watch(message, number, monotonic(), FinalLine())
        add_rule = of_goal and not message.continuation and not self._native()
        return with_rule(message.text) if add_rule else message.text

    def hear(self, event: AgentEvent) -> None:
        """Follow an event of the turn."""
        if self._watch is not None:
            self._watch.final.hear(event)
            self._watch.worked |= event.payload.get("sessionUpdate") == "tool_call"

    def settle(self, outcome: TurnOutcome, cut_off: bool, lost: bool = False) -> None:
        """Note that the turn ended.

        `cut_off`: the engine is ending, so the goal stays. `lost`: the agent's process ended.
        """
        self._losses = self._losses + 1 if lost else 0
        watch, self._watch = self._watch, None
        goal = self.goal
        if goal is None or watch is None or watch.number != self._number:
            return
        self._count(goal, watch, outcome)
        if self._native():
            self._heed(outcome, cut_off)
        elif goal.status in _PAUSABLE and not cut_off:
            self._judge(watch, outcome)

    def next_message(self) -> DeliverMessage | None:
        """Return the message of the next turn towards the goal."""
        if self.goal is None or not self.active or not self.supported:
            return None
        last = self._chat.last
        return DeliverMessage(
            chat_id=self._chat.record.id,
            message_id=uuid4(),
            text=go_on(self.goal) if self._native() else next_turn(self.goal),
            model=last.model if last else None,
            fast_mode=last.fast_mode if last else False,
            thinking_level=last.thinking_level if last else None,
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
        """Take over an agent's own status. Whether it is active or paused is decided here."""
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
        """Return whether the turn failed for good; an agent that died once is started again."""
        return outcome.stop_reason == StopReason.FAILED and self._losses != 1

    def _judge(self, watch: _Watch, outcome: TurnOutcome) -> None:
        goal = self.goal
        assert goal is not None  # its turn has just ended
        status = self._verdict(watch, outcome)
        # A goal that was paused during its turn can still be reported complete.
        if status is not None and (self.active or status == GoalStatus.COMPLETE):
            self._set(goal, status=status)
        self._limit()

    def _verdict(self, watch: _Watch, outcome: TurnOutcome) -> GoalStatus | None:
        if outcome.stop_reason == StopReason.CANCELLED:
            return GoalStatus.PAUSED
        if outcome.goal_status is not None:
            return outcome.goal_status
        if outcome.stop_reason in (StopReason.FAILED, StopReason.REFUSAL):
            return GoalStatus.BLOCKED if watch.message.goal_mode else None
        if status := watch.final.status:
            return status
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
    """Return the tokens of a turn: the total, or the sum of its parts without one."""
    usage = outcome.usage or {}
    total = usage.get("totalTokens")
    counts = [total] if total is not None else [usage.get(name) for name in _PARTS]
    return sum(count for count in counts if isinstance(count, int) and count > 0)


_PARTS = ("inputTokens", "outputTokens")
