"""Lays a block out as rows."""

from dataclasses import dataclass
from datetime import datetime

from quarterdeck.transcript import (
    Block,
    EchoBlock,
    MessageBlock,
    NoteBlock,
    PlanBlock,
    PlanState,
    QuestionBlock,
    ResultBlock,
    SpeechBlock,
    ThoughtBlock,
    ToolBlock,
    UserBlock,
)
from quarterdeck.transcript.blocks import outcome_text, question_text, result_text
from quarterdeck.tui.kit.spans import (
    Emphasis,
    Line,
    Span,
    TextRole,
    fit,
    indent,
    line,
    wrap,
    wrap_hard,
)
from quarterdeck.tui.transcript_view.blocks import answer_keys, typed_rows
from quarterdeck.tui.transcript_view.markdown import Prose
from quarterdeck.tui.transcript_view.shapes import BlockShape
from quarterdeck.tui.transcript_view.tool import tool_rows

TOGGLE = "toggle"
OPTION = "option:"
"""Targets of spans: a click on them opens the block, or chooses the option of that number."""
COMMAND_ROWS = 12
"""Rows of a command that its question shows."""

_CHECKS = {
    PlanState.PENDING: ("\u25cb", TextRole.DIM),
    PlanState.IN_PROGRESS: ("\u25cf", TextRole.WORKING),
    PlanState.COMPLETED: ("\u2713", TextRole.DONE),
}


@dataclass(frozen=True, slots=True)
class BlockStyle:
    """How to draw a block, besides its own content."""

    width: int
    shape: BlockShape = BlockShape.FOLDED
    choice: int = 0
    gap: bool = False
    working_since: datetime | None = None


def rows_of(block: Block, look: BlockStyle, tool: ToolBlock | None, prose: Prose) -> list[Line]:
    """Return all rows of a block. `tool`: the call that a question is about."""
    rows = _content(block, look, tool, prose)
    if look.gap:
        rows = [(), *rows]
    if look.working_since is not None:
        rows = [
            *rows,
            (),
            line(f"\u25cf working since {clock(look.working_since)}", TextRole.WORKING),
        ]
    return rows


def is_compact(block: Block) -> bool:
    """Return whether such blocks have no blank row between them."""
    return isinstance(block, ToolBlock | ThoughtBlock | NoteBlock)


def clock(at: datetime) -> str:
    """Return the local time of day."""
    return at.astimezone().strftime("%H:%M")


def guess(block: Block, width: int, shape: BlockShape) -> int:
    """Estimate cheaply how many rows a block takes."""
    match block:
        case MessageBlock():
            return 1 + block.flow.length // width + block.flow.length // 120
        case UserBlock():
            return 2 + len(block.text) // width + block.text.count("\n")
        case EchoBlock():
            return 2 + block.flow.length // width
        case PlanBlock():
            return 1 + len(block.entries)
        case QuestionBlock():
            return _question_guess(block, width) if block.is_open else 1
        case ToolBlock() | ThoughtBlock():
            return 1 if shape is BlockShape.FOLDED else 8
        case _:
            return 1


def _question_guess(block: QuestionBlock, width: int) -> int:
    command = block.command or ""
    rows = len(command) // width + command.count("\n") + 1 if command else 0
    return 1 + min(rows, COMMAND_ROWS) + len(block.options or ())


def _content(block: Block, look: BlockStyle, tool: ToolBlock | None, prose: Prose) -> list[Line]:
    match block:
        case UserBlock():
            return _user(block, look)
        case EchoBlock():
            return _message_rows(block, block.text, "", look)
        case MessageBlock():
            return prose.rows(block.text.rstrip()) or [()]
        case ThoughtBlock():
            return _thought(block, look)
        case ToolBlock():
            return tool_rows(block, look.width, look.shape, TOGGLE)
        case PlanBlock():
            return _plan(block, look)
        case QuestionBlock():
            return _question(block, look, tool)
        case ResultBlock():
            role = TextRole.DIM if block.reason == "cancelled" else TextRole.FAILED
            mark = Span("\u25a0 " if block.reason == "cancelled" else "\u2717 ", role)
            return _texts(result_text(block), role, look.width, (mark,))
        case NoteBlock():
            return [fit(line(f"\u00b7 {block.text}", TextRole.DIM), look.width)]
        case _:
            return [()]


