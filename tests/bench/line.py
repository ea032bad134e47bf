"""A chat at the speed of a model on a slow line: what is sent, and how keys are answered."""

import statistics
import sys
import time

from tests.bench.chats import talker_config
from tests.bench.installation import QD, Installation, installation
from tests.bench.table import Row
from tests.support.program import Program

STREAMED_SECONDS = 16
OTHERS = 8
"""Replicas beside the one that talks: the list has to be drawn too when the chat scrolls."""
RATE, DELAY = 20_000, 0.1
"""Bytes a second of the line, and seconds that it takes each way."""
KEYS = "zqxkvjzqxkvjzqxkvjzqxkvj"
"""Nothing else on the screen has them in this order."""
HELD_KEYS, HELD_EVERY = 20, 0.05
"""A key held down: how often it repeats, and the seconds between."""
SLOW = (sys.executable, "-m", "tests.support.slow_line", str(RATE), str(DELAY), *QD)


def line_rows() -> list[Row]:
    """A terminal that answers at once, one that answers nothing, and one behind a slow line."""
    with installation(config=talker_config) as made:
        for number in range(OTHERS):
            made.qd("replica", "create", "--name", f"other-{number}")
        made.qd("replica", "create", "--name", "talk", "--agent", "talker", "--wait")
        return [
            _streamed(made, answers=True),
            _streamed(made, answers=False),
            *_slow(made),
        ]


def _talking(made: Installation, program: Program) -> None:
    program.wait_for("talk")
    program.settle(0.5)
    program.type("\r")
    program.wait_for("enter sends")
    program.settle(0.5)
    program.type(f"prose {STREAMED_SECONDS}\r")
    program.wait_for("session cookie")


def _streamed(made: Installation, *, answers: bool) -> Row:
    with Program(
        QD, columns=120, lines=40, environment=made.environment, answers=answers
    ) as program:
        _talking(made, program)
        _pump_for(program, 3.0)
        sent = program.sent
        seconds = _pump_for(program, STREAMED_SECONDS - 6.0)
        cost = (program.sent - sent) / seconds / 1000
        program.wait_for("that is all")
    name = "answers queries" if answers else "answers none"
    return Row(f"line: 600 characters/s on a terminal that {name}", cost, "kB/s", 4)


def _pump_for(program: Program, seconds: float) -> float:
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        program.pump(0.05)
    return time.monotonic() - begun


def _slow(made: Installation) -> list[Row]:
    environment = {**made.environment, "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22"}
    with Program(SLOW, columns=120, lines=40, environment=environment, answers=True) as program:
        _talking(made, program)
        _pump_for(program, 3.0)
        keys = [_echo(program, KEYS[: n + 1]) - 2000 * DELAY for n in range(len(KEYS))]
        program.wait_for("that is all")
        program.settle(1.0)
        program.type("\t")
        program.settle(1.0)
        held = _held(program)
    note = f"beside the line's own {2000 * DELAY:.0f} ms; {RATE / 1000:.0f} kB/s"
    return [
        Row(
            "line: key while 600 characters/s come, median",
            statistics.median(keys),
            "ms",
            100,
            note,
        ),
        Row(
            "line: the same, 95th percentile",
            statistics.quantiles(keys, n=20)[-1],
            "ms",
            None,
            note,
        ),
        Row("line: still shown after a held page key ends", held, "ms", 1000, note),
    ]


def _echo(program: Program, typed: str) -> float:
    """Milliseconds until the last of what was typed is shown."""
    begun = time.monotonic()
    program.type(typed[-1])
    program.wait_for(typed)
    elapsed = (time.monotonic() - begun) * 1000
    _pump_for(program, 0.15)
    return elapsed


def _held(program: Program) -> float:
    """Milliseconds of output after the last of many repeats, beside the line's own."""
    for _ in range(HELD_KEYS):
        program.type("\x1b[5~")
        _pump_for(program, HELD_EVERY)
    ended = last = time.monotonic()
    while program.pump(1.0):
        last = time.monotonic()
    return max(0.0, last - ended - 2 * DELAY) * 1000
