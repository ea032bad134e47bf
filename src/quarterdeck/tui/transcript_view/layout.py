"""Lay out a block as rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len

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
    SpeechBlock,
    TerminalPart,
    TextPart,
    ThoughtBlock,
    ToolBlock,
    ToolState,
    UserBlock,
    duration_text,
    outcome_text,
    question_text,
    result_text,
    spent_text,
)
from quarterdeck.transcript.export import unfenced
from quarterdeck.tui.kit.spans import (
    BAR,
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
from quarterdeck.tui.transcript_view.blocks import (
    BlockShape,
    diff_rows,
    glance,
    typed_rows,
)
from quarterdeck.tui.transcript_view.markdown import Prose, linked

LIVE_ROWS = 8
"""Rows of its output that a running call shows."""
REASON_ROWS = 10
"""Rows of its output that a failed call shows."""
_SHORTEST = 0.05
"""Seconds; the duration of a shorter call is not shown."""
_TAIL = 200
"""Rows of output shown: its end says how it went."""
_LONGEST_ROW = 4_000

_SIGNS = {
    ToolState.PENDING: ("\u25cb", TextRole.DIM),
    ToolState.IN_PROGRESS: ("\u25cf", TextRole.WORKING),
    ToolState.COMPLETED: ("\u2713", TextRole.DONE),
    ToolState.FAILED: ("\u2717", TextRole.FAILED),
    ToolState.STOPPED: ("\u25a0", TextRole.DIM),
}
_MARGIN = line("    ")


def tool_rows(block: ToolBlock, width: int, shape: BlockShape, target: str) -> list[Line]:
    """Return the rows of a tool call."""
    head = _head(block, width, opened=shape is BlockShape.OPEN, target=target)
    return [head, *indent(_shown(block, width - 4, shape), _MARGIN, _MARGIN)]


def _shown(block: ToolBlock, width: int, shape: BlockShape) -> list[Line]:
    match shape:
        case BlockShape.FOLDED:
            return []
        case BlockShape.LIVE:
            return glance(block, width, LIVE_ROWS)
        case BlockShape.REASON:
            return glance(block, width, REASON_ROWS)
        case BlockShape.OPEN:
            return _tool_content(block, width)


def _head(block: ToolBlock, width: int, *, opened: bool, target: str) -> Line:
    sign, role = _SIGNS[block.state]
    right = _right(block)
    room = width - sum(cell_len(span.text) for span in right)
    left = fit(
        (
            Span("\u25be " if opened else "\u25b8 ", TextRole.DIM, target=target),
            Span(f"{sign} ", role, target=target),
            Span(block.name, TextRole.TEXT, target=target),
        ),
        max(4, room),
    )
    if not right:
        return left
    gap = max(0, room - sum(cell_len(span.text) for span in left))
    return fit((*left, Span(" " * gap, target=target), *right), width)


def _right(block: ToolBlock) -> Line:
    spans: Line = ()
    if block.exit_code:
        spans += (Span(f"  exit {block.exit_code}", TextRole.FAILED),)
    if block.duration is not None and block.duration >= _SHORTEST:
        spans += (Span(f"  {duration_text(block.duration):>6}", TextRole.DIM),)
    return spans


def _tool_content(block: ToolBlock, width: int) -> list[Line]:
    rows: list[Line] = []
    if block.command and block.command != block.name:
        rows += wrap_hard([Span(f"$ {block.command}", TextRole.CODE)], width)
    for place in block.locations or ():
        where = place.path if place.line is None else f"{place.path}:{place.line}"
        rows.append(fit(line(where, TextRole.DIM), width))
    for part in block.shown_parts:
        rows += _part(part, width)
    if not rows and block.input_text:
        rows += _output(block.input_text, width, TextRole.DIM)
    return rows or [line("no output", TextRole.DIM)]


def _part(part: Part, width: int) -> list[Line]:
    match part:
        case TextPart():
            return _output(unfenced(part.text), width, TextRole.CODE)
        case DiffPart():
            return diff_rows(part, width)
        case TerminalPart():
            return [line(f"[terminal {part.terminal_id}]", TextRole.DIM)]


def _output(text: str, width: int, role: TextRole) -> list[Line]:
    if not text:
        return []
    above = max(0, text.count("\n") + 1 - _TAIL)
    tail = text.rsplit("\n", _TAIL)[-_TAIL:] if above else text.split("\n")
    rows = [row for part in tail for row in wrap_hard(linked(part[:_LONGEST_ROW], role), width)]
    above += max(0, len(rows) - _TAIL)
    head = [line(f"\u2026 {above:,} more lines above", TextRole.DIM)] if above else []
    return head + rows[-_TAIL:]


TOGGLE = "toggle"
"""Target of spans: a click on them opens the block."""

_CHECKS = {
    PlanState.PENDING: ("\u25cb", TextRole.DIM),
    PlanState.IN_PROGRESS: ("\u25cf", TextRole.WORKING),
    PlanState.COMPLETED: ("\u2713", TextRole.DONE),
}


class BlockStyle(NamedTuple):
    """How to draw a block, besides its own content.

    `speaker`: the agent's name, where the block is the first of what the agent says.
    """

    width: int
    shape: BlockShape = BlockShape.FOLDED
    gap: bool = False
    speaker: str = ""
    working_since: datetime | None = None

    @property
    def lead(self) -> int:
        """Rows before the block's own."""
        return self.gap + bool(self.speaker)


def rows_of(block: Block, look: BlockStyle, tool: ToolBlock | None, prose: Prose) -> list[Line]:
    """Return all rows of a block. `tool`: the call that a question is about."""
    rows = _content(block, look, tool, prose)
    if look.speaker:
        rows = [fit(_heading(look.speaker, TextRole.AGENT, block), look.width), *rows]
    if look.gap:
        rows = [(), *rows]
    if look.working_since is not None:
        rows = [
            *rows,
            (),
            line(f"\u25cf working since {clock(look.working_since)}", TextRole.WORKING),
        ]
    return rows


