"""Write blocks as plain text."""

import re
from collections.abc import Iterable, Iterator
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
    duration_text,
    outcome_text,
    result_text,
    spent_text,
)
from quarterdeck.transcript.text import one_line

_CHECKS = {PlanState.PENDING: " ", PlanState.IN_PROGRESS: "-", PlanState.COMPLETED: "x"}


def plain_lines(block: Block) -> list[str]:
    """Return a block as lines of text, without newlines, colors or control characters."""
    return [line for text in _texts(block) for line in text.split("\n")]


def diff_lines(part: DiffPart) -> list[str]:
    """Return a change as the lines of a unified diff, without the two file lines."""
    old = (part.old or "").splitlines()
    lines = list(unified_diff(old, part.new.splitlines(), lineterm="", n=3))
    return lines[2:]


def unfenced(text: str) -> str:
    """Return the output of a command without the fence that several agents put around it."""
    text = text.strip("\n")
    if not (text.startswith("```") and text.endswith("\n```")):
        return text
    return text.partition("\n")[2].removesuffix("```").removesuffix("\n")


def tool_line(block: ToolBlock) -> str:
    """Return a tool call in one line: state, name, exit code, duration."""
    parts = [f"[{block.state}]", block.name]
    if block.exit_code is not None:
        parts.append(f"exit {block.exit_code}")
    if block.duration is not None:
        parts.append(duration_text(block.duration))
    return "  ".join(parts)


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
            ends = "" if block.is_plain else result_text(block), spent_text(block)
            yield from (text for text in ends if text)
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
        yield f"  {number}. {option.name} ({one_line(option.id)})"
    if block.takes_text:
        yield "  or your own text"


def _part(part: Part) -> list[str]:
    match part:
        case TextPart():
            return part.text.rstrip("\n").split("\n") if part.text else []
        case DiffPart():
            return [part.path, *diff_lines(part)]
        case TerminalPart():
            return [f"[terminal {part.terminal_id}]"]


_FENCES = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


def markdown_of(blocks: Iterable[Block]) -> str:
    """Return the messages as a document, with tool calls and their output as code."""
    return "\n\n".join(part for block in blocks for part in _parts(block)) + "\n"


def _parts(block: Block) -> Iterator[str]:
    match block:
        case UserBlock():
            yield f"## You, {block.at:%Y-%m-%d %H:%M}"
            yield block.text
            yield from (f"*image: {name}*" for name in block.images)
            yield from (f"*file: {name}*" for name in block.uploads)
        case EchoBlock():
            yield f"## You, {block.at:%Y-%m-%d %H:%M}"
            yield block.text
        case MessageBlock():
            yield block.text.strip()
        case ThoughtBlock():
            yield "\n".join(f"> {line}" for line in block.text.strip().split("\n"))
        case ToolBlock():
            yield f"- {tool_line(block)}"
            yield from (code for part in block.shown_parts if (code := _prose_part(part)))
        case PlanBlock():
            yield "\n".join(f"- {line}" for line in plain_lines(block)[1:])
        case _:
            if lines := plain_lines(block):
                yield "*" + " ".join(lines) + "*"


def _prose_part(part: Part) -> str:
    match part:
        case TextPart():
            return _fenced(unfenced(part.text).rstrip("\n"), "")
        case DiffPart():
            return _fenced("\n".join([f"--- {part.path}", *diff_lines(part)]), "diff")
        case TerminalPart():
            return ""


def _fenced(text: str, info: str) -> str:
    """Return the text in a fence longer than any in it, so that nothing in it ends the code."""
    longest = max((len(ticks) for ticks in _FENCES.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{text}\n{fence}" if text else ""
