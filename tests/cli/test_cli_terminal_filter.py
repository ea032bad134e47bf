"""What an attached terminal passes on to the user's own."""

import random
import re
import shutil
import time
from pathlib import Path

import pyte
import pytest
from pyte import modes as terminal_modes

from quarterdeck.cli.replica.terminal_filter import RESET, TerminalFilter
from tests.security.payloads import payloads
from tests.support.program import Program
from tests.support.visible import known_to_pyte

HOSTILE = [
    *("\x1b]52;c;c3RvbGVu\x07", "\x1b]52;c;?\x1b\\", "\x1b]0;title\x07", "\x1b]2;title\x1b\\"),
    *("\x1b]8;;http://a/\x07", "\x1b]11;?\x07", "\x1b]4;1;red\x07", "\x1b]1337;File=a:AAAA\x07"),
    *("\x1b]777;notify;a;b\x07", "\x1b]9;a\x07", "\x1b]50;?\x07", "\x1b]\x18", "\x1b]52;c;AA\x9c"),
    *("\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\", "\x1bPtmux;\x1b\x1b]52;c;AA\x07\x1b\\", "\x1bX;\x1b\\"),
    *("\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1bPq#0~~\x1b\\", "\x1b^private\x1b\\"),
    *("\x1b[>c", "\x1b[=c", "\x1b[?6n", "\x1b[5n", "\x1b[?u", "\x1b[>0q", "\x1b[14t", "\x1b[21t"),
    *("\x1b[?4m", "\x1b[?2026$p", "\x1b[x", "\x1b[1;1;1;1;1;1*y", "\x05", "\x1bZ", "\x1b[22;0;0t"),
    *("\x1b[8;1;1t", "\x1b[2t", "\x1b[5i", "\x1b[4i", "\x1b[?5i", "\x1bc", "\x1b[!p", '\x1b[61"p'),
    *("\x1b[3J", "\x1b[?3h", "\x1b[?5h", "\x1b[?6h", "\x1b[?2031h", "\x1b[?25;2031h", "\x1b[20h"),
    *("\x1b[2h", "\x1b[3g", "\x1bH", "\x1b#8", "\x1b#3", "\x1b%@", "\x1b%G", "\x1bn", "\x1bo", "\x1b}"),
    *("\x1b[>1u", "\x1b[=1u", "\x1b[?1000s", "\x1b[?1000r", "\x1b[99999b", "\x1b[1;2;3;4;5T", "\x13"),
    *("\x1b[1$}", "\x1b[1'z", "\x1b[?1001h", "\x1b[2 t", "\x18", "\x1a", "\x00", "\x7f", "\x84", "\x9c"),
    *("\x1b(1", "\x1b*0", "\x1b-A", "\x1b F", "\x1bl", "\x1bm", "\x1b[0'|", "\x1b[?1;2;2004;9h"),
]  # fmt: skip
DRAWING = [
    *("\x1b[31m", "\x1b[m", "\x1b[38;5;208;1m", "\x1b[38:2::1:2:3m", "\x1b[4:3m", "\x1b[2J", "\x1b[J"),
    *("\x1b[5;6H", "\x1b[;H", "\x1b[3;9r", "\x1b[r", "\x1b[12C", "\x1b[K", "\x1b[1K", "\x1b[4X", "\x1b[2P"),
    *("\x1b[?25l", "\x1b[?12;25h", "\x1b[?1049h", "\x1b[?1000;1006h", "\x1b[?2004h", "\x1b[?1h", "\x1b="),
    *("\x1b[s", "\x1b[u", "\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x1b(0lqk\x1b(B", "\x0e\x0f", "\x1b[2 q"),
    *("\x1b[?69h", "\x1b[2;40s", "\x1b[32;1;1;2;9$x", "\x1b[1;1;2;9$z"),
    *("\x1b[3b", "\x1b[2L", "\x1b[2S", "\x1b[4h", "\x1b[>4;2m", "\x1b[?2026h", "\t\r\n\b\x07", "é\U0001f44d"),
]  # fmt: skip

KNOWN = re.compile(
    r"\x1b(?:\[[0-9;:]*[ABCDEFGHIZ`abde@LMPSTXfrmsuhlJK]"
    r"|\[[0-9;]*\$[xz]|\[\?[0-9;]*[hlJK]|\[[0-9]? q|\[>4[;0-9]*m|[78DEM=>]|[()][0AB])"
)


def passed(texts: list[str] | list[bytes], *, answers: bool = False) -> str:
    """Return what a new filter passes on of pieces of a stream."""
    filtered = TerminalFilter(answers=answers)
    pieces = (text.encode() if isinstance(text, str) else text for text in texts)
    return b"".join(map(filtered.filter, pieces)).decode()


def cut_everywhere(text: str) -> set[str]:
    """Return what is passed on of a text that is cut at each byte, once and into single bytes."""
    data = text.encode()
    cuts = {passed([data[:at], data[at:]]) for at in range(len(data))}
    return cuts | {passed([data[at : at + 1] for at in range(len(data))])}


@pytest.mark.parametrize("sequence", HOSTILE)
def test_what_does_more_than_draw_is_removed(sequence: str) -> None:
    assert cut_everywhere(f"a{sequence}b") == {"ab"}


