"""Drawing of each kind of block."""

import re
from collections.abc import Iterator

from quarterdeck.transcript import DiffPart, QuestionBlock
from quarterdeck.transcript.export import diff_lines
from quarterdeck.tui.actions import KeyContext, shown_key
from quarterdeck.tui.actions.sentences import action_named
from quarterdeck.tui.actions.tabs import CHOICES, PERMISSIONS
from quarterdeck.tui.kit.spans import Emphasis, Line, Span, TextRole, fit, line, wrap, wrap_hard
from quarterdeck.tui.transcript_view.markdown import code_rows


def place_of(question: QuestionBlock) -> KeyContext:
    """Return the place of a question's keys.

    Agents also assign kinds to the options of questions that are no permission requests: all the same one.
    """
    kinds = [option.kind for option in question.options or ()]
    is_permission = kinds.count("allow_once") == 1 or (
        "allow_once" not in kinds and any(kind in PERMISSIONS for kind in kinds)
    )
    return KeyContext.PERMISSION if is_permission else KeyContext.CHOICE


def answer_ids(question: QuestionBlock) -> list[str]:
    """Return the action id of each answer; empty where none is left for it."""
    is_permission = place_of(question) is KeyContext.PERMISSION
    free = iter(CHOICES[1:] if is_permission else CHOICES)
    ids: list[str] = []
    for option in question.options or ():
        meant = PERMISSIONS.get(option.kind, "") if is_permission else ""
        ids.append(meant if meant and meant not in ids else next(free, ""))
    return ids


def not_offered(question: QuestionBlock) -> frozenset[str]:
    """Return the action ids of answers that this question does not have."""
    return frozenset({*PERMISSIONS.values(), *CHOICES}).difference(answer_ids(question))


def answer_keys(question: QuestionBlock) -> list[str]:
    """Return the displayed key of each answer; empty for one without a key."""
    return [shown_key(action_named(id)) if id else "" for id in answer_ids(question)]


_LONGEST_ROW = 4_000
_LONGEST_DIFF = 200_000


def diff_rows(part: DiffPart, width: int) -> list[Line]:
    """Return the file and how many lines were added and removed, then the unified diff."""
    if len(part.old or "") + len(part.new) > _LONGEST_DIFF:
        return [line(f"{part.path}: too large to compare here", TextRole.DIM)]
    changes = diff_lines(part)
    added = sum(row.startswith("+") for row in changes)
    removed = sum(row.startswith("-") for row in changes)
    head: Line = (
        Span(part.path, TextRole.HEADING, Emphasis.BOLD),
        Span(f"  +{added}", TextRole.ADDED),
        Span(f" \u2212{removed}", TextRole.REMOVED),
    )
    rows = [fit(head, width)]
    for change in changes:
        rows += wrap_hard([Span(change[:_LONGEST_ROW], _role(change))], width)
    return rows


def _role(change: str) -> TextRole:
    match change[:1]:
        case "+":
            return TextRole.ADDED
        case "-":
            return TextRole.REMOVED
        case "@":
            return TextRole.DIM
        case _:
            return TextRole.CODE


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")


def typed_rows(text: str, width: int) -> list[Line]:
    """Return the rows of a message; code up to its closing fence, or to the end where there is none."""
    rows: list[Line] = []
    for source, info in _pieces(text):
        if info is None:
            rows += _typed(source, width)
        else:
            rows += code_rows(source, info, width)
    return rows


def _typed(text: str, width: int) -> list[Line]:
    return [row for part in text.split("\n") for row in wrap([Span(part, TextRole.PROMPT)], width)]


def _pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield text and code in turn, code with the words after its opening fence."""
    lines: list[str] = []
    fence, info = "", ""
    for row in text.split("\n"):
        found = _FENCE.match(row)
        if fence and found and found[1].startswith(fence) and not found[2].strip():
            yield "\n".join(lines), info
            lines, fence = [], ""
        elif not fence and found:
            if lines:
                yield "\n".join(lines), None
            lines, fence, info = [], found[1], found[2]
        else:
            lines.append(row)
    if lines or fence:
        yield "\n".join(lines), info if fence else None
