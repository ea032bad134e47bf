"""Folds the agent events of a chat into blocks to show. Pure: no screen, no I/O.

Message flow: `wire.AgentEvent` -> a dialect (`acp`) reads it as steps -> `apply.Fold` -> `Block`s.
"""

from quarterdeck.transcript.blocks import (
    Block,
    DiffPart,
    EchoBlock,
    Location,
    MessageBlock,
    NoteBlock,
    Option,
    Part,
    PlanBlock,
    PlanEntry,
    PlanState,
    QuestionBlock,
    ResultBlock,
    SpeechBlock,
    TerminalPart,
    TextPart,
    ThoughtBlock,
    ToolBlock,
    ToolState,
    Turn,
    UserBlock,
)
from quarterdeck.transcript.fold import Change, Transcript
from quarterdeck.transcript.plain import plain_lines

__all__ = [
    "Block",
    "Change",
    "DiffPart",
    "EchoBlock",
    "Location",
    "MessageBlock",
    "NoteBlock",
    "Option",
    "Part",
    "PlanBlock",
    "PlanEntry",
    "PlanState",
    "QuestionBlock",
    "ResultBlock",
    "SpeechBlock",
    "TerminalPart",
    "TextPart",
    "ThoughtBlock",
    "ToolBlock",
    "ToolState",
    "Transcript",
    "Turn",
    "UserBlock",
    "plain_lines",
]
