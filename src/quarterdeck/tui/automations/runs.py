"""The lists of automations, those that need the user first, and of their runs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from textual.binding import BindingType

from quarterdeck.store.automation_state import AutomationState, knows_payload
from quarterdeck.transcript.text import clean
from quarterdeck.tui.actions import KeyContext, keyed, prompt_bindings
from quarterdeck.tui.automations.facts import (
    STANDINGS,
    Fact,
    last_words,
    next_words,
    run_mark,
    run_trigger,
    skipped_words,
    took,
    verdict_mark,
)
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.rows import ROLES, ColumnCell, ListRow, RowList, columns
from quarterdeck.tui.kit.spans import Emphasis, Line, TextRole
from quarterdeck.tui.text import when
from quarterdeck.tui.themes import NEEDS_YOU
from quarterdeck.wire.automation_runs import Execution, SkippedMoments


class AutomationRows(RowList[UUID], HasKeyContext):
    """Rows without their own colors while the cursor is on them."""

    DEFAULT_CSS = "AutomationRows > .rows--cursor { background: $panel; color: $foreground; }"


WIDE = 90
"""Width in cells from which a run takes one line."""
STATUS, WHEN, TOOK, VERDICT, REPLICA, TRIGGER = 12, 18, 8, 16, 24, 22


@dataclass(frozen=True)
class RunRow:
    """One line where there is room, else two."""

    key: UUID
    sign: str
    color: str
    status: str
    when: str
    took: str
    verdict: str
    verdict_color: str
    trigger: str
    replica: str
    why: str
    why_color: str

    def lines(self, width: int, height: int) -> Sequence[Line]:
        one = height == 1
        head = (
            ColumnCell(f" {self.sign} ", ROLES[self.color]),
            ColumnCell(self.status, width=STATUS),
            ColumnCell(self.when, TextRole.DIM, WHEN if one else 13),
            ColumnCell(self.took, TextRole.DIM, TOOK),
        )
        verdict, why = ROLES[self.verdict_color], ROLES[self.why_color]
        if one:
            return (
                columns(
                    width,
                    *head,
                    ColumnCell(self.verdict, verdict, VERDICT),
                    ColumnCell(self.replica, width=REPLICA),
                    ColumnCell(self.trigger, TextRole.DIM, TRIGGER),
                    ColumnCell(self.why, why, -1),
                ),
            )
        details = " · ".join(filter(None, (self.replica, self.why or self.trigger)))
        return (
            columns(width, *head, ColumnCell(self.verdict, verdict, -1)),
            columns(
                width,
                ColumnCell("   "),
                ColumnCell(details, why if self.why_color else TextRole.DIM, -1),
            ),
        )


def run_row(run: Execution, replica: str, now: datetime) -> RunRow:
    """Return the row of a run; `replica` is the name of its replica, or what happened to it."""
    mark, verdict = run_mark(run), verdict_mark(run)
    title = run.check.title if run.check else None
    return RunRow(
        run.id,
        mark.sign,
        mark.color,
        mark.word,
        when(run.triggered_at, now),
        took(run),
        f"{verdict.sign} {verdict.word}" if verdict else "",
        verdict.color if verdict else "",
        run_trigger(run),
        replica,
        run.error or title or "",
        "error" if run.error else "",
    )


def skipped_row(skipped: SkippedMoments, now: datetime) -> RunRow:
    """Return the row of scheduled times that started no run."""
    return RunRow(
        skipped.id,
        "-",
        "muted",
        "skipped",
        when(skipped.last_at, now),
        "",
        "",
        "",
        "cron",
        "",
        skipped_words(skipped),
        "muted",
    )


class RunList(AutomationRows):
    """The runs, with their own keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.AUTOMATION_RUNS)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.AUTOMATION_RUNS

    def show_rows(self, rows: Sequence[ListRow[UUID]], *, keep: bool = True) -> None:
        """Show rows; a cursor on the newest one stays on the newest one."""
        was_newest = self.cursor == 0
        super().show_rows(rows, keep=keep)
        if was_newest:
            self.cursor = 0

    def row_height(self, width: int) -> int:
        return 1 if width >= WIDE else 2


READING = "Reading …"
WAITS = (
    "The pull request is from a fork of an untrusted author. "
    "{execution.approve} approve · {execution.cancel} cancel"
)


@dataclass(frozen=True)
class RunStory:
    """A run and its details. `prompt` is None while it is unknown; `note` then says why."""

    run: Execution
    replica: str
    prompt: str | None = None
    note: str = READING


