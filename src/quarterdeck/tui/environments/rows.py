"""Rows of environments and the texts in them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from textwrap import wrap

from quarterdeck.store.environments import Scope
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.kit.rows import ColumnCell, RowList, columns
from quarterdeck.tui.kit.spans import Emphasis, Line, TextRole
from quarterdeck.wire.environments import WarmPool

LEAST_ROOM = 20
"""Width in cells below which text is cut rather than wrapped."""
HIDDEN = "••••••••"
"""Shown instead of a secret, whatever its length."""

TITLES = {
    Scope.GLOBAL: "Everywhere",
    Scope.ORGANIZATION: "Organization",
    Scope.OWN: "Your own",
}


def moment(at: datetime) -> str:
    """Return a local time."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def day(at: datetime) -> str:
    """Return a local date."""
    return at.astimezone().strftime("%Y-%m-%d")


def pool_note(pool: WarmPool | None) -> tuple[str, str]:
    """Return a pool's state in a word or two, and its style."""
    if pool is None or not pool.enabled:
        return "", "plain"
    if pool.last_failure_reason is not None and not pool.ready_count:
        return "✗ pool", "error"
    if pool.ready_count:
        return f"● {pool.ready_count} warm", "plain"
    return "◌ warming", "plain"


def counted(count: int, word: str) -> str:
    """Return a count with its noun, as in `1 line` and `2 lines`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def size_of(text: str) -> str:
    """Return the size of a text."""
    return counted(len(text.splitlines()), "line") if text else "empty"


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, wrapped at spaces to the available width."""
    room = max(width, LEAST_ROOM)
    return [
        part
        for line in text.splitlines()
        for part in wrap(line, room, drop_whitespace=True, replace_whitespace=False) or [""]
    ]


GAP = ColumnCell(" ")
STYLES = {
    "plain": (TextRole.TEXT, Emphasis.NONE),
    "muted": (TextRole.DIM, Emphasis.NONE),
    "heading": (TextRole.HEADING, Emphasis.BOLD),
    "warning": (TextRole.ASKING, Emphasis.NONE),
    "error": (TextRole.FAILED, Emphasis.NONE),
}


@dataclass(frozen=True)
class TableRow:
    """One line in columns. One without a key cannot be selected: a heading, or text.

    `style` is one of `STYLES`, `widths` are those of the table.
    """

    key: str
    cells: tuple[str, ...]
    style: str = "plain"
    widths: tuple[float, ...] = ()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        role, marks = STYLES[self.style]
        parts: list[ColumnCell] = []
        for text, share in zip_longest(self.cells, self.widths[: len(self.cells) - 1], fillvalue=0):
            room = int(share * width) if 0 < share < 1 else int(share)
            parts += (GAP, ColumnCell(one_line(str(text)), role, room or -1, marks))
        return (columns(width, *parts),)


class Table(RowList[str]):
    """Lines of equal columns, without their own colors while the cursor is on them."""

    DEFAULT_CSS = "Table > .rows--cursor { color: $foreground; }"

    def show_table(self, rows: Iterable[TableRow], *widths: float) -> None:
        """Show rows. `widths` of all columns but the last: cells, or below 1 a share of the width."""
        self.show_rows([replace(row, widths=widths) for row in rows])
