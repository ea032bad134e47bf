"""The list of automations: those that need the user first, then by what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from textual.binding import BindingType

from quarterdeck.store.automation_state import AutomationState
from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.automations.facts import STANDINGS, last_words, next_words
from quarterdeck.tui.automations.runs import AutomationRows
from quarterdeck.tui.kit.rows import ROLES, ColumnCell, columns
from quarterdeck.tui.kit.spans import Emphasis, Line, TextRole

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


class AutomationList(AutomationRows):
    """The list, with the keys of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.AUTOMATIONS)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.AUTOMATIONS

    def row_height(self, width: int) -> int:
        return 2