def story_lines(story: RunStory) -> Iterator[Fact]:
    """Yield everything: outcome, error, check, payload, prompt."""
    run, mark = story.run, run_mark(story.run)
    yield Fact(f"{mark.sign} {mark.word}", mark.color, "status", bold=True)
    yield Fact(f"{run.triggered_at.astimezone():%a %d %b %Y %H:%M:%S %Z}", label="began")
    if run.completed_at is not None:
        yield Fact(took(run), label="took")
    if run.awaiting_approval:
        yield Fact(keyed(WAITS), NEEDS_YOU, "approval")
    elif run.approved_at is not None:
        yield Fact(f"given {run.approved_at.astimezone():%a %d %b %Y %H:%M %Z}", label="approval")
    yield Fact(run_trigger(run), label="trigger")
    yield Fact(story.replica, label="replica")
    if run.retry_of is not None:
        yield Fact(f"of {str(run.retry_of)[:8]}", label="retry")
    if run.error:
        yield from _section("Error")
        yield from (Fact(line, "error") for line in clean(run.error).splitlines())
    yield from _published(run)
    yield from _check(run)
    yield from _section("Payload")
    yield from _payload(run)
    yield from _section("Prompt")
    if story.prompt is None:
        yield Fact(story.note, "muted")
    else:
        yield from (Fact(line, hard=True) for line in clean(story.prompt).splitlines())


def payload_text(run: Execution) -> str:
    """Return the payload as JSON; empty when there is none."""
    if run.trigger_payload is None:
        return ""
    return json.dumps(run.trigger_payload, indent=2, ensure_ascii=False)


def _section(title: str) -> Iterator[Fact]:
    yield Fact()
    yield Fact(title, "primary", bold=True)


def _published(run: Execution) -> Iterator[Fact]:
    if run.published:
        yield from _section("Published")
    for reference in run.published:
        if reference.error:
            yield Fact(clean(reference.error), "error", reference.repository or "")
            continue
        yield Fact(
            f"{clean(reference.branch or '')} {(reference.commit or '')[:10]}",
            label=reference.repository or "",
        )
        if reference.url:
            yield Fact(clean(reference.url), label=f"#{reference.number}")


def _check(run: Execution) -> Iterator[Fact]:
    verdict, check = verdict_mark(run), run.check
    if verdict is None or check is None:
        return
    yield from _section("Check")
    yield Fact(f"{verdict.sign} {verdict.word}", verdict.color, "verdict")
    of = f" of {check.repository}" if check.repository else ""
    yield Fact(check.name + of, label="check")
    if check.title:
        yield Fact(check.title, label="title")
    for line in clean(check.summary or "").splitlines():
        yield Fact(line)


def _payload(run: Execution) -> Iterator[Fact]:
    if not knows_payload(run):
        yield Fact(READING, "muted")
        return
    text = payload_text(run)
    if not text:
        yield Fact("None.", "muted")
    yield from (Fact(line, hard=True) for line in clean(text).splitlines())


NEXT = 11
"""Width of what comes next, in cells."""


@dataclass(frozen=True)
class AutomationRow:
    """Two lines: name and next run, then the last run, or the reason of the failure."""

    key: UUID
    sign: str
    color: str
    name: str
    next: str
    last: str
    last_color: str

    def lines(self, width: int, height: int) -> Sequence[Line]:
        return (
            columns(
                width,
                ColumnCell(f" {self.sign} ", ROLES[self.color]),
                ColumnCell(
                    self.name,
                    width=-1,
                    marks=Emphasis.BOLD if self.last_color == "error" else Emphasis.NONE,
                ),
                ColumnCell(" "),
                ColumnCell(f"{self.next:>{NEXT}}", TextRole.DIM, NEXT),
                ColumnCell(" "),
            ),
            columns(width, ColumnCell("   "), ColumnCell(self.last, ROLES[self.last_color], -1)),
        )


def row_of(state: AutomationState, now: datetime) -> AutomationRow:
    """Return the row of an automation."""
    mark, problem = STANDINGS[state.standing], state.problem
    return AutomationRow(
        state.id,
        mark.sign,
        mark.color,
        state.name,
        next_words(state, now),
        problem or last_words(state, now),
        "error" if problem else "muted",
    )


class AutomationListView(AutomationRows):
    """The list, with the keys of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.AUTOMATIONS)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.AUTOMATIONS

    def row_height(self, width: int) -> int:
        return 2
