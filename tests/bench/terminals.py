"""How a terminal in the cockpit answers."""

import statistics
import time

from tests.bench.installation import QD, Installation
from tests.bench.table import Row
from tests.support.program import Program

KEYS = 60


def terminal_rows(made: Installation) -> list[Row]:
    """A key's echo, and answers while `yes` floods."""
    made.qd("replica", "create", "--name", "terminals", "--wait")
    with Program(
        QD, columns=120, lines=40, environment=made.environment, directory=made.repository
    ) as program:
        program.wait_for("terminals")
        program.type("t")
        program.wait_for("$")
        program.settle(0.5)
        echoes = [_echo(program, key) for key in "ABCDEFGHIJ" * (KEYS // 10)]
        rows = [
            Row("terminal: key to echo, median", statistics.median(echoes) * 1000, "ms", 25),
            Row("terminal: key to echo, 95th percentile", _high(echoes) * 1000, "ms"),
        ]
        program.type("\x15clear\r")
        program.settle(0.5)
        program.type("yes\r")
        program.wait(lambda: program.text.count("\ny") > 0 or "y" in program.text.splitlines()[10])
        end = time.monotonic() + 3
        while time.monotonic() < end:
            program.pump(0.05)
        rows.append(
            Row("terminal flooded: cockpit answers a key", _leave(program) * 1000, "ms", 100)
        )
        program.type("t")
        program.wait_gone("n new")
        begun = time.monotonic()
        program.type("\x03")
        program.wait(lambda: program.text.rstrip().splitlines()[-2].rstrip().endswith("$"))
        rows.append(Row("terminal flooded: Ctrl+C to the prompt", time.monotonic() - begun, "s", 1))
    return rows


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


def _leave(program: Program) -> float:
    begun = time.monotonic()
    program.type("\x07")
    program.wait_for("ctrl+g: l list")
    elapsed = time.monotonic() - begun
    program.type("l")
    program.wait_for("n new")
    return elapsed