def has_gap(block: Block, before: Block) -> bool:
    """Return whether there is a blank row between a block and the one before it."""
    if isinstance(block, ResultBlock) and block.is_plain:
        return False
    return not (_is_compact(block) and _is_compact(before))


def _is_compact(block: Block) -> bool:
    return isinstance(block, ToolBlock | ThoughtBlock | NoteBlock)


def begins_reply(blocks: Sequence[Block], index: int) -> bool:
    """Return whether the block at an index is the first of what the agent says after something else.

    At the first of all it is not known: what came before may be on an older page.
    """
    if not _is_of_agent(blocks[index]):
        return False
    before = index - 1
    while before >= 0 and isinstance(blocks[before], NoteBlock):
        before -= 1
    return before >= 0 and not _is_of_agent(blocks[before])


def _is_of_agent(block: Block) -> bool:
    return not isinstance(block, UserBlock | EchoBlock | ResultBlock | NoteBlock)


def _heading(name: str, role: TextRole, block: Block) -> Line:
    return (Span(name, role, Emphasis.BOLD), Span(f" {clock(block.at)}", TextRole.DIM))


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
            return 1 + len(block.title or "") // width
        case NoteBlock():
            return 1 + len(block.text) // width
        case ToolBlock() | ThoughtBlock():
            return 1 if shape is BlockShape.FOLDED else 8
        case _:
            return 1


def _content(block: Block, look: BlockStyle, tool: ToolBlock | None, prose: Prose) -> list[Line]:
    match block:
        case UserBlock():
            return _user(block, look)
        case EchoBlock():
            return _message_rows(block, block.text, "", look)
        case MessageBlock():
            text = block.text.rstrip()
            return [*prose.rows(text[:_LONGEST_TEXT]), *_rest_of(text, look.width)] or [()]
        case ThoughtBlock():
            return _thought(block, look)
        case ToolBlock():
            return tool_rows(block, look.width, look.shape, TOGGLE)
        case PlanBlock():
            return _plan(block, look)
        case QuestionBlock():
            return _question(block, look, tool)
        case ResultBlock():
            return _result(block, look.width)
        case NoteBlock():
            return _texts(block.text, TextRole.DIM, look.width, line("\u00b7 ", TextRole.DIM))
        case _:
            return [()]


_LONGEST_TEXT = 100_000
"""Characters of one text that are drawn: short lines of some megabytes would take many seconds."""


def _rest_of(text: str, width: int) -> list[Line]:
    """Return rows that say how much of a text is not drawn."""
    if len(text) <= _LONGEST_TEXT:
        return []
    rest = f"\u2026 {len(text) - _LONGEST_TEXT:,} more characters are not shown, but can be copied"
    return [(), *wrap([Span(rest, TextRole.DIM)], width)]


def _result(block: ResultBlock, width: int) -> list[Line]:
    """Return how a turn ended, unless it simply ended, and a rule with what it took."""
    spent = spent_text(block)
    head = f"\u2500\u2500 {spent} " if spent else ""
    rule = fit(line(head + "\u2500" * max(0, width - cell_len(head)), TextRole.DIM), width)
    if block.is_plain:
        return [rule]
    role = TextRole.DIM if block.reason == "cancelled" else TextRole.FAILED
    mark = Span("\u25a0 " if block.reason == "cancelled" else "\u2717 ", role)
    return [*_texts(result_text(block), role, width, (mark,)), rule]


def _texts(text: str, role: TextRole, width: int, mark: Line = ()) -> list[Line]:
    room = width - sum(len(span.text) for span in mark)
    lines = text[:_LONGEST_TEXT].split("\n")
    rows = [row for part in lines for row in wrap([Span(part, role)], room)]
    rows += _rest_of(text, room)
    return list(indent(rows, mark, line(" " * (width - room)))) if mark else rows


def _user(block: UserBlock, look: BlockStyle) -> list[Line]:
    marks = (("plan", block.plan_mode), ("goal", block.goal_mode), ("steered", block.steered))
    modes = [name for name, on in marks if on]
    rows = _message_rows(block, block.text, " ".join(modes), look)
    named = [f"[image: {name}]" for name in block.images]
    named += [f"[file: {name}]" for name in block.uploads]
    bar = Span(BAR, TextRole.USER)
    rows += [fit((bar, Span(name, TextRole.DIM)), look.width) for name in named]
    return rows


def _message_rows(block: Block, text: str, modes: str, look: BlockStyle) -> list[Line]:
    head = _heading("You", TextRole.USER, block)
    if modes:
        head += (Span(f" {modes}", TextRole.WARNING),)
    bar = line(BAR, TextRole.USER)
    width = look.width - 2
    rows = typed_rows(text[:_LONGEST_TEXT], width) if text else []
    return [head, *indent([*rows, *_rest_of(text, width)], bar, bar)]


def _thought(block: SpeechBlock, look: BlockStyle) -> list[Line]:
    text = block.text.strip()
    opened = look.shape is BlockShape.OPEN
    sign = "\u25be" if opened else "\u25b8"
    if opened:
        head: Line = (Span(f"{sign} thought", TextRole.DIM, target=TOGGLE),)
        pad = line("  ")
        return [head, *indent(_texts(text, TextRole.DIM, look.width - 2), pad, pad)]
    first = text[:_LONGEST_ROW].partition("\n")[0].strip("*# ")
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
    words = f"{question}\nYour answer is needed below."
    return _texts(words, TextRole.ASKING, look.width, line("? ", TextRole.ASKING))
