"""The goal of a chat (specification, operation 6; INTERFACE 4)."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from quarterdeck.wire.base import Body, CamelRecord, Record, Whole

TOKEN_BUDGET_LIMIT = 10**12
"""Largest token budget; larger ones say nothing and do not fit every database's integers."""


class GoalStatus(StrEnum):
    """How a goal stands. Only an active one is worked on."""

    ACTIVE = "active"
    PAUSED = "paused"
    BLOCKED = "blocked"
    USAGE_LIMITED = "usage_limited"
    BUDGET_LIMITED = "budget_limited"
    COMPLETE = "complete"


class ChatGoal(Record):
    """A goal as the control plane answers it. Counters are those since it was set."""

    objective: str
    status: str
    token_budget: int | None = None
    tokens_used: int = 0
    time_used_seconds: int = 0


class EventGoal(CamelRecord):
    """The same goal as events carry it."""

    objective: str
    status: str
    token_budget: int | None = None
    tokens_used: int = 0
    time_used_seconds: int = 0

    def as_goal(self) -> ChatGoal:
        """The goal under the control plane's names."""
        return ChatGoal.model_validate(self.model_dump(by_alias=False))


class UpdateGoal(Body):
    """Body of `PATCH .../goal`: at least one field. An objective replaces the goal."""

    objective: Annotated[str, Field(min_length=1)] | None = None
    status: Literal["active", "paused"] | None = None
    token_budget: Annotated[Whole, Field(ge=1, le=TOKEN_BUDGET_LIMIT)] | None = None


class GoalAnswer(Record):
    """Answer of `PATCH .../goal`; null on chats whose agent has no goals."""

    goal: ChatGoal | None
