"""Output of a program comes in pieces that end anywhere: the screen is that of the whole."""

from typing import Any

import pytest

from quarterdeck.tui.terminal.ghostty import GhosttyCore

COLS, ROWS = 40, 12
RECORDED = (
    b"\x1b]0;title \xc3\xa9\x07\x1b]2;other\x1b\\\x1b]133;A\x07$ ls\r\n\x1b[0m\x1b[01;34msrc\x1b[0m  \x1b[38;5;208mf\xc3\xbcnf\x1b[m\r\n"
    b"\x1b[38;2;10;20;30;48:2::1:2:3mtrue\x1b[0m \x1b[4:3mcurly\x1b[24m \xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81 \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\r\n"
    b"\x1b]8;id=a;http://a/b?c=d\x1b\\link\x1b]8;;\x1b\\ \x1b]133;D;0\x07\x1b[?1049h\x1b[2J\x1b[1;1Hvim\x1b[3;9r\x1b[5;3H\x1bM\x1b[2L~\x1b[K"
    b"\x1b[?25l\x1b[?2004h\x1b[?1000;1006h\x1b[>4;2m\x1b[>1u\x1b[4h\x1b[4l\x1b(0lqk\x1b(B\x1b[6;1Habc\x1b[2D\x1b[1P\x1b[2@X"
    b"\x1b[7;1H=\x1b[20b\x1b[8;1H-\x1b[65535b\x1b[9;1H+\x1b[0\x001\x075b\x1b[r\x1b[!p\x1b[?1049l\x1b[>4m\x1b[<1u\x1b[?6n\x1b[c"
    b"\xff\xc3(\xe2\x82 \xed\xa0\x80\x1b[\x181mx\x1b\x1b[32mgreen\x1bP$qm\x1b\\\x1b_Gi=1;AAAA\x1b\\\x1b^pm\x1b\\\x1b]52;c;eA==\x07done\r\n"
    b"a\x1b[300b\r\n\x1b]133;D\x1b\\\x1b[>4;1m\x1b[?1004h\tz\x08\x1b[3;5Hend\x1b[?25h"
)
"""What a shell, an editor and hostile programs print: text of one to four bytes, and every kind of sequence."""


def shown(*pieces: bytes) -> dict[str, Any]:
    """Return all that a terminal shows after pieces of output, and what it has replied."""
    core = GhosttyCore(COLS, ROWS)
    replies = b""
    for piece in pieces:
        core.feed(piece)
        replies += core.take_replies()
    core.invalidate()
    rows = core.take_rows()
    state = core.state()
    core.scroll(-ROWS)
    older = core.take_rows()
    links = [core.link_at(x, y) for y in range(ROWS) for x in (0, 3)]
    found = {"rows": rows, "older": older, "state": state, "replies": replies, "links": links}
    core.close()
    return found


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return shown(RECORDED)


def test_one_cut_anywhere(whole: dict[str, Any]) -> None:
    for at in range(1, len(RECORDED)):
        assert shown(RECORDED[:at], RECORDED[at:]) == whole, RECORDED[at - 9 : at + 9]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_pieces_of_one_size(size: int, whole: dict[str, Any]) -> None:
    pieces = [RECORDED[at : at + size] for at in range(0, len(RECORDED), size)]
    assert shown(*pieces) == whole


def test_a_long_repeat_in_two_pieces_is_canceled() -> None:
    """Within the bound of what waits it is cut to a line; a longer one prints nothing."""
    for zeros, printed in ((900, COLS), (1_100, 0)):
        rows = shown(b"x\x1b[" + b"0" * zeros + b"65535", b"b\r\nend")["rows"]
        lines = ["".join(run.text for run in row) for _, row in rows]
        assert sum(line.count("x") for line in lines) <= 1 + printed
        assert any("end" in line for line in lines)