def _texts(text: str, role: TextRole, width: int, mark: Line = ()) -> list[Line]:
    room = width - sum(len(span.text) for span in mark)
    rows = [row for part in text.split("\n") for row in wrap([Span(part, role)], room)]
    return list(indent(rows, mark, line(" " * (width - room)))) if mark else rows


def _user(block: UserBlock, look: BlockStyle) -> list[Line]:
    modes = [n for n, on in (("plan", block.plan_mode), ("goal", block.goal_mode)) if on]
    rows = _message_rows(block, block.text, " ".join(modes), look)
    named = [f"[image: {name}]" for name in block.images]
    named += [f"[file: {name}]" for name in block.uploads]
    bar = Span("\u258e ", TextRole.USER)
    rows += [fit((bar, Span(name, TextRole.DIM)), look.width) for name in named]
    return rows


def _message_rows(block: Block, text: str, modes: str, look: BlockStyle) -> list[Line]:
    head: Line = (
        Span("You", TextRole.USER, Emphasis.BOLD),
        Span(f" {clock(block.at)}", TextRole.DIM),
    )
    if modes:
        head += (Span(f" {modes}", TextRole.ASKING),)
    bar = line("\u258e ", TextRole.USER)
    return [head, *(indent(typed_rows(text, look.width - 2), bar, bar) if text else ())]


def _thought(block: SpeechBlock, look: BlockStyle) -> list[Line]:
    text = block.text.strip()
    opened = look.shape is BlockShape.OPEN
    sign = "\u25be" if opened else "\u25b8"
    if opened:
        head: Line = (Span(f"{sign} thought", TextRole.DIM, target=TOGGLE),)
        pad = line("  ")
        return [head, *indent(_texts(text, TextRole.DIM, look.width - 2), pad, pad)]
    first = text.partition("\n")[0].strip("*# ")
    return [fit((Span(f"{sign} {first}", TextRole.DIM, Emphasis.ITALIC, "", TOGGLE),), look.width)]


def _plan(block: PlanBlock, look: BlockStyle) -> list[Line]:
    done = sum(entry.state is PlanState.COMPLETED for entry in block.entries)
    rows: list[Line] = [
        (
            Span("Plan", TextRole.HEADING, Emphasis.BOLD),
            Span(f" {done}/{len(block.entries)}", TextRole.DIM),
        )
    ]
    for entry in block.entries:
        sign, role = _CHECKS[entry.state]
        text = TextRole.DIM if entry.state is PlanState.COMPLETED else TextRole.TEXT
        rows += _texts(entry.text, text, look.width, line(f"{sign} ", role))
    return rows


def _question(block: QuestionBlock, look: BlockStyle, tool: ToolBlock | None) -> list[Line]:
    question = question_text(block, tool)
    if not block.is_open:
        sign = line("\u25aa ", TextRole.DIM)
        return _texts(f"{question}: {outcome_text(block)}", TextRole.DIM, look.width, sign)
    rows = _texts(question, TextRole.ASKING, look.width, line("? ", TextRole.ASKING))
    if block.command:
        rows += _command(block.command, look.width)
    keys = answer_keys(block)
    room = max(map(len, keys), default=0)
    for number, (key, option) in enumerate(zip(keys, block.options or (), strict=True)):
        chosen = number == look.choice
        role, sign = (TextRole.CHOSEN, "\u276f") if chosen else (TextRole.TEXT, " ")
        words = f"  {sign} {key:<{room}}  {option.name} "
        rows.append(fit((Span(words, role, target=f"{OPTION}{number}"),), look.width))
    if block.takes_text:
        lead = "    or type" if block.options else "    Type"
        rows += _texts(f"{lead} an answer below.", TextRole.DIM, look.width)
    return rows


def _command(command: str, width: int) -> list[Line]:
    """Return the command. Of a long one both ends are shown: what it is and what comes last."""
    rows = [
        row
        for part in command.split("\n")
        for row in wrap_hard([Span(part, TextRole.CODE)], width - 4)
    ]
    left_out = len(rows) - COMMAND_ROWS
    if left_out > 0:
        half = COMMAND_ROWS // 2
        note = fit(line(f"\u2026 {left_out:,} more rows", TextRole.DIM), width - 4)
        rows = [*rows[:half], note, *rows[-half:]]
    return list(indent(rows, line("  $ ", TextRole.DIM), line("    ")))
