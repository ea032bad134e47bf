"""What control sequences do, by the documented facts of xterm's ctlseqs and of ECMA-48.

Each case: what is printed on a screen of 20 by 5 and the rows that must stand there, or the answer
that the program must get.
"""

import pytest

from quarterdeck.tui.terminal.core import Attribute, CellStyle, Underline
from quarterdeck.tui.terminal.ghostty import GhosttyCore

COLS, ROWS = 20, 5
FILL = "".join(f"\x1b[{y};1H{letter * COLS}" for y, letter in enumerate("ABCDE", 1))
"""Every row full of one letter, without a scroll."""


def screen(text: str) -> tuple[list[str], tuple[int, int]]:
    """The rows without trailing blanks, and the cursor from 1 as programs count."""
    core = GhosttyCore(COLS, ROWS)
    core.feed(text.encode())
    rows = dict(core.take_rows())
    cursor = core.state().cursor
    core.close()
    return (
        ["".join([run.text for run in rows[y]]).rstrip() for y in range(ROWS)],
        (cursor.y + 1, cursor.x + 1),
    )


A, B, C, D, E = (letter * COLS for letter in "ABCDE")

DISPLAY = {
    "CUP counts from 1": ("\x1b[2;3Hx", ["", "  x"], (2, 4)),
    "CUP without numbers": ("abc\x1b[HX", ["Xbc"], (1, 2)),
    "CUP beyond the edge": ("\x1b[99;99Hx", ["", "", "", "", " " * 19 + "x"], (5, 20)),
    "HVP": ("\x1b[3;2fx", ["", "", " x"], (3, 3)),
    "CUU stops at the top": ("\x1b[3;3H\x1b[9Ax", ["  x"], (1, 4)),
    "CUD stops at the bottom": ("\x1b[9Bx", ["", "", "", "", "x"], (5, 2)),
    "CUF stops at the right": ("\x1b[99Cx", [" " * 19 + "x"], (1, 20)),
    "CUB stops at the left": ("abc\x1b[9Dx", ["xbc"], (1, 2)),
    "CNL": ("abc\x1b[2Ex", ["abc", "", "x"], (3, 2)),
    "CPL": ("\x1b[3;5H\x1b[Fx", ["", "x"], (2, 2)),
    "CHA": ("abcdef\x1b[3Gx", ["abxdef"], (1, 4)),
    "HPA": ("abcdef\x1b[3`x", ["abxdef"], (1, 4)),
    "VPA": ("ab\x1b[3dx", ["ab", "", "  x"], (3, 4)),
    "HPR and VPR": ("a\x1b[2ab\x1b[2ec", ["a  b", "", "    c"], (3, 6)),
    "CBT goes to the stop before": ("\x1b[1;18H\x1b[Zx", [" " * 16 + "x"], (1, 18)),
    "CHT": ("\x1b[2Ix", [" " * 16 + "x"], (1, 18)),
    "HTS and TBC": ("\x1b[5G\x1bH\r\tx\r\x1b[3g\ty", ["    x" + " " * 14 + "y"], (1, 20)),
    "BS": ("ab\bx", ["ax"], (1, 3)),
    "VT and FF are line feeds": ("a\x0bb\x0cc", ["a", " b", "  c"], (3, 4)),
    "NEL": ("ab\x1bEx", ["ab", "x"], (2, 2)),
    "IND keeps the column": ("ab\x1bDx", ["ab", "  x"], (2, 4)),
    "RI at the top scrolls back": (FILL + "\x1b[H\x1bMx", ["x", A, B, C, D], (1, 2)),
    "LF at the bottom scrolls": (FILL + "\x1b[5;1H\nx", [B, C, D, E, "x"], (5, 2)),
    "ED 0": (FILL + "\x1b[3;3H\x1b[J", [A, B, "CC"], (3, 3)),
    "ED 1": (FILL + "\x1b[3;3H\x1b[1J", ["", "", "   " + C[3:], D, E], (3, 3)),
    "ED 2 leaves the cursor": (FILL + "\x1b[3;3H\x1b[2J", [], (3, 3)),
    "EL 0": (FILL + "\x1b[2;5H\x1b[K", [A, "BBBB", C, D, E], (2, 5)),
    "EL 1": (FILL + "\x1b[2;5H\x1b[1K", [A, "     " + B[5:], C, D, E], (2, 5)),
    "EL 2": (FILL + "\x1b[2;5H\x1b[2K", [A, "", C, D, E], (2, 5)),
    "ECH": (FILL + "\x1b[2;5H\x1b[3X", [A, "BBBB   " + B[7:], C, D, E], (2, 5)),
    "ICH": ("abcdef\x1b[3G\x1b[2@", ["ab  cdef"], (1, 3)),
    "DCH": ("abcdef\x1b[3G\x1b[2P", ["abef"], (1, 3)),
    "IL": (FILL + "\x1b[2;5H\x1b[2L", [A, "", "", B, C], (2, 1)),
    "DL": (FILL + "\x1b[2;5H\x1b[2M", [A, D, E], (2, 1)),
    "SU": (FILL + "\x1b[2;2H\x1b[2S", [C, D, E], (2, 2)),
    "SD": (FILL + "\x1b[2;2H\x1b[2T", ["", "", A, B, C], (2, 2)),
    "REP": ("ab\x1b[3b", ["abbbb"], (1, 6)),
    "DECALN": ("\x1b[3;3H\x1b#8", ["E" * COLS] * 5, (1, 1)),
    "DECSTBM scrolls its part": (FILL + "\x1b[2;4r\x1b[4;1H\nx", [A, C, D, "x", E], (4, 2)),
    "DECSTBM goes home": (FILL + "\x1b[3;3H\x1b[2;4rx", ["x" + A[1:], B, C, D, E], (1, 2)),
    "DECSTBM of one row is none": (FILL + "\x1b[3;3H\x1b[3;3r\x1b[5;1H\nx", [B, C, D, E, "x"], (5, 2)),
    "DECSTBM: IL inside": (FILL + "\x1b[2;4r\x1b[3;1H\x1b[L", [A, B, "", C, E], (3, 1)),
    "DECSTBM: IL outside does nothing": (FILL + "\x1b[2;4r\x1b[5;1H\x1b[L", [A, B, C, D, E], (5, 1)),
    "DECSTBM: CUU stops at its top": (FILL + "\x1b[2;4r\x1b[3;1H\x1b[9Ax", [A, "x" + B[1:], C, D, E], (2, 2)),
    "DECOM": (FILL + "\x1b[2;4r\x1b[?6h\x1b[1;1Hx\x1b[9;1Hy", [A, "x" + B[1:], C, "y" + D[1:], E], (4, 2)),
    "DECAWM on": ("\x1b[1;19Habcd", [" " * 18 + "ab", "cd"], (2, 3)),
    "DECAWM: the wrap waits": ("\x1b[1;20Ha\rb", ["b" + " " * 18 + "a"], (1, 2)),
    "DECAWM: BS after the last column": ("\x1b[1;20Ha\bb", [" " * 18 + "ba"], (1, 20)),
    "DECAWM off": ("\x1b[?7l\x1b[1;19Habcd", [" " * 18 + "ad"], (1, 20)),
    "IRM": ("abc\x1b[4h\r\x1b[4hx\x1b[4l", ["xabc"], (1, 2)),
    "LNM": ("\x1b[20hab\nx", ["ab", "x"], (2, 2)),
    "DECSC and DECRC": ("\x1b[2;3H\x1b7\x1b[Habc\x1b8x", ["abc", "  x"], (2, 4)),
    "SCOSC and SCORC": ("\x1b[2;3H\x1b[s\x1b[Habc\x1b[ux", ["abc", "  x"], (2, 4)),
    "1049 leaves the first screen as it was": (
        "one\x1b[?1049h\x1b[Htwo\x1b[?1049lx", ["onex"], (1, 5),
    ),
    "1047 with 1048": ("ab\x1b[?1048h\x1b[?1047hzz\x1b[?1047l\x1b[?1048lx", ["abx"], (1, 4)),
    "DECSTR": ("\x1b[?6h\x1b[4h\x1b[2;4r\x1b[!p\x1b[Hab\rx", ["xb"], (1, 2)),
    "RIS": (FILL + "\x1b[2;4r\x1bcx", ["x"], (1, 2)),
    "DEC graphics": ("\x1b(0lqk\x1b(Bx", ["\u250c\u2500\u2510x"], (1, 5)),
    "SO and SI": ("\x1b)0\x0eq\x0fq", ["\u2500q"], (1, 3)),
    "a wide character does not break": ("\x1b[1;20H漢", ["", "漢"], (2, 3)),
    "half a wide character is overwritten": ("漢字\x1b[2Gx", [" x字"], (1, 3)),
    "a combining mark": ("e\u0301x", ["e\u0301x"], (1, 3)),
    "CAN ends a sequence": ("a\x1b[3\x18bc", ["abc"], (1, 4)),
    "ESC begins anew inside a sequence": ("a\x1b[3\x1b[1Cb", ["a b"], (1, 4)),
    "controls work inside a sequence": ("ab\x1b[\r2Cx", ["abx"], (1, 4)),
    "an unknown sequence is nothing": ("a\x1b[?9999;1zb", ["ab"], (1, 3)),
    "OSC ends with BEL or ST": ("a\x1b]2;t\x07b\x1b]2;t\x1b\\c", ["abc"], (1, 4)),
    "DCS, PM, APC and SOS are not printed": (
        "a\x1bPx\x1b\\b\x1b^y\x1b\\c\x1b_z\x1b\\d\x1bXw\x1b\\e", ["abcde"], (1, 6),
    ),
    "DECIC": ("abcdef\x1b[3G\x1b[2'}", ["ab  cdef"], (1, 3)),
    "DECDC": ("abcdef\x1b[3G\x1b[2'~", ["abef"], (1, 3)),
    "DECSED spares what is protected": (
        "\x1b[1\"qab\x1b[0\"qcd\x1b[H\x1b[?2J", ["ab"], (1, 1),
    ),
    "DECLRMM": (
        FILL + "\x1b[?69h\x1b[3;6s\x1b[1;3H\x1b[2P", ["AAAA  " + A[6:], B, C, D, E], (1, 3),
    ),
}  # fmt: skip

