"""Goals of an agent that works towards them by itself: what it is told, and whose word counts."""

from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from quarterdeck.agents.port import GoalReport, GoalWish, StopReason, TurnOutcome
from quarterdeck.engine.chat_state import EngineChat
from quarterdeck.engine.goals import Goals
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import EventChat, GoalStatus
from quarterdeck.wire.engine import ChangeGoal, DeliverMessage


@dataclass
class Desk:
    """One chat with its goal."""

    chat: EngineChat
    goals: Goals = field(init=False)

    def __post_init__(self) -> None:
        self.goals = Goals(self.chat, lambda: True, lambda: True)

    @property
    def status(self) -> str:
        assert self.goals.goal is not None
        return self.goals.goal.status

    def begin(self, text: str, **more: bool) -> str:
        chat_id = self.chat.record.id
        return self.goals.begin(
            DeliverMessage(chat_id=chat_id, message_id=uuid4(), text=text, **more)
        )

    def end(
        self, reason: StopReason, status: GoalStatus | None, used: int = 7, lost: bool = False
    ) -> None:
        report = GoalReport(status, used, 2) if status else None
        outcome = TurnOutcome(reason, "x" if reason == StopReason.FAILED else None, goal=report)
        self.goals.settle(outcome, cut_off=False, lost=lost)


@pytest.fixture
def desk() -> Desk:
    now = utc_now()
    return Desk(EngineChat(EventChat(id=uuid4(), provider="codex", created_at=now, updated_at=now)))


def test_it_is_told_the_goal_and_no_rules(desk: Desk) -> None:
    assert desk.begin("win", goal_mode=True) == "win"
    assert desk.goals.wish() == GoalWish("win", fresh=True)
    assert desk.goals.wish() == GoalWish("win")  # fresh once
    message = desk.goals.next_message()
    assert message is not None and "GOAL:" not in message.text and "win" in message.text


@pytest.mark.parametrize(
    ("reason", "told", "status"),
    [
        (StopReason.END_TURN, GoalStatus.ACTIVE, "active"),
        (StopReason.END_TURN, GoalStatus.COMPLETE, "complete"),
        (StopReason.END_TURN, GoalStatus.BUDGET_LIMITED, "budget_limited"),
        (StopReason.FAILED, GoalStatus.USAGE_LIMITED, "usage_limited"),
        (StopReason.FAILED, GoalStatus.ACTIVE, "blocked"),
        (StopReason.FAILED, None, "blocked"),
        (StopReason.CANCELLED, GoalStatus.ACTIVE, "paused"),
        (StopReason.CANCELLED, GoalStatus.PAUSED, "paused"),
        (StopReason.END_TURN, GoalStatus.PAUSED, "active"),  # it rests after it was reopened
    ],
)
def test_its_word_on_the_goal(
    desk: Desk, reason: StopReason, told: GoalStatus | None, status: str
) -> None:
    desk.begin("win", goal_mode=True)
    desk.end(reason, told)
    assert desk.status == status


def test_its_counts_win(desk: Desk) -> None:
    desk.begin("win", goal_mode=True)
    desk.end(StopReason.END_TURN, GoalStatus.ACTIVE, used=70)
    desk.begin("go on", goal_mode=True, continuation=True)
    desk.end(StopReason.END_TURN, GoalStatus.ACTIVE, used=140)
    goal = desk.goals.goal
    assert goal is not None and (goal.tokens_used, goal.time_used_seconds) == (140, 2)


def test_killed_once_it_goes_on_and_killed_again_it_is_blocked(desk: Desk) -> None:
    desk.begin("win", goal_mode=True)
    desk.end(StopReason.FAILED, None, lost=True)
    assert desk.status == "active"
    desk.begin("go on", goal_mode=True, continuation=True)
    desk.end(StopReason.FAILED, None, lost=True)
    assert desk.status == "blocked"


def test_paused_by_hand_in_a_turn_it_stays_paused(desk: Desk) -> None:
    desk.begin("win", goal_mode=True)
    desk.goals.change(ChangeGoal(chat_id=desk.chat.record.id, status="paused"))
    assert desk.goals.wish() == GoalWish("win", active=False, fresh=True)
    desk.end(StopReason.END_TURN, GoalStatus.ACTIVE)
    assert desk.status == "paused"


def test_a_goal_that_was_replaced_in_a_turn_is_not_judged_by_it(desk: Desk) -> None:
    desk.begin("win", goal_mode=True)
    desk.goals.change(ChangeGoal(chat_id=desk.chat.record.id, objective="draw"))
    desk.end(StopReason.END_TURN, GoalStatus.COMPLETE)
    assert desk.status == "active" and desk.goals.goal.tokens_used == 0
