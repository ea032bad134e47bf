"""The real cockpit in a pseudo-terminal: what reaches the terminal around it from one inside."""

import asyncio
import base64
import contextlib
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from quarterdeck.tui.terminal.core import Attribute, CellStyle
from quarterdeck.tui.terminal.ghostty import GhosttyCore
from tests.support.program import Program, ScreenTimeoutError
from tests.tui_shell.conftest import fixed_clock_zone, installation, live_service
from tests.tui_shell.live import Installation
from tests.tui_terminal.against_tmux import (
    HTOP,
    Cell,
    cells,
    htop,
    record,
    tmux_rows,
    tmux_screen,
)
from tests.tui_terminal.outer import odd_sequences, printed, sequences

__all__ = ["fixed_clock_zone", "htop", "installation", "live_service", "tmux_screen"]

COLUMNS, LINES = 106, 29
"""So that a terminal inside, beside the list and below three lines, has 80 by 24."""
INSIDE = (80, 24)
Look = tuple[str, int, int]
SEEN_ON_BLANKS = Attribute.INVERSE | Attribute.STRIKE | Attribute.OVERLINE

HOSTILE = (
    b"\x1b]0;evil-title\x07\x1b]2;evil-title\x1b\\\x1b]l\x1b\\",
    b"\x1b]52;c;ZXZpbC1jbGlw\x07\x1b]52;p;ZXZpbC1jbGlw\x1b\\\x1b]52;c;?\x07",
    b"\x1b]9;evil-notice\x07\x1b]777;notify;evil;notice\x07\x1b]99;;evil\x1b\\",
    b"\x1b]8;;https://evil.example/\x07evil-link\x1b]8;;\x07",
    b"\x1b]7;file://evil/\x07\x1b]133;A\x07\x1b]1337;File=inline=1:ZXZpbA==\x07",
    b"\x1b]4;1;#ff0000\x07\x1b]10;#ff0000\x07\x1b]104\x07\x1b]50;evil-font\x07",
    b"\x1bP+q544e\x1b\\\x1bP$qm\x1b\\\x1bPtmux;\x1b\x1b]52;c;ZXZpbA==\x07\x1b\\",
    b"\x1bPq#0;2;0;0;0#0~~@@vv@@~~$-\x1b\\" * 500,
    b"\x1b^" + b"evil-pm" * 20_000 + b"\x1b\\",
    b"\x1b_G" + b"evil-apc" * 20_000 + b"\x1b\\",
    b"\x1bX" + b"evil-sos" * 20_000 + b"\x1b\\",
    b"\x1bP" + b"evil-dcs" * 20_000 + b"\x1b\\",
    b"\x1b[5i\x1b[4i\x1b[20t\x1b[21t\x1b[2t\x1b[9;1t\x1b[8;1;1t\x1b[?5h\x1b[?1049h\x1b[?1049l",
    b"\x1b[?1000h\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[>4;2m\x1b[>31u\x1b[?2026h\x1b[?1003l",
    "\u202eevil-bidi\u2066\u2069\u202c\u200e\u200f\u061c".encode(),
    ("z" + "\u200b\u2060\ufeff" * 5000 + "y").encode(),
    ("e" + "\u0301" * 20_000 + "f").encode(),
    ("a\u200db" * 2000 + "\U000e0041\U000e007f").encode(),
    "\x85\x90evil\x9c\x9b31m\x9d0;evil\x9c\u2028\u2029".encode(),
    b"\xff\xfe\xc0\x80\xed\xa0\x80" * 300,
    b"\x07" * 2000 + b"\x05\x00\x7f\x0e\x0f",
)


