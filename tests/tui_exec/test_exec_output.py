"""What is left of a command's output: text and colors, nothing that a terminal obeys."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from quarterdeck.tui.panes.exec import output_rows

PLAIN = Style.parse("white on black")
HOSTILE_PARTS = (
    *("a", "b\n", "\r", "\t", "\x1b[31m", "\x1b[0m", "\x1b[2J", "\x1b[8m", "\x1b]0;t\x07", "\x1b"),
    *("\x1b]52;c;eA==\x1b\\", "\x1b]8;;http://x\x1b\\", "\x1bP", "\x9b1m", "[", "\u202e", "你"),
    "e" + "\u0301" * 9,
)
HOSTILE = st.lists(st.sampled_from(HOSTILE_PARTS) | st.text(max_size=4)).map("".join)


def texts(output: str, width: int = 40) -> list[str]:
    return [row.text for row in output_rows(output, width, PLAIN)]


@pytest.mark.parametrize(
    ("output", "rows"),
    [
        ("", []),
        ("one\ntwo\n", ["one", "two"]),
        ("\n\n", ["", ""]),
        ("10 %\r50 %\r100 %\ndone\n", ["100 %", "done"]),
        ("\x1b[32m10 %\r\x1b[0m100 %\n", ["100 %"]),
        ("a\tb\n", ["a       b"]),
        ("\x1b[1mx\ty\x1b[0m\n", ["x       y"]),
        ("\x1b]0;owned\x07\x1b[2Jok\x1b[?1049h\n", ["ok"]),
        ("\x1b[31m\x1b]52;c;eA==\x07red\n", ["red"]),
        ("0123456789" * 5, ["0123456789" * 4, "0123456789"]),
    ],
)
def test_rows(output: str, rows: list[str]) -> None:
    assert texts(output) == rows


def test_colors_stay_and_reach_over_lines() -> None:
    [first, second] = output_rows("\x1b[31mred\nstill\x1b[0m not\n", 40, PLAIN)
    assert [s.text for s in first] == ["red"]
    color = first._segments[0].style
    assert color is not None and color.color is not None and color.color.number == 1
    assert [(s.text, bool(s.style and s.style.color == color.color)) for s in second] == [
        ("still", True),
        (" not", False),
    ]


def test_nothing_is_hidden_blinks_or_leads_elsewhere() -> None:
    for row in output_rows("\x1b[8;5msecret\x1b[0m \x1b]8;;http://x\x1b\\link\n", 40, PLAIN):
        for segment in row:
            assert segment.style is not None
            assert not segment.style.conceal and not segment.style.blink and not segment.style.link


@given(HOSTILE, st.integers(4, 30))
def test_no_output_gets_through(output: str, width: int) -> None:
    for row in output_rows(output, width, PLAIN):
        assert not re.search("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", row.text)
        assert cell_len(row.text) <= width
