"""Folds the agent events of a chat into blocks to show. Pure: no screen, no I/O.

Message flow: `wire.AgentEvent` -> a dialect (`acp`) reads it as steps -> `apply.Fold` -> `Block`s.

Names are found when they are first used: who needs only `clean` does not load the fold.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "Block": "blocks",
    "Change": "fold",
    "DiffPart": "blocks",
    "EchoBlock": "blocks",
    "Location": "blocks",
    "MessageBlock": "blocks",
    "NoteBlock": "blocks",
    "Option": "blocks",
    "Part": "blocks",
    "PlanBlock": "blocks",
    "PlanEntry": "blocks",
    "PlanState": "blocks",
    "QuestionBlock": "blocks",
    "ResultBlock": "blocks",
    "SpeechBlock": "blocks",
    "TerminalPart": "blocks",
    "TextPart": "blocks",
    "ThoughtBlock": "blocks",
    "ToolBlock": "blocks",
    "ToolState": "blocks",
    "Transcript": "fold",
    "Turn": "blocks",
    "UserBlock": "blocks",
    "plain_lines": "plain",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"quarterdeck.transcript.{_HOMES[name]}"), name)