KNOWN = {
    "DECIC": "the core has no columns inserted",
    "DECDC": "nor deleted",
    "1;3;4;31;": "an empty number at the end is no reset",
    "38;5": "a color that is cut is read as two codes",
}
"""Where the core does otherwise than xterm; programs do not use it."""


@pytest.mark.parametrize("name", DISPLAY)
def test_display(name: str) -> None:
    text, rows, cursor = DISPLAY[name]
    shown = screen(text)
    right = ([*rows, *[""] * (ROWS - len(rows))], cursor)
    assert (shown == right) is (name not in KNOWN), f"{shown}\n{right}"


STYLES = {
    "1": CellStyle(attributes=Attribute.BOLD),
    "2;3": CellStyle(attributes=Attribute.FAINT | Attribute.ITALIC),
    "1;22": CellStyle(),
    "5;7;8;9": CellStyle(
        attributes=Attribute.BLINK | Attribute.INVERSE | Attribute.INVISIBLE | Attribute.STRIKE
    ),
    "5;7;8;9;25;27;28;29": CellStyle(),
    "53": CellStyle(attributes=Attribute.OVERLINE),
    "4": CellStyle(underline=Underline.SINGLE),
    "4:3;58:5:9": CellStyle(underline=Underline.CURLY, underline_color=9),
    "21": CellStyle(underline=Underline.DOUBLE),
    "4;24": CellStyle(),
    "31;42": CellStyle(fg=1, bg=2),
    "97;100": CellStyle(fg=15, bg=8),
    "38;5;202;48;5;17": CellStyle(fg=202, bg=17),
    "38:5:202": CellStyle(fg=202),
    "38;2;1;2;3;48;2;4;5;6": CellStyle(fg=(1, 2, 3), bg=(4, 5, 6)),
    "38:2::1:2:3": CellStyle(fg=(1, 2, 3)),
    "31;39;42;49": CellStyle(),
    "1;3;4;31;0": CellStyle(),
    "1;3;4;31;": CellStyle(),
    "38;5": CellStyle(),
    "99;1": CellStyle(attributes=Attribute.BOLD),
}