@pytest.fixture
def cockpit(live_service: Installation) -> Iterator[Program]:
    """A cockpit with one replica, its terminal open."""
    asyncio.run(_create(live_service))
    with Program(
        [sys.executable, "-m", "quarterdeck"],
        columns=COLUMNS,
        lines=LINES,
        environment={
            "QUARTERDECK_HOME": str(live_service.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "QD_URL": "",
            "QD_API_KEY": "",
        },
        directory=live_service.repository,
    ) as program:
        program.wait_for("alpha")
        program.wait_for("idle")
        program.type("t")
        program.wait_for("workspace$")
        yield program


async def _create(place: Installation) -> None:
    await place.create("alpha")


def put_file(place: Installation, name: str, data: bytes) -> None:
    """Writes a file into the replica's workspace."""

    async def write() -> None:
        async with place.client() as client:
            replica = await anext(client.replicas.all())
            text = base64.b64encode(data).decode()
            for at in range(0, len(text), 60_000):
                command = f"printf %s {text[at : at + 60_000]} >> {name}.64"
                assert (await client.exec.run(replica.id, command)).exit_code == 0
            done = await client.exec.run(replica.id, f"base64 -d {name}.64 > {name}")
            assert done.exit_code == 0

    asyncio.run(write())


@pytest.mark.parametrize("data", HOSTILE[:5] + HOSTILE[7:18])
def test_a_leak_would_be_seen(data: bytes) -> None:
    assert odd_sequences(data) or "\u0301" * 20 in printed(data)


@pytest.mark.long
def test_nothing_hostile_reaches_the_terminal_around(
    cockpit: Program, live_service: Installation
) -> None:
    for number, data in enumerate(HOSTILE):
        put_file(live_service, f"h{number}", data)
    before = cockpit.sent
    for number in range(len(HOSTILE)):
        cockpit.type(f"cat h{number}; printf '\\e\\\\\\030\\ec'; echo do''ne-{number}\r")
        cockpit.wait_for(f"done-{number}")
        # What was answered to it is typed into the shell. The shell may drop what is typed
        # before it has handled the interrupt.
        cockpit.type("\x03")
        cockpit.wait(lambda: re.search(r"\^C[^$]*\$", cockpit.text) is not None)
    cockpit.type("\x07l")
    cockpit.wait_for("n new")
    raw = bytes(cockpit.raw[before:])
    assert odd_sequences(raw) == []
    assert b"evil-title" not in b"".join(sequences(raw))
    assert max(len(one) for one in sequences(raw)) < 100
    assert "\u0301" * 20 not in printed(raw)
    cockpit.type("q")
    assert cockpit.finish() == 0


@pytest.mark.long
def test_a_program_is_told_keys_apart_if_it_asks(cockpit: Program) -> None:
    shift_enter, typed = "\x1b[13;2u", "^[[27;2;13~"
    read = "stty raw -echo; echo n''ow; head -c {} | cat -v; stty sane"
    cockpit.type(f"printf '\\e[>4;2m'; {read.format(10)}; printf '\\e[>4m'\r")
    cockpit.wait_for("now")
    cockpit.type(shift_enter)
    cockpit.wait_for(typed)
    cockpit.type(f"clear; {read.format(1)}\r")
    cockpit.wait(lambda: typed not in cockpit.text and "now" in cockpit.text)
    cockpit.type(shift_enter)
    cockpit.wait_for("^M")
    assert typed not in cockpit.text


@pytest.mark.long
def test_a_program_gets_keys_in_the_kitty_protocol(cockpit: Program) -> None:
    read = "stty raw -echo; echo n''ow; head -c {} | cat -v; stty sane"
    # What a program does that wants to know whether it can have the flags.
    cockpit.type(f"printf '\\e[>1u\\e[?u'; {read.format(5)}; echo do''ne\r")
    cockpit.wait_for("^[[?1u")
    cockpit.wait_for("done")
    cockpit.type(f"clear; printf '\\e[>1u'; {read.format(19)}\r")
    cockpit.wait(lambda: "done" not in cockpit.text and "now" in cockpit.text)
    for key in ("\x1b[27u", "\x1b[13;2u", "\x03"):
        cockpit.type(key)
    cockpit.wait_for("^[[27u^[[13;2u^[[99;5u")
    # It has ended without popping the flags. The shell's keys are as before.
    cockpit.type("sleep 1000; echo inter''rupted\r")
    cockpit.wait_for("sleep 1000")
    cockpit.type("\x03")
    cockpit.wait_for("^C")


VIM = (
    ("1,1", "10jyyp"),
    ("12,1", "/f40\r"),
    ("42,5", ":vsplit\r"),
    ("[+]", "ggdd"),
    ("1,1", "iXYZ"),
    ("XYZ", ""),
)
TEXT = (
    b"\x1b[1;31mred\x1b[0m \x1b[4;38;5;202morange\x1b[0m \x1b[48;2;10;20;30mdeep\x1b[0m "
    b"\x1b[7minverse\x1b[0m \x1b[3mital\x1b[9mstrike\x1b[0m \x1b[97;104mbright\x1b[0m "
    + "漢字 é e\u0301 ok".encode()
)


@pytest.mark.long
def test_a_recording_looks_in_the_cockpit_as_in_tmux(
    make_program, tmux_screen, require_tool, htop, cockpit, live_service, tmp_path: Path
) -> None:
    vim = require_tool("vim")
    code = tmp_path / "code.c"
    code.write_text("".join([f"int f{n}(void) {{ return {n}; }}\n" for n in range(60)]))
    quiet = ("-n", "-u", "NONE", "--cmd", "set shortmess+=F")
    shown = ("-c", "syntax on | set number ruler", str(code))
    edited = asyncio.run(record(make_program(vim, *quiet, *shown), *VIM))
    watched = asyncio.run(record(make_program(*htop), *HTOP))
    for bytes_ in (edited, watched, TEXT):
        put_file(live_service, "recording", b"\x1bc" + bytes_ + b"\x1b[?25l")
        # Raw, so that the bytes come as they are; a key ends it.
        cockpit.type(
            "clear; stty raw -echo; cat recording; read -rsn1; stty sane; printf '\\033c'\r"
        )
        told = whole_cells(tmux_rows(tmux_screen(bytes_)))
        await_looks(cockpit, looks(filled(told)))
        colors = pairs(inner(cockpit), told)
        assert len(colors) == len({one for one, _ in colors}) == len({one for _, one in colors})
        assert all(ours[1] == theirs[1] for theirs, ours in colors if isinstance(theirs[1], tuple))
        cockpit.type("x")
        cockpit.wait_for("workspace$")


def await_looks(program: Program, wanted: list[list[Look]]) -> None:
    """Waits until the terminal inside looks so."""
    with contextlib.suppress(ScreenTimeoutError):
        program.wait(lambda: looks(inner(program)) == wanted)
    assert looks(inner(program)) == wanted


def whole_cells(rows: list[list[Cell]]) -> list[list[Cell]]:
    """Marks with what they combine with, and an empty text behind each wide character."""
    found: list[list[Cell]] = []
    for row in rows:
        whole: list[Cell] = []
        for text, style in row:
            if whole and unicodedata.combining(text):
                whole[-1] = (whole[-1][0] + text, style)
                continue
            whole += [(text, style), ("", style)] if cell_len(text) == 2 else [(text, style)]
        found.append(whole)
    return found


def filled(rows: list[list[Cell]]) -> list[list[Cell]]:
    """With blanks at the end, whose color tmux does not tell."""
    return [row + [(" ", CellStyle())] * (INSIDE[0] - len(row)) for row in rows]


def inner(program: Program) -> list[list[Cell]]:
    """The cells of the terminal inside, read from what the cockpit wrote."""
    core = GhosttyCore(COLUMNS, LINES)
    core.feed(bytes(program.raw))
    rows = dict(core.take_rows())
    core.close()
    left, top = COLUMNS - INSIDE[0], LINES - 1 - INSIDE[1]
    return [cells(rows[top + y], COLUMNS)[left:] for y in range(INSIDE[1])]


def looks(rows: list[list[Cell]]) -> list[list[Look]]:
    """Text, and the attributes that are seen on it."""
    return [[(text, _seen(text, style), style.underline) for text, style in row] for row in rows]


def _seen(text: str, style: CellStyle) -> int:
    return style.attributes if text.strip() else style.attributes & SEEN_ON_BLANKS


def pairs(ours: list[list[Cell]], theirs: list[list[Cell]]) -> set[tuple[object, object]]:
    """Which colour inside is shown by which outside; a blank cell has no foreground."""
    found: set[tuple[object, object]] = set()
    for mine, other in zip(ours, theirs, strict=True):
        for (text, my_style), (_, their_style) in zip(mine, other, strict=False):
            found.add((("bg", their_style.bg), ("bg", my_style.bg)))
            if text.strip():
                found.add((("fg", their_style.fg), ("fg", my_style.fg)))
    return found