@pytest.mark.parametrize("sequence", DRAWING)
def test_what_draws_is_passed_on_as_it_is(sequence: str) -> None:
    assert cut_everywhere(f"a{sequence}b") == {f"a{sequence}b"}


def test_only_known_sequences_are_left_wherever_a_stream_is_cut() -> None:
    chance = random.Random(1)
    parts = [*HOSTILE, *DRAWING, *payloads(), *"\x1b[];?0m", "\x1bP", "\x1b]", "\x1b\\"]
    for _ in range(3_000):
        data = "".join(chance.choices(parts, k=6)).encode()
        cut = chance.randrange(len(data))
        text = passed([data])
        assert passed([data[:cut], data[cut:]]) == text
        rest = KNOWN.sub("", text)
        assert not re.search("[\x00-\x06\x0b\x0c\x10-\x1f\x7f-\x9f]", rest), (data, rest)


def test_a_sequence_that_never_ends_is_not_kept() -> None:
    filtered = TerminalFilter(answers=False)
    assert filtered.filter(b"a\x1b[" + b"1" * 1_000) == b"a" + b"1" * (1_000 - 128)
    assert filtered.filter(b"\x1b]52;c;") == b""
    for _ in range(100):
        assert filtered.filter(b"A" * 1_000) == b""
    assert filtered.filter(b"\x1b") == b""
    assert filtered.filter(b"\\b") == b"b"


def test_the_terminal_answers_a_question_once_until_something_is_typed() -> None:
    filtered = TerminalFilter(answers=True)
    assert filtered.filter(b"\x1b[6n\x1b[6n\x1b[c\x1b[0c\x1b[>c\x1b[6n") == b"\x1b[6n\x1b[c"
    filtered.note_input()
    assert filtered.filter(b"\x1b[6") == b""
    assert filtered.filter(b"n\x1b[6n") == b"\x1b[6n"


def test_colored_lines_and_floods_take_little_time() -> None:
    lines = b"".join(b"\x1b[38;5;%dmline\x1b[0m \xc3\xa9\r\n" % (at % 256) for at in range(70_000))
    started = time.process_time()
    assert TerminalFilter(answers=False).filter(lines) == lines
    for flood in ("\x1b", "\x1b[", "\x1b]52;", "\x1b[;", "\x1b[c", "\x00", "\x9b1"):
        passed([flood * (1_000_000 // len(flood))])
    assert time.process_time() - started < 10


def test_the_end_resets_what_a_program_may_set() -> None:
    screen = pyte.Screen(80, 24)
    stream = pyte.ByteStream(screen)
    stream.feed(b"".join(text.encode() for text in DRAWING) + b"\x1b[?25l\x1b[?7l\x1b[4h")
    stream.feed(RESET)
    assert not screen.cursor.hidden
    assert terminal_modes.DECAWM in screen.mode and terminal_modes.IRM not in screen.mode
    assert screen.margins is None or screen.margins == pyte.screens.Margins(0, 23)
    modes = {mode for text in DRAWING for mode in re.findall(r"\d+", text) if text.endswith("h")}
    assert modes <= set(re.findall(r"\d+", RESET.decode()))


@pytest.mark.parametrize(
    ("line", "shown", "keys"),
    [
        (
            [
                "vim",
                "-u",
                "NONE",
                "--cmd",
                "set t_RK= t_TI= t_TE=",
                "-c",
                "set number hlsearch",
                "numbers",
            ],
            "line 3",
            "/line\rGx",
        ),
        (["less", "-R", "numbers"], "line 3", " /line\r"),
        (["htop", "--no-color"], "PID", "\x1b[B"),
        (["sh", "-c", "fzf <numbers"], "line 3", "7\x1b[A"),
        (["sh", "-c", "fzf --height 9 <numbers"], "line 3", "7\x1b[A"),
    ],
    ids=["vim", "less", "htop", "fzf", "fzf --height"],
)
def test_programs_look_the_same(line: list[str], shown: str, keys: str, tmp_path: Path) -> None:
    if shutil.which("fzf" if "fzf" in line[-1] else line[0]) is None:
        pytest.skip(f"{line[0]} is not installed")
    (tmp_path / "numbers").write_text("".join(f"line {at}\n" for at in range(200)))
    with Program(line, directory=tmp_path) as program:
        if "--height" in line[-1]:
            for asked in (1, 2):
                program.wait(lambda asked=asked: program.raw.count(b"\x1b[6n") == asked)
                program.type("\x1b[1;1R")
        program.wait_for(shown)
        program.type(keys)
        program.settle()
        raw = bytes(program.raw)
        filtered = TerminalFilter(answers=True)
        passed_on = bytearray()
        for at in range(0, len(raw), 100):
            filtered.note_input()
            passed_on += filtered.filter(raw[at : at + 100])
        assert (b"\x1b[6n" in passed_on) == ("--height" in line[-1])
        screen = pyte.Screen(80, 24)
        pyte.ByteStream(screen).feed(known_to_pyte(bytes(passed_on)))
        assert screen.display == program.screen.display
