"""Blocks as a markdown document."""

import re
from collections.abc import Iterable, Iterator

from quarterdeck.transcript.blocks import (
    Block,
    DiffPart,
    EchoBlock,
    MessageBlock,
    Part,
    PlanBlock,
    TerminalPart,
    TextPart,
    ThoughtBlock,
    ToolBlock,
    UserBlock,
)
from quarterdeck.transcript.plain import diff_lines, plain_lines, tool_line, unfenced

_FENCES = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


def markdown_of(blocks: Iterable[Block]) -> str:
    """A document: who said what, with calls and what they printed as code."""
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
            yield from (code for part in block.shown_parts if (code := _part(part)))
        case PlanBlock():
            yield "\n".join(f"- {line}" for line in plain_lines(block)[1:])
        case _:
            yield "*" + " ".join(plain_lines(block)) + "*"


def _part(part: Part) -> str:
    match part:
        case TextPart():
            return _fenced(unfenced(part.text).rstrip("\n"), "")
        case DiffPart():
            return _fenced("\n".join([f"--- {part.path}", *diff_lines(part)]), "diff")
        case TerminalPart():
            return ""


def _fenced(text: str, info: str) -> str:
    """A fence that is longer than any in the text: nothing in it ends the code early."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{text}\n{fence}" if text else ""
