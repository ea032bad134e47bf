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
from quarterdeck.transcript.words import outcome_text, question_text, result_text
from quarterdeck.tui.transcript_view.lines import Line, Mark, Role, Span, line
from quarterdeck.tui.transcript_view.prose import Prose
from quarterdeck.tui.transcript_view.shapes import Shape
from quarterdeck.tui.transcript_view.tool import tool_rows
from quarterdeck.tui.transcript_view.typed import typed_rows
from quarterdeck.tui.transcript_view.wrap import fit, indent, wrap, wrap_hard

TOGGLE = "toggle"
OPTION = "option:"
"""Targets of spans: a click on them opens the block, or chooses the option of that number."""
COMMAND_ROWS = 12
"""Rows of a command that its question shows."""

_CHECKS = {
    PlanState.PENDING: ("\u25cb", Role.DIM),
    PlanState.IN_PROGRESS: ("\u25cf", Role.WORKING),
    PlanState.COMPLETED: ("\u2713", Role.DONE),
}


@dataclass(frozen=True, slots=True)
class Look:
    """How a block is to be drawn, besides its own content."""

    width: int
    shape: Shape = Shape.FOLDED
    choice: int = 0
    gap: bool = False
    working_since: datetime | None = None


def rows_of(block: Block, look: Look, tool: ToolBlock | None, prose: Prose) -> list[Line]:
    """All rows of a block. `tool`: the call that a question is about."""
    rows = _content(block, look, tool, prose)
    if look.gap:
        rows = [(), *rows]
    if look.working_since is not None:
        rows = [*rows, (), line(f"\u25cf working since {clock(look.working_since)}", Role.WORKING)]
    return rows


def is_compact(block: Block) -> bool:
    """Blocks that stand close together."""
    return isinstance(block, ToolBlock | ThoughtBlock | NoteBlock)


def clock(at: datetime) -> str:
    """The time of day, here."""
    return at.astimezone().strftime("%H:%M")


def guess(block: Block, width: int, shape: Shape) -> int:
    """About how many rows a block takes, cheaply."""
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
            return 1 if shape is Shape.FOLDED else 8
        case _:
            return 1


def _question_guess(block: QuestionBlock, width: int) -> int:
    command = block.command or ""
    rows = len(command) // width + command.count("\n") + 1 if command else 0
    return 1 + min(rows, COMMAND_ROWS) + len(block.options or ())


def _content(block: Block, look: Look, tool: ToolBlock | None, prose: Prose) -> list[Line]:
    match block:
        case UserBlock():
            return _user(block, look)
        case EchoBlock():
            return _said(block, block.text, "", look)
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
            role = Role.DIM if block.reason == "cancelled" else Role.FAILED
            mark = Span("\u25a0 " if block.reason == "cancelled" else "\u2717 ", role)
            return _texts(result_text(block), role, look.width, (mark,))
        case NoteBlock():
            return [fit(line(f"\u00b7 {block.text}", Role.DIM), look.width)]
        case _:
            return [()]


def _texts(text: str, role: Role, width: int, mark: Line = ()) -> list[Line]:
    room = width - sum(len(span.text) for span in mark)
    rows = [row for part in text.split("\n") for row in wrap([Span(part, role)], room)]
    return list(indent(rows, mark, line(" " * (width - room)))) if mark else rows


def _user(block: UserBlock, look: Look) -> list[Line]:
    modes = [n for n, on in (("plan", block.plan_mode), ("goal", block.goal_mode)) if on]
    rows = _said(block, block.text, " ".join(modes), look)
    named = [f"[image: {name}]" for name in block.images]
    named += [f"[file: {name}]" for name in block.uploads]
    bar = Span("\u258e ", Role.USER)
    rows += [fit((bar, Span(name, Role.DIM)), look.width) for name in named]
    return rows


def _said(block: Block, text: str, modes: str, look: Look) -> list[Line]:
    head: Line = (Span("You", Role.USER, Mark.BOLD), Span(f" {clock(block.at)}", Role.DIM))
    if modes:
        head += (Span(f" {modes}", Role.ASKING),)
    bar = line("\u258e ", Role.USER)
    return [head, *(indent(typed_rows(text, look.width - 2), bar, bar) if text else ())]


def _thought(block: SpeechBlock, look: Look) -> list[Line]:
    text = block.text.strip()
    opened = look.shape is Shape.OPEN
    sign = "\u25be" if opened else "\u25b8"
    if opened:
        head: Line = (Span(f"{sign} thought", Role.DIM, target=TOGGLE),)
        pad = line("  ")
        return [head, *indent(_texts(text, Role.DIM, look.width - 2), pad, pad)]
    first = text.partition("\n")[0].strip("*# ")
    return [fit((Span(f"{sign} {first}", Role.DIM, Mark.ITALIC, "", TOGGLE),), look.width)]


def _plan(block: PlanBlock, look: Look) -> list[Line]:
    done = sum(entry.state is PlanState.COMPLETED for entry in block.entries)
    rows: list[Line] = [
        (
            Span("Plan", Role.HEADING, Mark.BOLD),
            Span(f" {done}/{len(block.entries)}", Role.DIM),
        )
    ]
    for entry in block.entries:
        sign, role = _CHECKS[entry.state]
        text = Role.DIM if entry.state is PlanState.COMPLETED else Role.TEXT
        rows += _texts(entry.text, text, look.width, line(f"{sign} ", role))
    return rows


def _question(block: QuestionBlock, look: Look, tool: ToolBlock | None) -> list[Line]:
    asked = question_text(block, tool)
    if not block.is_open:
        sign = line("\u25aa ", Role.DIM)
        return _texts(f"{asked}: {outcome_text(block)}", Role.DIM, look.width, sign)
    rows = _texts(asked, Role.ASKING, look.width, line("? ", Role.ASKING))
    if block.command:
        rows += _command(block.command, look.width)
    for number, option in enumerate(block.options or ()):
        chosen = number == look.choice
        role, sign = (Role.CHOSEN, "\u276f") if chosen else (Role.TEXT, " ")
        span = Span(f"  {sign} {number + 1}. {option.name} ", role, target=f"{OPTION}{number}")
        rows.append(fit((span,), look.width))
    if block.takes_text:
        lead = "    or write" if block.options else "    Write"
        rows += _texts(f"{lead} your answer below.", Role.DIM, look.width)
    return rows


def _command(command: str, width: int) -> list[Line]:
    """What would be run. Of a long one both ends are shown: what it is and what comes last."""
    rows = [
        row for part in command.split("\n") for row in wrap_hard([Span(part, Role.CODE)], width - 4)
    ]
    left_out = len(rows) - COMMAND_ROWS
    if left_out > 0:
        half = COMMAND_ROWS // 2
        note = fit(line(f"\u2026 {left_out:,} more rows", Role.DIM), width - 4)
        rows = [*rows[:half], note, *rows[-half:]]
    return list(indent(rows, line("  $ ", Role.DIM), line("    ")))