@pytest.mark.parametrize("code", STYLES)
def test_select_graphic_rendition(code: str) -> None:
    core = GhosttyCore(COLS, ROWS)
    core.feed(f"\x1b[{code}mx".encode())
    rows = dict(core.take_rows())
    core.close()
    assert (rows[0][0].style == STYLES[code]) is (code not in KNOWN)


REPORTS = {
    "DSR": ("\x1b[5n", "\x1b[0n"),
    "CPR": ("\x1b[3;4H\x1b[6n", "\x1b[3;4R"),
    "CPR in DECOM": ("\x1b[2;4r\x1b[?6h\x1b[2;1H\x1b[6n", "\x1b[2;1R"),
    "DECRQM, set": ("\x1b[?7$p", "\x1b[?7;1$y"),
    "DECRQM, reset": ("\x1b[?6$p", "\x1b[?6;2$y"),
    "DECRQM, unknown": ("\x1b[?9999$p", "\x1b[?9999;0$y"),
    "DECRQM, ANSI": ("\x1b[4$p", "\x1b[4;2$y"),
    "size in cells": ("\x1b[18t", "\x1b[8;5;20t"),
    "size in pixels": ("\x1b[14t", "\x1b[4;80;160t"),
    "the title is not told": ("\x1b]2;secret\x07\x1b[21t", ""),
    "nor the clipboard": ("\x1b]52;c;?\x07", ""),
    "DECRQSS of the margins": ("\x1b[2;4r\x1bP$qr\x1b\\", "\x1bP1$r2;4r\x1b\\"),
    "an answerback is empty": ("\x05", ""),
}


@pytest.mark.parametrize("name", REPORTS)
def test_report(name: str) -> None:
    asked, answered = REPORTS[name]
    core = GhosttyCore(COLS, ROWS)
    core.feed(asked.encode())
    replies = core.take_replies()
    core.close()
    assert replies == answered.encode()
