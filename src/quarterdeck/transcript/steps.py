"""Steps that a dialect reads from an event and the fold applies.

The steps are chosen so that folding is the same wherever a page boundary lies: each names its block
by its own id, or by the step right before it.
"""

from typing import Any, NamedTuple

from quarterdeck.transcript.blocks import (
    EchoBlock,
    Location,
    MessageBlock,
    Part,
    PlanEntry,
    QuestionOption,
    ThoughtBlock,
)


class PromptSent(NamedTuple):
    """A user message, which starts a turn unless it was put into the running one (`steered`)."""

    text: str
    message_id: str | None = None
    images: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    plan_mode: bool = False
    goal_mode: bool = False
    steered: bool = False


class OwnTurnBegan(NamedTuple):
    """The start of a turn that the agent began by itself."""

    message_id: str


class TextChunk(NamedTuple):
    """A piece of a message or thought; raw text."""

    speaker: type[MessageBlock] | type[ThoughtBlock] | type[EchoBlock]
    text: str
    message_id: str | None = None


class ToolCallUpdate(NamedTuple):
    """Values of a tool call; None: not known. `opens`: the agent started it here."""

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


class PlanUpdate(NamedTuple):
    """The whole plan of the turn."""

    entries: tuple[PlanEntry, ...]


class QuestionAsked(NamedTuple):
    """A question to the person."""

    request_id: str
    title: str | None
    tool_id: str | None
    options: tuple[QuestionOption, ...]
    takes_text: bool = False
    secret: bool = False
    command: str | None = None
    patterns: tuple[str, ...] = ()


class QuestionResolved(NamedTuple):
    """A question is no longer open."""

    request_id: str
    outcome: str
    chosen: str | None = None
    text: str | None = None


class TurnEnded(NamedTuple):
    """The turn is over. `seconds`, `tokens`, `cost`: what it took; None where it is not known."""

    reason: str
    error: str | None = None
    model: str | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost: str | None = None


class NoteAdded(NamedTuple):
    """One line of a `NoteBlock`."""

    text: str


Step = (
    PromptSent
    | OwnTurnBegan
    | TextChunk
    | ToolCallUpdate
    | PlanUpdate
    | QuestionAsked
    | QuestionResolved
    | TurnEnded
    | NoteAdded
)
