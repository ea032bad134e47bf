"""Lines of the list of replicas: in the sidebar a name and its state, over the whole width a table.

A line is cells of text that fill its width, each with the name of its look. Equal lines look alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from quarterdeck.store.list_view import ListView, SortKey
from quarterdeck.store.status import NEEDS_YOU, Attention
from quarterdeck.transcript.text import LONGEST_NAME, name_line, one_line
from quarterdeck.tui.text import fit
from quarterdeck.tui.themes import MARKS, pull_mark
from quarterdeck.tui.widgets.lines import changes_of, distance_of

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState


class ListCell(NamedTuple):
    """A part of a line. `look` is the component `list--LOOK`, empty for that of the list."""

    text: str
    look: str = ""
    bold: bool = False


Line = tuple[ListCell, ...]

SIGNS_WIDTH = 3
"""Cells for the mark and the state before a name."""
NOTE_WIDTH = 9
LEAST_NAME = 16
"""Width in cells that a longer name has at least; where that leaves no room for the state in words, the
sign alone shows it."""
LEAST_WITH_BRANCH = 30
"""Width in cells below which a row of the sidebar has its name and state only."""
LONGEST_SERVICE = 10
"""Cells for the name of a replica's service, and the `/` between both names."""
MARKED, PIN = "*", "◆"
GAP = 2
"""Cells between two columns of the table."""


def _signs(state: "ReplicaState", marked: bool, pinned: bool) -> Line:
    mark = MARKS[state.attention]
    before = ListCell(MARKED, "marked") if marked else ListCell(PIN if pinned else " ", "note")
    return (before, ListCell(f"{mark.sign} ", mark.color))


def _is_bold(state: "ReplicaState") -> bool:
    return state.unseen or state.asks or state.attention is Attention.PLAN


def service_prefix(state: "ReplicaState") -> str:
    """Return the name of a replica's service and `/`; nothing for the service in use."""
    if not state.beside:
        return ""
    service = name_line(state.service)
    return fit(service, min(LONGEST_SERVICE - 1, cell_len(service))) + "/"


def sidebar_line(
    state: "ReplicaState", width: int, *, marked: bool, pinned: bool, prefix: str = ""
) -> Line:
    """Return a replica's line in the sidebar; `prefix` is what precedes its name."""
    name, note = prefix + name_line(state.name), MARKS[state.attention].word
    room = _name_room(cell_len(name), cell_len(note), width)
    tail, pull = _tail(state, room - cell_len(name) - 2, narrow=width < LEAST_WITH_BRANCH)
    tail = f"{tail} " if tail and pull.text else tail
    return (
        *_signs(state, marked, pinned),
        *([ListCell(prefix, "note")] if prefix else []),
        ListCell(
            fit(name, room - cell_len(tail + pull.text)).removeprefix(prefix), bold=_is_bold(state)
        ),
        ListCell(tail, "note"),
        pull,
        ListCell(" " + fit(note, width - SIGNS_WIDTH - room - 1), "note"),
    )


def _name_room(name: int, note: int, width: int) -> int:
    """Return the cells for a name and what follows it, in a sidebar of this width.

    Where names of `LEAST_NAME` leave no room for a column of states, these end at the right edge.
    """
    room = width - SIGNS_WIDTH - 1
    usual, beside = room - NOTE_WIDTH, room - note
    if usual >= LEAST_NAME:
        return usual
    return beside if name <= beside or beside >= LEAST_NAME else room


def _tail(state: "ReplicaState", left: int, *, narrow: bool) -> tuple[str, ListCell]:
    """Return the facts that fit next to the name: branch and distance, and pull request.

    In a `narrow` list the pull request alone.
    """
    branch = (
        "" if state.branch.endswith(f"/{state.name}") else one_line(state.branch[:LONGEST_NAME])
    )
    distance = distance_of(state)
    both = " ".join(part for part in (branch, distance) if part)
    pull, brief = _pull(state), _pull(state, brief=True)
    tails = ((both, pull), (distance, pull), ("", pull), ("", brief), (distance, ListCell("")))
    fitting = (tail for tail in tails if cell_len(" ".join(_texts(*tail))) <= left)
    return next((tail for tail in fitting if not (narrow and tail[0])), ("", ListCell("")))


def _texts(tail: str, pull: ListCell) -> list[str]:
    return [text for text in (tail, pull.text) if text]


def _pull(state: "ReplicaState", *, brief: bool = False) -> ListCell:
    mark = pull_mark(state)
    if mark is None:
        return ListCell("")
    return ListCell((brief and mark.brief) or mark.sign, mark.color)


def group_line(name: str, states: "Sequence[ReplicaState]", width: int) -> Line:
    """Return the line above a group: its name, and how many are in it and need the user."""
    needy = sum(state.attention in NEEDS_YOU for state in states)
    sign = MARKS[Attention.ASKS]
    asking = f"  {sign.sign} {needy}" if needy else ""
    count = f"  {len(states)}"
    room = max(0, width - 1 - cell_len(count + asking))
    words = " " + fit(name, min(cell_len(one_line(name)), room)) + count
    return (ListCell(words, "group"), ListCell(asking, sign.color))


