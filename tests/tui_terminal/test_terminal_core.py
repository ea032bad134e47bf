"""The core against tmux: the same bytes of real programs, compared cell by cell."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.tui.terminal.channel import FrameEncoder
from quarterdeck.tui.terminal.core import Attribute, SelectionKind, TerminalMode
from quarterdeck.tui.terminal.decoder import FrameDecoder, fit
from quarterdeck.tui.terminal.ghostty import GhosttyCore, probe
from quarterdeck.tui.terminal.kitty import KITTY_MODES, modes_of, restore_flags
from tests.tui_terminal.against_tmux import COLS, HTOP, ROWS, assert_same, htop, record, tmux_screen

__all__ = ["htop", "tmux_screen"]


@pytest.fixture
def core() -> Iterator[GhosttyCore]:
    made = GhosttyCore(COLS, ROWS)
    yield made
    made.close()


COLORS = (
    r"printf '\e[1;31mred\e[0m \e[4;38;5;202morange\e[0m \e[48;2;10;20;30mdeep\e[0m \e[7minv\e[0m\n';"
    r" printf '\e[3mital\e[9mstrike\e[0m \e[97;104mbright\e[0m 漢字 é ok\n'; echo do''ne"
)


async def test_bash_with_colors(make_program, tmux_screen) -> None:
    program = make_program("bash", "--norc", "--noprofile", "-i")
    data = await record(program, ("$", COLORS + "\n"), ("done", ""))
    assert_same(data, tmux_screen(data))


async def test_vim(make_program, tmux_screen, require_tool, tmp_path: Path) -> None:
    vim = require_tool("vim")
    file = tmp_path / "code.c"
    file.write_text("".join([f'int f{n}(void) {{ return {n}; /* "é" */ }}\n' for n in range(60)]))
    # Without the line that names the file: a long path makes it wait for a key.
    quiet = ("--cmd", "set shortmess+=F")
    program = make_program(
        vim, "-n", "-u", "NONE", *quiet, "-c", "syntax on | set number ruler", str(file)
    )
    data = await record(
        program,
        ("1,1", "10jyyp"),
        ("12,1", "/f40\r"),
        ("42,5", ":vsplit\r"),
        ("[+]", ":set hlsearch list\r"),
        ("set hlsearch", "ggdd"),
        ("1,1", "iXYZ"),
        ("XYZ", ""),
    )
    assert_same(data, tmux_screen(data))


async def test_less(make_program, tmux_screen, require_tool, tmp_path: Path) -> None:
    less = require_tool("less")
    file = tmp_path / "text"
    file.write_text("".join([f"line {n} of the text, needle {n % 7}\n" for n in range(300)]))
    program = make_program(less, str(file))
    data = await record(
        program, ("line 22 ", " "), ("line 45 ", "/needle 3\r"), ("line 24 ", "b"), ("line 2 ", "")
    )
    assert_same(data, tmux_screen(data))


async def test_top(make_program, tmux_screen, require_tool) -> None:
    program = make_program(require_tool("top"), "-n", "1")
    data = await record(program, ("PID", ""), ("%CPU", ""))
    # top erases to the end of the line behind its last column: xterm clears that cell, tmux does not.
    assert_same(data, tmux_screen(data), COLS - 1)


async def test_htop(make_program, tmux_screen, htop) -> None:
    data = await record(make_program(*htop), *HTOP)
    assert_same(data, tmux_screen(data), erased_in_color=True)


async def test_fzf(make_program, tmux_screen, require_tool, tmp_path: Path) -> None:
    fzf = require_tool("fzf")
    names = tmp_path / "names"
    names.write_text("".join([f"src/part{n % 9}/file_{n}.py\n" for n in range(300)]))
    # Fuzzy matches are colored while it is typed; the whole screen, and no time in it.
    find = f"{fzf} --no-sort --color=16 --height=100% --info=hidden < {names}"
    program = make_program("bash", "--norc", "--noprofile", "-c", find)
    data = await record(
        program, ("file_9.py", "part3"), ("> part3", "21"), ("file_21.py", "\x10"), ("file_2", "")
    )
    assert_same(data, tmux_screen(data))


async def test_nested_tmux(make_program, tmux_screen, require_tool, tmp_path: Path) -> None:
    tmux = require_tool("tmux")
    inner, settings = str(tmp_path / "inner.sock"), tmp_path / "tmux.conf"
    settings.write_text("set -g assume-paste-time 0\n")
    shell = "bash --norc --noprofile -i"
    command = (tmux, "-u", "-f", str(settings), "-S", inner, "new-session", "-n", "one", shell)
    program = make_program(*command)
    try:
        data = await record(
            program,
            ("bash-", 'printf "\\e[32mgreen\\e[0m\\n"; echo fir""st\n'),
            ("first", "\x02%"),
            ("│", "echo sec''ond\n"),
            ("second", ""),
        )
    finally:
        ended = await asyncio.create_subprocess_exec(tmux, "-S", inner, "kill-server")
        await ended.wait()
    assert_same(data, tmux_screen(data))


def test_layout_of_cells_is_the_librarys() -> None:
    probe()


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        (b"\x1b[6n", b"\x1b[2;3R"),
        (b"\x1b[?6n", b"\x1b[?2;3R"),
        (b"\x1b[5n", b"\x1b[0n"),
        (b"\x1b[18t", b"\x1b[8;24;80t"),
        (b"\x1b[?2004$p", b"\x1b[?2004;2$y"),
        (b"\x1bP$qm\x1b\\", b"\x1bP1$r0m\x1b\\"),
        (b"\x1b]11;?\x07", b"\x1b]11;rgb:0a0a/0b0b/0c0c\x07"),
        (b"\x1b[?u", b"\x1b[?0u"),
        (b"\x1b]52;c;?\x07", b""),
        (b"\x1b[21t", b""),
    ],
)
def test_replies(core: GhosttyCore, query: bytes, reply: bytes) -> None:
    core.set_colors((1, 2, 3), (10, 11, 12))
    core.feed(b"\r\nab" + query)
    assert core.take_replies() == reply


def test_primary_attributes_are_answered(core: GhosttyCore) -> None:
    core.feed(b"\x1b[c")
    assert re.fullmatch(rb"\x1b\[\?[\d;]+c", core.take_replies())


def test_extended_position_in_pieces(core: GhosttyCore) -> None:
    for byte in b"abc\x1b[?6nd\x1b[?6n":
        core.feed(bytes([byte]))
    assert core.take_replies() == b"\x1b[?1;4R\x1b[?1;5R"


def test_only_changed_rows_are_read(core: GhosttyCore) -> None:
    assert len(core.take_rows()) == ROWS
    assert core.take_rows() == []
    core.feed(b"\x1b[5;1Hx")
    assert [y for y, _ in core.take_rows()][-1:] == [4]


def test_a_character_set_makes_blanks_of_wide_characters(core: GhosttyCore) -> None:
    """A wide character is not in the set; its blank is as wide, with whatever is beside it."""
    core.feed("a\x0e\x1b)A漢漢\x0fb".encode())
    decoder = FrameDecoder()
    frame = decoder.decode(FrameEncoder().encode(core.state(), core.take_rows()))
    (row,) = [row for place, row in frame.rows if place == 0]
    assert "".join(run.text for run in row).rstrip() == "a    b"
    assert all(len(run.text) == run.cells for run in row)


def test_scrollback_and_selection(core: GhosttyCore) -> None:
    core.feed(b"".join([b"line %d\r\n" % n for n in range(100)]))
    core.scroll(-50)
    rows = dict(core.take_rows())
    assert core.state().scrollback.back == 50
    assert rows[0][0].text == "line 27"
    core.select_from(0, 0, SelectionKind.CELL)
    core.select_to(3, 1)
    rows = dict(core.take_rows())
    assert rows[1][0].text == "line" and rows[1][0].style.attributes & Attribute.SELECTED
    core.feed(b"more\r\n" * 30)
    assert core.selected_text() == "line 27\nline"
    core.select_from(6, 0, SelectionKind.WORD)
    assert core.selected_text() == "27"
    core.select_from(6, 0, SelectionKind.LINE)
    assert core.selected_text() == "line 27"
    core.clear_selection()
    assert core.selected_text() == ""
    core.scroll_to_bottom()
    assert core.state().scrollback.back == 0


def test_long_lines_are_selected_as_one(core: GhosttyCore) -> None:
    core.feed(b"x" * 200)
    core.select_from(0, 0, SelectionKind.CELL)
    core.select_to(79, 2)
    assert core.selected_text() == "x" * 200


def test_modes(core: GhosttyCore) -> None:
    core.feed(b"\x1b[?1h\x1b=\x1b[?2004h\x1b[?1049h\x1b[?1002h\x1b[?1006h\x1b[?1004h")
    assert core.state().modes == (
        TerminalMode.CURSOR_KEYS
        | TerminalMode.KEYPAD
        | TerminalMode.BRACKETED_PASTE
        | TerminalMode.ALTERNATE_SCREEN
        | TerminalMode.MOUSE_DRAG
        | TerminalMode.MOUSE_SGR
        | TerminalMode.FOCUS_EVENTS
        | TerminalMode.ALTERNATE_SCROLL
    )
    core.feed(b"\x1bc")
    assert core.state().modes == TerminalMode.ALTERNATE_SCROLL


def test_keys_that_are_to_be_told_apart(core: GhosttyCore) -> None:
    for asked, wanted in ((2, True), (0, False), (2, True), (1, False)):
        core.feed(b"\x1b[>4;%dm" % asked)
        assert bool(core.state().modes & TerminalMode.OTHER_KEYS) == wanted
    for reset in (b"\x1bc", b"\x1b[!p"):
        core.feed(b"\x1b[>4;2m" + reset)
        assert not core.state().modes & TerminalMode.OTHER_KEYS
    # A program may ask for both.
    core.feed(b"\x1b[>1u\x1b[>4;2m")
    assert core.state().modes & TerminalMode.OTHER_KEYS


def kitty_flags(core: GhosttyCore) -> bytes:
    """What a program is told, which has to be what keys are encoded by."""
    core.feed(b"\x1b[?u")
    answer = core.take_replies()
    assert core.state().modes & KITTY_MODES == modes_of(int(answer[3:-1]))
    return answer


def test_the_kitty_protocol_is_pushed_and_popped_on_each_screen(core: GhosttyCore) -> None:
    assert kitty_flags(core) == b"\x1b[?0u"
    core.feed(b"\x1b[>1u")
    assert kitty_flags(core) == b"\x1b[?1u"
    core.feed(b"\x1b[?1049h")
    assert kitty_flags(core) == b"\x1b[?0u"
    core.feed(b"\x1b[>31u")
    assert kitty_flags(core) == b"\x1b[?25u"  # the others are not supported
    core.feed(b"\x1b[=8;3u")
    assert kitty_flags(core) == b"\x1b[?17u"
    core.feed(b"\x1b[?1049l")
    assert kitty_flags(core) == b"\x1b[?1u"
    core.feed(b"\x1b[<u")
    assert kitty_flags(core) == b"\x1b[?0u"
    core.feed(b"\x1b[>2u")
    assert kitty_flags(core) == b"\x1b[?0u"
    for reset in (b"\x1bc", b"\x1b[!p", b"\x1b]133;D\x07", b"\x1b]133;D;130\x1b\\"):
        core.feed(b"\x1b[>1u\x1b[>8u" + reset)
        assert kitty_flags(core) == b"\x1b[?0u"
    for byte in b"\x1b[>1u\x1b]133;D;1\x07":
        core.feed(bytes([byte]))
    assert kitty_flags(core) == b"\x1b[?0u"
    core.feed(restore_flags(TerminalMode.KITTY_DISTINCT | TerminalMode.KITTY_TEXT))
    assert kitty_flags(core) == b"\x1b[?17u"


def test_synchronized_output_is_seen(core: GhosttyCore) -> None:
    core.feed(b"\x1b[?2026h")
    assert core.held()
    core.feed(b"\x1b[?2026l")
    assert not core.held()


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (500, 200), (5000, 5000)])
def test_sizes_are_clamped(core: GhosttyCore, size: tuple[int, int]) -> None:
    core.feed(b"\x1b[31mhello\r\n" * 100)
    core.resize(*size)
    core.feed(b"y" * 1000)
    core.take_rows()
    state = core.state()
    assert 20 <= state.cols <= 500 and 5 <= state.rows <= 200


HOSTILE = (
    b"\x1b]52;c;ZXZpbA==\x07",
    b"\x1b]2;\x1b[31mtitle\x07\x1b]0;" + b"t" * 100_000 + b"\x07",
    b"\x1bP" + b"q" * 200_000 + b"\x1b\\",
    b"\x1b_G" + b"A" * 200_000 + b"\x1b\\",
    b"\x1b[" + b"9" * 10_000 + b"m",
    b"z" * 300_000,
    "".join(map(chr, range(0x80, 0xA0))).encode(),
    b"\xff\xfe\xc0\x80" * 1000,
    b"e" + "\u0301".encode() * 5000,
    b"\x1b[999999;999999H\x1b[1000000L\x1b[1000000@\x1b[99999999b",
)


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_output_ends_in_the_core(core: GhosttyCore, data: bytes) -> None:
    core.feed(data + b"\x1b\\\x18\x1b[Hstill here")
    assert len(core.take_replies()) < 1000
    rows = dict(core.take_rows())
    assert rows[0][0].text.startswith("still here")
    assert len(core.state().title) <= 1024


def test_a_flood_of_queries_is_answered_in_bounds(core: GhosttyCore) -> None:
    core.feed(b"\x1b[c\x1b[6n" * 100_000)
    assert len(core.take_replies()) <= 64 << 10
    core.feed(b"\x1b[5n")
    assert core.take_replies() == b"\x1b[0n"


CLUSTERS = ("👨\u200d👩\u200d👧", "👩\u200d💻", "👩🏽\u200d🚀", "👍🏽", "🇩🇪")


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("before", ["", "\x1bc", "\x1b[!p"], ids=["new", "reset", "soft reset"])
def test_what_is_one_character_to_a_person_takes_its_two_cells(
    core: GhosttyCore, cluster: str, before: str
) -> None:
    core.feed(f"{before}a{cluster}|".encode())
    ((_, row),) = [found for found in core.take_rows() if found[1]]
    assert [(text, cells) for text, cells, _ in row] == [("a", 1), (cluster, 2), ("|", 1)]
    assert fit(cluster, 2) == cluster


async def test_clusters_stand_where_tmux_puts_them(core: GhosttyCore, tmux_screen) -> None:
    joined = [cluster for cluster in CLUSTERS if "🏽" not in cluster]
    data = "".join(f"a{cluster}|\r\n" for cluster in joined).encode()
    core.feed(data)
    shown = ["".join(text for text, _, _ in row) for _, row in core.take_rows() if row]
    # Newer versions of tmux pad what they print.
    assert shown == [line.rstrip() for line in tmux_screen(data).split("\n") if line.strip()]
    core.feed(b"\x1b[H" + joined[0].encode() + b"\x1b[6n")
    assert core.take_replies() == b"\x1b[1;3R"


RESETS = (b"\x1b[>4;0m", b"\x1b[>4;2m", b"\x1b[>4m", b"\x1b[>m", b"\x1b[>4n", b"\x1bc", b"\x1b[!p")


@pytest.mark.parametrize("reset", RESETS)
def test_the_first_level_of_keys_told_apart_is_known(core: GhosttyCore, reset: bytes) -> None:
    for byte in b"\x1b[>4;2m\x1b[>4;1m":
        core.feed(bytes([byte]))
    assert core.state().modes & TerminalMode.SOME_KEYS
    assert not core.state().modes & TerminalMode.OTHER_KEYS
    core.feed(b"text" + reset)
    assert not core.state().modes & TerminalMode.SOME_KEYS
    assert bool(core.state().modes & TerminalMode.OTHER_KEYS) == (reset == b"\x1b[>4;2m")
