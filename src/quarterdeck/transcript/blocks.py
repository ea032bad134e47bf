"""The blocks of a transcript.

Only the fold changes blocks, in place; all other code reads them. `id` is stable for the
life of the transcript; `revision` grows with every change, so drawings can be cached by both.
All text is cleaned, but ids are not.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from quarterdeck.transcript.text import Flow, clean, one_line


class ToolState(StrEnum):
    """How far a tool call is. STOPPED: its turn ended before it did."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


class PlanState(StrEnum):
    """How far a step of a plan is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


@dataclass(slots=True, eq=False)
class Turn:
    """From one user message to the next. The first of a page may have started on an older page."""

    message_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    stop_reason: str | None = None
    plan: "PlanBlock | None" = None
    running: "dict[str, ToolBlock]" = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether the agent has received a message and sent no result yet."""
        return self.started_at is not None and self.ended_at is None


@dataclass(slots=True, eq=False, kw_only=True)
class Block:
    """One entry of a transcript."""

    id: int
    turn: Turn
    at: datetime
    revision: int = 0


@dataclass(slots=True, eq=False, kw_only=True)
class UserBlock(Block):
    """A message of the person. `images` and `uploads` are names or descriptions.

    `steered`: it was put into the running turn.
    """

    text: str
    message_id: str | None = None
    images: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    plan_mode: bool = False
    goal_mode: bool = False
    steered: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class SpeechBlock(Block):
    """Text that arrives in pieces, of one message."""

    flow: Flow
    message_id: str | None = None

    @property
    def text(self) -> str:
        """The text so far, safe to show."""
        return self.flow.text


class EchoBlock(SpeechBlock):
    """The person's message as the agent repeats it; dropped where the turn has the message itself."""

    __slots__ = ()


class MessageBlock(SpeechBlock):
    """Text of the agent, markdown."""

    __slots__ = ()


class ThoughtBlock(SpeechBlock):
    """A thought of the agent."""

    __slots__ = ()


class TextPart(NamedTuple):
    """Text or output inside a tool call."""

    text: str


class DiffPart(NamedTuple):
    """A change of one file; `old` None: the file is new."""

    path: str
    old: str | None
    new: str


class TerminalPart(NamedTuple):
    """Output lives in a terminal of the agent's client."""

    terminal_id: str


Part = TextPart | DiffPart | TerminalPart


class Location(NamedTuple):
    """A file that a tool call touches."""

    path: str
    line: int | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class ToolBlock(Block):
    """A tool call. Fields that are not known yet are None."""

    tool_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    parts: tuple[Part, ...] | None = None
    locations: tuple[Location, ...] | None = None
    command: str | None = None
    raw_input: Any = None
    output: str | None = None
    exit_code: int | None = None
    ended_at: datetime | None = None

    @property
    def state(self) -> ToolState:
        """The state to show: a call that outlives its turn was stopped."""
        match self.status:
            case "completed":
                return ToolState.COMPLETED
            case "failed":
                return ToolState.FAILED
            case _ if self.turn.ended_at is not None:
                return ToolState.STOPPED
            case "in_progress":
                return ToolState.IN_PROGRESS
            case _:
                return ToolState.PENDING

    @property
    def name(self) -> str:
        """One line that says what the call does."""
        return self.title or self.command or self.kind or "Tool call"

    @property
    def duration(self) -> float | None:
        """Seconds from its first event to its end."""
        if self.ended_at is None:
            return None
        return max(0.0, (self.ended_at - self.at).total_seconds())

    @property
    def input_text(self) -> str:
        """The raw input as readable JSON; empty when there is none."""
        if self.raw_input in (None, {}, ""):
            return ""
        return clean(json.dumps(self.raw_input, indent=2, ensure_ascii=False, default=str))

    @property
    def shown_parts(self) -> Sequence[Part]:
        """The content; the raw output in the place of a terminal's, and when there is no content."""
        parts = self.parts or ()
        read = [part for part in parts if not isinstance(part, TerminalPart)]
        if self.output and (not parts or len(read) < len(parts)):
            return (*read, TextPart(self.output))
        return parts


