"""What tmux shows of the same bytes, cell by cell, and how a real program's bytes are recorded."""

import asyncio
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.tui.terminal.core import Attribute, CellStyle, Row
from quarterdeck.tui.terminal.ghostty import GhosttyCore

COLS, ROWS = 80, 24
Cell = tuple[str, CellStyle]

COMPARED = Attribute.BOLD | Attribute.INVERSE | Attribute.ITALIC | Attribute.STRIKE


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


HTOP = (
    ("F5Tree", "t"),
    ("F5List", "\x1bOQ"),
    ("Categories", "\x1b[21~"),
    ("F3Search", "\x1bOR"),
    ("Search:", "htop"),
    ("Search: htop", ""),
)
"""Its bars, its tree, its settings, and a search: what is on the screen, and what is typed then."""


@pytest.fixture
def htop(tmp_path: Path, require_tool: Callable[[str], str]) -> tuple[str, ...]:
    """A command that shows all it has at once: no round of numbers comes while it is recorded."""
    settings = ("env", f"HTOPRC={tmp_path}/htoprc", "HOME=" + str(tmp_path))
    return (*settings, require_tool("htop"), "--delay=600")


def core_screen(data: bytes) -> list[list[Cell]]:
    core = GhosttyCore(COLS, ROWS)
    core.feed(data)
    rows = dict(core.take_rows())
    core.close()
    return [cells(rows[y]) for y in range(ROWS)]


def assert_same(
    data: bytes, capture: str, cols: int = COLS, *, erased_in_color: bool = False
) -> None:
    """tmux does not tell the cells that were erased to the end of a line: they are taken for bare
    ones, or `erased_in_color` only for blank.
    """
    ours, theirs = core_screen(data), tmux_rows(capture)
    assert any(text.strip() for row in ours for text, _ in row)
    for y in range(ROWS):
        mine = [cell for cell in ours[y] if cell[0]]
        rest = mine[len(theirs[y]) :]
        assert not "".join(text for text, _ in rest).strip(), f"row {y}"
        untold = rest if erased_in_color else [(" ", CellStyle())] * len(rest)
        assert mine[:cols] == (theirs[y] + untold)[:cols], f"row {y}"


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
