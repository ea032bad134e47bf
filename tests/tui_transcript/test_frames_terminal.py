"""The same session with and without the differ, in a real pseudo-terminal: every cell is equal."""

import os
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import pytest

from tests.support.visible import text_rows

SCRIPT = "frames_app.py"
Start = Callable[..., Any]

DOWN, PAGE_DOWN, TAB, ESCAPE = "\x1b[B", "\x1b[6~", "\t", "\x1b"
ASK, LOG, ODD, REDRAW, MARK = "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[18~", "\x1b[19~"

STEPS: dict[str, list[str]] = {
    "list": [DOWN, DOWN, DOWN],
    "log": [LOG, LOG, LOG, LOG],
    "links and marks": [ODD, ODD],
    "modal": [ASK, "abc\u6f22\u5b57"],
    "modal closed": [ESCAPE],
    "modal again": [ASK],
    "and closed": [ESCAPE],
    "input": [TAB, "hello \u6f22\u5b57"],
    "text area": [TAB, "more text ", "\x1b[B", "\u6f22", "\r", "next"],
    "log again": [LOG, LOG],
    "redraw": [REDRAW],
}


class Twin:
    """The program with the differ and the program without."""

    def __init__(self, start: Start) -> None:
        self.both = [start(SCRIPT, QD_FRAMES=switch) for switch in ("", "off")]
        self.differ, self.stock = self.both
        self.marks = 0
        for session in self.both:
            session.wait_text("mark 0")
            session.wait_quiet()

    def step(self, keys: list[str]) -> None:
        for key in keys:
            for session in self.both:
                session.send(key)
            for session in self.both:
                # Escape is only told from a sequence by the time after it.
                session.wait_quiet(0.3 if key == ESCAPE else 0.05)
        self.check()

    def check(self) -> None:
        self.marks += 1
        for session in self.both:
            session.send(MARK)
        for session in self.both:
            session.wait_text(f"mark {self.marks}")
            session.wait_quiet(0.1)
        difference = first_difference(self.differ.cells(), self.stock.cells())
        assert difference is None, difference


def first_difference(ours: list[Any], theirs: list[Any]) -> str | None:
    for y, (our_row, their_row) in enumerate(zip_longest(ours, theirs)):
        for x, (our, their) in enumerate(zip_longest(our_row, their_row)):
            if our != their:
                return f"row {y} column {x}: {our} instead of {their}"
    return None


@pytest.fixture
def twin(open_session: Start) -> Iterator[Twin]:
    yield Twin(open_session)


def test_every_cell_is_equal_and_few_bytes_are_sent(twin: Twin) -> None:
    assert len(twin.differ.output) <= 8_000
    assert len(twin.differ.output) < len(twin.stock.output) / 2
    twin.check()
    for name, keys in STEPS.items():
        before = [len(session.output) for session in twin.both]
        twin.step(keys)
        ours, theirs = (
            len(session.output) - b for session, b in zip(twin.both, before, strict=True)
        )
        assert ours < theirs, name


@pytest.mark.long
def test_a_resize_draws_everything_again(twin: Twin) -> None:
    for columns, rows in ((80, 24), (141, 43), (120, 40)):
        for session in twin.both:
            session.resize(columns, rows)
            session.wait_quiet(0.4)
        twin.check()


@pytest.mark.long
def test_a_resize_forth_and_back_in_no_time(twin: Twin) -> None:
    session = twin.differ
    session.resize(60, 10)
    session.resize(120, 40)
    session.screen.reset()
    session.wait_text("item 25")
    session.wait_quiet()
    twin.check()


@pytest.mark.long
def test_after_a_suspension_everything_is_drawn_again(twin: Twin) -> None:
    session = twin.differ
    session.suspend()
    pid, status = os.waitpid(session.process, os.WUNTRACED)
    assert pid == session.process and os.WIFSTOPPED(status)
    session.wait_quiet()
    session.screen.reset()
    session.resume()
    session.wait_text("item 25")
    session.wait_quiet()
    twin.check()


@pytest.mark.long
def test_bytes_of_one_key(open_session: Start) -> None:
    session = open_session(SCRIPT)
    session.wait_text("mark 0")
    drawn(session, DOWN, 1)
    assert drawn(session, DOWN, 2) <= 600
    drawn(session, f"{TAB}a", 3)
    assert drawn(session, "b", 4) <= 300
    assert not session.read(0.5)


@pytest.mark.long
def test_frames_are_synchronized_where_the_terminal_can(open_session: Start) -> None:
    session = open_session(SCRIPT)
    session.wait_text("mark 0")
    drawn(session, "\x1b[?2026;2$y", 1)
    before = len(session.output)
    session.send(DOWN)
    session.wait(lambda: session.output[before:].endswith(b"\x1b[?2026l"))
    assert session.output[before:].startswith(b"\x1b[?2026h")


def drawn(session: Any, keys: str, mark: int) -> int:
    """Bytes that come for the keys and for the mark behind them, with which all is drawn."""
    before = len(session.output)
    session.send(keys + MARK)
    session.wait_text(f"mark {mark}")
    session.wait_quiet(0.1)
    return len(session.output) - before


@pytest.mark.long
@pytest.mark.parametrize("switch", ["", "off"])
def test_what_moved_is_drawn_where_it_is(open_session: Start, switch: str) -> None:
    session = open_session("layout_app.py", QD_FRAMES=switch)
    session.wait_text("below")
    session.send("n")
    session.wait_text("first line")
    session.send("m")
    session.wait_text("more")
    session.wait_quiet()
    rows = [row.rstrip() for row in text_rows(session.screen)]
    top = rows.index(next(row for row in rows if row.startswith("╭")))
    width = len(rows[top])
    assert [row[:12].rstrip("─│ ") for row in rows[top:]] == [
        "╭",
        "│first line",
        "╰",
        "more",
        "below",
    ]
    assert rows[top].endswith("╮")
    assert {len(row) for row in rows[top : top + 3]} == {width}
