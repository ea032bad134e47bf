"""The core against tmux: the same bytes of real programs, compared cell by cell."""

import asyncio
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.tui.terminal.core import Attribute, CellStyle, Mode, Row, SelectionKind
from quarterdeck.tui.terminal.ghostty import GhosttyCore, probe

COLS, ROWS = 80, 24
Cell = tuple[str, CellStyle]

COMPARED = Attribute.BOLD | Attribute.INVERSE | Attribute.ITALIC | Attribute.STRIKE


@pytest.fixture
def core() -> Iterator[GhosttyCore]:
    made = GhosttyCore(COLS, ROWS)
    yield made
    made.close()


def cells(row: Row, cols: int = COLS) -> list[Cell]:
    """A row cell by cell; the second half of a wide character is empty text."""
    found: list[Cell] = []
    for text, width, style in row:
        attributes = int(style.attributes & COMPARED)
        look = CellStyle(style.fg, style.bg, attributes, min(style.underline, 1))
        if width == len(text):
            found += [(character, look) for character in text]
        elif width == 2 * len(text):
            found += [cell for character in text for cell in ((character, look), ("", look))]
        else:
            found += [(text, look)] + [("", look)] * (width - 1)
    return found + [(" ", CellStyle())] * (cols - len(found))


def tmux_rows(capture: str) -> list[list[Cell]]:
    """What `tmux capture-pane -e -p` printed, cell by cell."""
    lines = capture.split("\n")[:ROWS]
    style = CellStyle()
    found: list[list[Cell]] = []
    for line in lines:
        row: list[Cell] = []
        for part in re.split(r"(\x1b\[[\d;:]*m|\x0e|\x0f|\x1b\(.|\x1b\]8;[^\x1b]*\x1b\\)", line):
            if part.startswith("\x1b["):
                style = sgr(style, part[2:-1])
            elif not part.startswith("\x1b"):
                row += [(c, style) for c in part]
        found.append(row)
    return found


ON = {1: Attribute.BOLD, 3: Attribute.ITALIC, 7: Attribute.INVERSE, 9: Attribute.STRIKE}
OFF = {22: Attribute.BOLD, 23: Attribute.ITALIC, 27: Attribute.INVERSE, 29: Attribute.STRIKE}
FG = {39: None} | {30 + n: n for n in range(8)} | {90 + n: 8 + n for n in range(8)}
BG = {49: None} | {40 + n: n for n in range(8)} | {100 + n: 8 + n for n in range(8)}


def sgr(style: CellStyle, codes: str) -> CellStyle:
    """`style` after one sequence of graphic rendition."""
    numbers = [int(n.split(":")[0] or 0) for n in codes.split(";")] if codes else [0]
    while numbers:
        code = numbers.pop(0)
        if code in (38, 48):
            field = "fg" if code == 38 else "bg"
            count = 1 if numbers.pop(0) == 5 else 3
            color = [numbers.pop(0) for _ in range(count)]
            style = style._replace(**{field: color[0] if count == 1 else tuple(color)})
        else:
            style = simple_sgr(style, code)
    return style


def simple_sgr(style: CellStyle, code: int) -> CellStyle:
    if code == 0:
        return CellStyle()
    if code in (4, 24):
        return style._replace(underline=int(code == 4))
    if code in ON:
        return style._replace(attributes=style.attributes | int(ON[code]))
    if code in OFF:
        return style._replace(attributes=style.attributes & ~int(OFF[code]))
    if code in FG:
        return style._replace(fg=FG[code])
    return style._replace(bg=BG[code]) if code in BG else style


@pytest.fixture
def tmux_screen(
    tmp_path: Path, require_tool: Callable[[str], str]
) -> Iterator[Callable[[bytes], str]]:
    """Feeds bytes to a fresh tmux pane and returns its screen with colors."""
    tmux = require_tool("tmux")
    socket = str(tmp_path / "tmux.sock")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [tmux, "-u", "-f", "/dev/null", "-S", socket, *arguments],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def screen(data: bytes) -> str:
        recording, done = tmp_path / "recording", tmp_path / "done"
        recording.write_bytes(data)
        done.unlink(missing_ok=True)
        script = f"stty raw -echo; cat {recording}; touch {done}; exec sleep 1000"
        size = ("-x", str(COLS), "-y", str(ROWS))
        run("new-session", "-d", *size, script, ";", "set", "status", "off")
        run("resize-window", *size)
        limit = time.monotonic() + 15
        while not done.exists() and time.monotonic() < limit:
            time.sleep(0.01)
        shown = run("capture-pane", "-e", "-p", "-N")
        while (again := run("capture-pane", "-e", "-p", "-N")) != shown:
            shown = again
        return shown

    yield screen
    subprocess.run([tmux, "-S", socket, "kill-server"], check=False, capture_output=True)


def core_screen(data: bytes) -> list[list[Cell]]:
    core = GhosttyCore(COLS, ROWS)
    core.feed(data)
    rows = dict(core.take_rows())
    core.close()
    return [cells(rows[y]) for y in range(ROWS)]


def assert_same(data: bytes, capture: str, cols: int = COLS) -> None:
    ours, theirs = core_screen(data), tmux_rows(capture)
    assert any(text.strip() for row in ours for text, _ in row)
    for y in range(ROWS):
        mine = [cell for cell in ours[y] if cell[0]]
        other = theirs[y] + [(" ", CellStyle())] * (len(mine) - len(theirs[y]))
        assert mine[:cols] == other[:cols], f"row {y}"


async def record(program, *steps: tuple[str, str]) -> bytes:
    """Runs a program: each step waits for a text on the screen, then types."""
    core, data = GhosttyCore(*program.size), b""
    rows: dict[int, str] = {}
    for text, typed in steps:
        while not any(text in row for row in rows.values()):
            try:
                got = await asyncio.wait_for(program.read(), 20)
            except TimeoutError:
                pytest.fail(f"no {text!r} on the screen: {rows}")
            assert got, f"ended before {text!r}: {rows}"
            data += got
            core.feed(got)
            await program.write(core.take_replies())
            rows.update({y: "".join([r.text for r in row]) for y, row in core.take_rows()})
        await program.write(typed.encode())
    core.close()
    return data


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
        (b"\x1b[?u", b""),
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
        Mode.CURSOR_KEYS
        | Mode.KEYPAD
        | Mode.BRACKETED_PASTE
        | Mode.ALTERNATE_SCREEN
        | Mode.MOUSE_DRAG
        | Mode.MOUSE_SGR
        | Mode.FOCUS_EVENTS
        | Mode.ALTERNATE_SCROLL
    )
    core.feed(b"\x1bc")
    assert core.state().modes == Mode.ALTERNATE_SCROLL


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
