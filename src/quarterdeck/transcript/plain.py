"""Blocks as plain text lines, for the command line and for copying."""

from collections.abc import Iterator
from difflib import unified_diff

from quarterdeck.transcript.blocks import (
    Block,
    DiffPart,
    EchoBlock,
    MessageBlock,
    NoteBlock,
    Part,
    PlanBlock,
    PlanState,
    QuestionBlock,
    ResultBlock,
    TerminalPart,
    TextPart,
    ThoughtBlock,
    ToolBlock,
    UserBlock,
)
from quarterdeck.transcript.words import duration_text, outcome_text, result_text

_CHECKS = {PlanState.PENDING: " ", PlanState.IN_PROGRESS: "-", PlanState.COMPLETED: "x"}


def plain_lines(block: Block) -> list[str]:
    """A block as lines of text, without newlines, colors or control characters."""
    return [line for text in _texts(block) for line in text.split("\n")]


def diff_lines(part: DiffPart) -> list[str]:
    """A change as the lines of a unified diff, without the two file lines."""
    old = (part.old or "").splitlines()
    lines = list(unified_diff(old, part.new.splitlines(), lineterm="", n=3))
    return lines[2:]


def unfenced(text: str) -> str:
    """The output of a command without the fence that several agents put around it."""
    text = text.strip("\n")
    if not (text.startswith("```") and text.endswith("\n```")):
        return text
    return text.partition("\n")[2].removesuffix("```").removesuffix("\n")


def tool_line(block: ToolBlock) -> str:
    """A tool call in one line: state, name, exit code, duration."""
    words = [f"[{block.state}]", block.name]
    if block.exit_code is not None:
        words.append(f"exit {block.exit_code}")
    if block.duration is not None:
        words.append(duration_text(block.duration))
    return "  ".join(words)


def _texts(block: Block) -> Iterator[str]:
    match block:
        case UserBlock():
            yield from (f"> {line}" for line in block.text.split("\n"))
            yield from (f"> [image: {name}]" for name in block.images)
            yield from (f"> [file: {name}]" for name in block.uploads)
        case EchoBlock():
            yield from (f"> {line}" for line in block.text.split("\n"))
        case MessageBlock():
            yield block.text
        case ThoughtBlock():
            yield from (f"~ {line}" for line in block.text.split("\n"))
        case ToolBlock():
            yield tool_line(block)
            for part in block.shown_parts:
                yield from (f"  {line}" for line in _part(part))
        case PlanBlock():
            yield "Plan:"
            yield from (f"[{_CHECKS[entry.state]}] {entry.text}" for entry in block.entries)
        case QuestionBlock():
            yield from _question(block)
        case ResultBlock():
            yield result_text(block)
        case NoteBlock():
            yield f"({block.text})"
        case _:
            yield ""


def _question(block: QuestionBlock) -> Iterator[str]:
    yield f"? {block.title or 'The agent asks'}"
    if not block.is_open:
        yield f"  -> {outcome_text(block)}"
        return
    if block.command:
        lead = "  $ "
        for line in block.command.split("\n"):
            yield lead + line
            lead = "    "
    for number, option in enumerate(block.options or (), 1):
        yield f"  {number}. {option.name} ({option.id})"
    if block.takes_text:
        yield "  or a text of your own"


def _part(part: Part) -> list[str]:
    match part:
        case TextPart():
            return part.text.rstrip("\n").split("\n") if part.text else []
        case DiffPart():
            return [part.path, *diff_lines(part)]
        case TerminalPart():
            return [f"[terminal {part.terminal_id}]"]