@dataclass(frozen=True)
class Column:
    """A column of the table. Those of a higher `rank` are left out first where the window is narrow."""

    key: SortKey
    width: int
    rank: int
    cell: "Callable[[ReplicaState, datetime], ListCell]"
    most: int = 0
    """Width that it may grow to."""


COLUMNS = (
    Column(SortKey.NAME, LEAST_NAME, 0, lambda state, _: _name(state), 32),
    Column(SortKey.ATTENTION, NOTE_WIDTH, 1, lambda state, _: _state(state)),
    Column(SortKey.SERVICE, 8, 1, lambda state, _: ListCell(one_line(state.service), "note"), 16),
    Column(SortKey.AGENT, 8, 5, lambda state, _: ListCell(state.agent, "note")),
    Column(
        SortKey.BRANCH, 16, 6, lambda state, _: ListCell(state.repository_and_branch, "note"), 40
    ),
    Column(SortKey.CHANGES, 11, 3, lambda state, _: ListCell(changes_of(state))),
    Column(SortKey.AHEAD, 7, 8, lambda state, _: ListCell(distance_of(state), "note")),
    Column(SortKey.PULL, 11, 4, lambda state, _: _pull(state)),
    Column(SortKey.CONTEXT, 4, 7, lambda state, _: _context(state)),
    Column(SortKey.AGE, 4, 2, lambda state, now: ListCell(age(state.active_at, now), "note")),
)


def _name(state: "ReplicaState") -> ListCell:
    return ListCell(name_line(state.name), bold=_is_bold(state))


def _state(state: "ReplicaState") -> ListCell:
    mark = MARKS[state.attention]
    return ListCell(mark.word, mark.color)


def _context(state: "ReplicaState") -> ListCell:
    percent = state.context_percent
    color = "warning" if state.context_is_short else "note"
    return ListCell(f"{percent}%" if percent is not None else "", color)


@cache
def fitting_columns(width: int, *, several: bool = False) -> tuple[tuple[Column, int], ...]:
    """Return the columns that have room in a table of this width, each with its own.

    `several` is whether several services are shown, here and below: only then they are named.
    """
    columns = [one for one in COLUMNS if several or one.key is not SortKey.SERVICE]
    left = width - SIGNS_WIDTH
    chosen = {SortKey.NAME: max(0, min(LEAST_NAME, left))}
    left -= chosen[SortKey.NAME]
    for column in sorted(columns, key=lambda column: column.rank):
        if column.key not in chosen and column.width + GAP <= left:
            left -= column.width + GAP
            chosen[column.key] = column.width
    while left > 0 and (
        small := [one for one in columns if one.key in chosen and chosen[one.key] < one.most]
    ):
        for column in small[:left]:
            chosen[column.key] += 1
        left -= len(small[:left])
    return tuple((column, chosen[column.key]) for column in columns if column.key in chosen)


def table_line(
    state: "ReplicaState",
    width: int,
    now: datetime,
    *,
    marked: bool,
    pinned: bool,
    several: bool = False,
) -> Line:
    """Return a replica's line in the table."""
    cells = [*_signs(state, marked, pinned)]
    for column, room in fitting_columns(width, several=several):
        cell = column.cell(state, now)
        cells.append(cell._replace(text=fit(cell.text, room) + " " * GAP))
    return tuple(cells)


def head_line(view: ListView, width: int, *, several: bool = False) -> Line:
    """Return the titles of the table's columns; the one that it is sorted by has a sign."""
    cells = [ListCell(" " * SIGNS_WIDTH, "head")]
    for column, room in fitting_columns(width, several=several):
        sorted_by = column.key is view.sort
        title = column.key.upper() + (("▴" if view.reverse else "▾") if sorted_by else "")
        cells.append(ListCell(fit(title, room) + " " * GAP, "head", sorted_by))
    return tuple(cells)


def column_at(x: int, width: int, *, several: bool = False) -> SortKey | None:
    """Return the column at a cell of the table."""
    end = SIGNS_WIDTH
    for column, room in fitting_columns(width, several=several):
        end += room + GAP
        if SIGNS_WIDTH <= x < end:
            return column.key
    return None


DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


def age(moment: datetime, now: datetime) -> str:
    """Return how long ago something was: `now`, `5m`, `3h`, `12d`."""
    past = now - moment
    for unit, sign in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if past >= unit:
            return f"{past // unit}{sign}"
    return "now"


def age_lasts(moment: datetime, now: datetime) -> float:
    """Return the seconds until `age` returns something else."""
    past = max(now - moment, timedelta())
    unit = next((unit for unit in (DAY, HOUR) if past >= unit), MINUTE)
    return (unit - past % unit).total_seconds()
