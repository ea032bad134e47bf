"""Folds the agent events of a chat into blocks to show. Pure: no screen, no I/O.

Message flow: `wire.AgentEvent` -> a dialect (`acp`) reads it as steps -> `apply.Fold` -> `Block`s.

Names are imported on first use, so importing only `clean` does not load the fold.
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
        Part,
        PlanBlock,
        PlanEntry,
        PlanState,
        QuestionBlock,
        QuestionOption,
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
    from quarterdeck.transcript.export import plain_lines
    from quarterdeck.transcript.fold import BlockChanges, Transcript

_HOMES = {
    "Block": "blocks",
    "BlockChanges": "fold",
    "DiffPart": "blocks",
    "EchoBlock": "blocks",
    "Location": "blocks",
    "MessageBlock": "blocks",
    "NoteBlock": "blocks",
    "QuestionOption": "blocks",
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
    "plain_lines": "export",
}

__all__ = [
    "Block",
    "BlockChanges",
    "DiffPart",
    "EchoBlock",
    "Location",
    "MessageBlock",
    "NoteBlock",
    "Part",
    "PlanBlock",
    "PlanEntry",
    "PlanState",
    "QuestionBlock",
    "QuestionOption",
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