class PlanEntry(NamedTuple):
    """A step of a plan."""

    text: str
    state: PlanState
    priority: str = "medium"


@dataclass(slots=True, eq=False, kw_only=True)
class PlanBlock(Block):
    """The plan of a turn, always the newest."""

    entries: tuple[PlanEntry, ...]


class QuestionOption(NamedTuple):
    """One answer to a question. `id` is as the agent wrote it: it is sent back, and cleaned where it is shown."""

    id: str
    name: str
    kind: str = ""


@dataclass(slots=True, eq=False, kw_only=True)
class QuestionBlock(Block):
    """A question that the agent asks.

    `outcome` is None while it is open, then `selected` with `chosen`, `answered` with `text` (empty for
    a secret one), or `cancelled`. With `takes_text` a text is an answer too; that of a `secret` one is
    never shown. `command`: the command to be run, where the title does not contain it. `patterns`:
    those of rules that would allow its command from now on. `after_turn`: it was asked when no turn was running, so the end of one does not close it.
    """

    request_id: str
    title: str | None = None
    tool_id: str | None = None
    options: tuple[QuestionOption, ...] | None = None
    takes_text: bool = False
    secret: bool = False
    command: str | None = None
    patterns: tuple[str, ...] = ()
    outcome: str | None = None
    chosen: str | None = None
    text: str | None = None
    after_turn: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it can still be answered."""
        return self.outcome is None and (self.after_turn or self.turn.ended_at is None)

    @property
    def chosen_name(self) -> str | None:
        """The chosen option's name, or its id when the options are not known."""
        for option in self.options or ():
            if option.id == self.chosen:
                return option.name
        return self.chosen and one_line(self.chosen)


@dataclass(slots=True, eq=False, kw_only=True)
class ResultBlock(Block):
    """The end of a turn: `end_turn`, `failed`, `cancelled`, `refusal`, `max_tokens` ...

    The other values say what it took, where that is known: `seconds`, `tokens`, and `cost` with its
    currency.
    """

    reason: str
    error: str | None = None
    model: str | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the agent simply came to its end."""
        return self.reason == "end_turn" and not self.error


@dataclass(slots=True, eq=False, kw_only=True)
class NoteBlock(Block):
    """A line of text: an operation of the service, or an event unknown to every dialect."""

    text: str


_REASONS = {
    "failed": "Failed",
    "cancelled": "Interrupted",
    "refusal": "The agent refused to continue",
    "max_tokens": "Stopped: the answer reached the token limit",
    "max_turn_requests": "Stopped: the turn reached its limit of model requests",
}


def result_text(block: ResultBlock) -> str:
    """Return how the turn ended, in one sentence."""
    reason = _REASONS.get(block.reason, f"Ended: {block.reason}")
    return f"{reason}: {block.error}" if block.error else reason


def spent_text(block: ResultBlock) -> str:
    """Return what a turn took: `gpt-5 · 12 s · 4,102 tokens · $0.03`; empty when nothing is known."""
    seconds = None if block.seconds is None else duration_text(block.seconds)
    tokens = None if block.tokens is None else f"{block.tokens:,} tokens"
    return " \u00b7 ".join(part for part in (block.model, seconds, tokens, block.cost) if part)


def duration_text(seconds: float) -> str:
    """Return a duration as text: `0.4 s`, `12 s`, `3 m 05 s`, `2 h 10 m`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def question_text(block: QuestionBlock, tool: ToolBlock | None) -> str:
    """Return the question as text."""
    return block.title or (tool.name if tool else None) or "The agent asks"


def outcome_text(block: QuestionBlock) -> str:
    """Return how a question ended; empty while it is open."""
    if block.is_open:
        return ""
    return block.text or block.chosen_name or block.outcome or "not answered"
