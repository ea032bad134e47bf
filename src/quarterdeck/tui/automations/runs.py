"""The runs of an automation, newest first."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from textual.binding import BindingType

from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.automations.pieces import Piece, Pieces
from quarterdeck.tui.automations.rows import RowList
from quarterdeck.tui.automations.words import run_mark, run_trigger, took, verdict_mark, when
from quarterdeck.wire.automations import Execution

WIDE = 90
"""Cells from which a run has one line."""
STATUS, WHEN, TOOK, VERDICT, REPLICA, TRIGGER = 11, 18, 8, 16, 24, 22


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

    def lines(self, width: int) -> tuple[Pieces, ...]:
        head = (
            Piece(f" {self.sign} ", self.color),
            Piece(self.status, width=STATUS),
            Piece(self.when, "muted", WHEN if width >= WIDE else 13),
            Piece(self.took, "muted", TOOK),
        )
        verdict = Piece(self.verdict, self.verdict_color, VERDICT)
        why = Piece(self.why, self.why_color, -1)
        if width >= WIDE:
            more = (Piece(self.replica, width=REPLICA), Piece(self.trigger, "muted", TRIGGER))
            return (Pieces((*head, verdict, *more, why)),)
        first = Pieces((*head, Piece(self.verdict, self.verdict_color, -1)))
        told = " · ".join(filter(None, (self.replica, self.why or self.trigger)))
        return (first, Pieces((Piece("   "), Piece(told, self.why_color or "muted", -1))))


def run_row(run: Execution, replica: str, now: datetime) -> RunRow:
    """The row of a run; `replica` is the name of its replica, or what became of it."""
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


class RunList(RowList):
    """The runs, with keys of their own."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.AUTOMATION_RUNS)]

    @property
    def place(self) -> Where:
        return Where.AUTOMATION_RUNS

    def row_height(self, width: int) -> int:
        return 1 if width >= WIDE else 2
