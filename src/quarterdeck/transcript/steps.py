"""What a dialect makes of an event, and the fold applies.

The steps are chosen so that folding is the same wherever a page boundary lies: each names its block
by an id of its own, or by the step right before it.
"""

from dataclasses import dataclass
from typing import Any

from quarterdeck.transcript.blocks import (
    EchoBlock,
    Location,
    MessageBlock,
    Option,
    Part,
    PlanEntry,
    ThoughtBlock,
)


@dataclass(frozen=True, slots=True)
class Prompted:
    """A user message; a turn begins."""

    text: str
    message_id: str | None = None
    images: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    plan_mode: bool = False
    goal_mode: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of a message or thought; raw text."""

    speaker: type[MessageBlock] | type[ThoughtBlock] | type[EchoBlock]
    text: str
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """Something is known about a tool call. None: not told. `opens`: the agent began it here."""

    tool_id: str
    opens: bool = False
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    parts: tuple[Part, ...] | None = None
    locations: tuple[Location, ...] | None = None
    command: str | None = None
    raw_input: Any = None
    output: str | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The whole plan of the turn."""

    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to the person."""

    request_id: str
    title: str | None
    tool_id: str | None
    options: tuple[Option, ...]
    takes_text: bool = False
    secret: bool = False
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A question is no longer open."""

    request_id: str
    outcome: str
    chosen: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn is over."""

    reason: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """One dim line."""

    text: str


Step = Prompted | Said | Called | Planned | Asked | Settled | Ended | Noted
