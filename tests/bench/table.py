"""Rows of the table, and what a process costs."""

import os
import statistics
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class LeftOutError(Exception):
    """A benchmark cannot be run on this machine; the text says what it lacks."""


@dataclass(frozen=True)
class Row:
    """One figure. `limit` is the most it may be; `note` names the peer or how it was taken.

    Without a value it was not taken, and the note says why.
    """

    name: str
    value: float | None
    unit: str = ""
    limit: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the figure is within its limit."""
        return self.limit is None or self.value is None or self.value <= self.limit


def print_table(rows: Iterable[Row]) -> bool:
    """Prints the rows; False when one is over its limit."""
    good = True
    for row in rows:
        if row.value is None:
            print(f"--   {row.name:<52} {row.note}")
            continue
        limit = "" if row.limit is None else f"<= {row.limit:g}"
        mark = "ok  " if row.holds else "OVER"
        good = good and row.holds
        print(f"{mark} {row.name:<52} {row.value:>10.2f} {row.unit:<5} {limit:<10} {row.note}")
    return good


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def pss_mb(pid: int) -> float:
    """Memory of a process, shared pages by their share, in MB of 10^6 bytes."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (line,) = (line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024 / 1e6


def members(session: int) -> list[int]:
    """Return the processes of a session, by its first one: a program and what it has started."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            if int(stat.read_text().rpartition(")")[2].split()[3]) == session:
                found.append(int(stat.parent.name))
    return found


def resident_mb(pid: int) -> float:
    """Resident memory of a process, in MB of 10^6 bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6


def median_of(measure: Callable[[], float], runs: int) -> float:
    """The median of several measurements after one that is not counted."""
    measure()
    return statistics.median(measure() for _ in range(runs))
