"""The list of automations: those that need the person first, then what comes next."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from textual.binding import BindingType

from quarterdeck.store.automation_states import AutomationState
from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.automations.pieces import Piece, Pieces
from quarterdeck.tui.automations.rows import RowList
from quarterdeck.tui.automations.words import STANDINGS, last_words, next_words

NEXT = 11
"""Cells of what comes next."""


@dataclass(frozen=True)
class AutomationRow:
    """Two lines: name and next run, then the last run, or why it fails."""

    key: UUID
    sign: str
    color: str
    name: str
    next: str
    last: str
    last_color: str

    def lines(self, width: int) -> tuple[Pieces, ...]:
        return (
            Pieces(
                (
                    Piece(f" {self.sign} ", self.color),
                    Piece(self.name, width=-1, bold=self.last_color == "error"),
                    Piece(" "),
                    Piece(f"{self.next:>{NEXT}}", "muted", NEXT),
                    Piece(" "),
                )
            ),
            Pieces((Piece("   "), Piece(self.last, self.last_color, -1))),
        )


def row_of(state: AutomationState, now: datetime) -> AutomationRow:
    """The row of an automation."""
    mark, trouble = STANDINGS[state.standing], state.trouble
    return AutomationRow(
        state.id,
        mark.sign,
        mark.color,
        state.name,
        next_words(state, now),
        trouble or last_words(state, now),
        "error" if trouble else "muted",
    )


class AutomationList(RowList):
    """The list, with the keys of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.AUTOMATIONS)]

    @property
    def place(self) -> Where:
        return Where.AUTOMATIONS

    def row_height(self, width: int) -> int:
        return 2
