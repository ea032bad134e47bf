"""How a terminal in the cockpit answers."""

import statistics
import time

from tests.bench.installation import QD, Installation
from tests.bench.table import Row
from tests.support.program import Program

KEYS = 60
FLOOD_LINES = 12_000_000
FLOOD_FILE = "/tmp/flood"
FLOOD_KEYS = 10
PREFIX = "\x07"
FLOODS = (
    ("numbered lines", f"seq {FLOOD_LINES}"),
    ("colored cells", r"yes $'\e[38;5;120;48;5;17mab\e[0;1mcd' | head -c 60M"),
)


def terminal_rows(made: Installation) -> list[Row]:
    """A key's echo, what is taken in at full speed, and answers meanwhile."""
    made.qd("replica", "create", "--name", "terminals", "--wait")
    with Program(
        QD, columns=110, lines=40, environment=made.environment, directory=made.repository
    ) as program:
        program.wait_for("terminals")
        program.type("t")
        program.wait_for("$")
        program.settle(0.5)
        rows = _echo_rows(program)
        for name, command in FLOODS:
            rows += _flood_rows(program, name, command)
        return rows + _endless_rows(program)


def echoes(program: Program) -> list[float]:
    """Seconds from a key to its echo, of many keys at a prompt."""
    return [_echo(program, key) for key in "ABCDEFGHIJ" * (KEYS // 10)]


def _echo_rows(program: Program) -> list[Row]:
    taken = echoes(program)
    program.type("\x15clear\r")
    program.settle(0.5)
    return [
        Row("terminal: key to echo, median", statistics.median(taken) * 1000, "ms", 15),
        Row("terminal: key to echo, 95th percentile", _high(taken) * 1000, "ms"),
    ]


def _flood_rows(program: Program, name: str, command: str) -> list[Row]:
    """A file is shown at full speed; the shell itself says how many bytes it was."""
    # Into a file first: what makes the text must not be what is measured.
    program.type(f"clear; {command} > {FLOOD_FILE}; echo size=$(stat -c %s {FLOOD_FILE})=\r")
    program.wait(lambda: _size(program) > 0, 120)
    megabytes = _size(program) / 1e6
    program.type("clear\r")
    program.settle(0.5)
    begun = time.monotonic()
    program.type(f"cat {FLOOD_FILE}; echo fi''nished\r")
    answers = [_answer(program) for _ in range(FLOOD_KEYS)]
    program.wait_for("finished", 300)
    elapsed = time.monotonic() - begun
    program.type(f"rm {FLOOD_FILE}\r")
    program.settle(0.5)
    note = f"{megabytes / elapsed:.1f} MB/s"
    return [
        Row(f"terminal, {name}: time for 100 MB", elapsed / megabytes * 100, "s", 10, note),
        Row(f"terminal, {name}: key answered, median", statistics.median(answers) * 1000, "ms", 50),
        Row(f"terminal, {name}: key answered, longest", max(answers) * 1000, "ms"),
    ]


def _size(program: Program) -> int:
    found = [line for line in program.text.splitlines() if "size=" in line and "$" not in line]
    return int(found[-1].partition("size=")[2].partition("=")[0]) if found else 0


def _answer(program: Program) -> float:
    """Seconds until the cockpit has shown what may follow the prefix key."""
    begun = time.monotonic()
    program.type(PREFIX)
    program.wait_for("l list")
    elapsed = time.monotonic() - begun
    program.type("\x00")  # no command: back to the program
    program.wait_gone("l list")
    return elapsed


def _endless_rows(program: Program) -> list[Row]:
    program.type("clear; yes\r")
    program.wait(lambda: any(line.endswith("│y") for line in program.text.splitlines()[10:]))
    answers = [_answer(program) for _ in range(FLOOD_KEYS)]
    begun = time.monotonic()
    program.type("\x03")
    program.wait(lambda: program.text.rstrip().splitlines()[-2].rstrip().endswith("$"))
    return [
        Row("terminal, yes: key answered, median", statistics.median(answers) * 1000, "ms", 50),
        Row("terminal, yes: key answered, longest", max(answers) * 1000, "ms"),
        Row("terminal, yes: Ctrl+C to the prompt", time.monotonic() - begun, "s", 1),
    ]


def _echo(program: Program, key: str) -> float:
    """Seconds until the key's character is sent to the terminal, among the bytes of one frame."""
    before = program.sent
    begun = time.monotonic()
    program.type(key)
    program.wait(lambda: key.encode() in program.raw[before:])
    elapsed = time.monotonic() - begun
    program.settle(0.05)
    return elapsed


def _high(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]
