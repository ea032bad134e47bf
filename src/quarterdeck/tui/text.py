"""Short texts of the cockpit, fitted into cells."""

from datetime import datetime, timedelta
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

from quarterdeck.transcript.text import one_line

WEEK = timedelta(days=6)


MOST_IN_CELL = 64
"""Characters for each cell that are looked at: names from a hostile service may have megabytes."""


def fit(text: str, width: int) -> str:
    """Return harmless text in exactly `width` cells, cut with an ellipsis or padded with blanks."""
    if width <= 0:
        return ""
    text = one_line(text[: MOST_IN_CELL * width])
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, width - 1) + "…"


def end_of(text: str, width: int) -> str:
    """Return harmless text in at most `width` cells: of a longer one the end, as of a path."""
    text = one_line(text[-MOST_IN_CELL * max(1, width) :])
    if cell_len(text) <= width:
        return text
    left, start = width - 1, len(text)
    while start and (left := left - cell_len(text[start - 1])) >= 0:
        start -= 1
    # Some characters widen the one before.
    while start < len(text) and cell_len(text[start:]) >= width:
        start += 1
    return f"…{text[start:]}"


def wrapped(text: str, width: int) -> list[str]:
    """Return a hint in lines of at most `width` characters; its own lines are kept apart."""
    return [row for line in text.splitlines() for row in wrap(line, max(1, width)) or [""]]


def when(moment: datetime, now: datetime) -> str:
    """Return a local time: `09:00` today, `Mon 09:00` within a week, else the date."""
    day = _far_day(moment, now)
    return f"{day} {moment.astimezone():%H:%M}" if day else _near(moment, now)


def soon_or_day(moment: datetime, now: datetime) -> str:
    """Return the same without the time for a distant day."""
    return _far_day(moment, now) or _near(moment, now)


def _near(moment: datetime, now: datetime) -> str:
    """Return a moment within a week."""
    local = moment.astimezone()
    return f"{local:%H:%M}" if local.date() == now.astimezone().date() else f"{local:%a %H:%M}"


def _far_day(moment: datetime, now: datetime) -> str:
    """Return the day of a time more than a week away; empty for a nearer one."""
    local, today = moment.astimezone(), now.astimezone()
    if abs(local.date() - today.date()) <= WEEK:
        return ""
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%b}{year}"
