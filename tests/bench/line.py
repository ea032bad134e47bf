"""A chat at the speed of a model on a slow line: what is sent, and how keys are answered."""

import sys
import time
from statistics import median, quantiles

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
    """Over SSH: a terminal that answers at once, one that answers nothing, and one behind a slow line."""
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
    with Program(QD, columns=120, lines=40, environment=_remote(made), answers=answers) as program:
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
    with Program(SLOW, columns=120, lines=40, environment=_remote(made), answers=True) as program:
        _talking(made, program)
        _pump_for(program, 3.0)
        echoes = [_echo(program, KEYS[: n + 1]) for n in range(len(KEYS))]
        program.wait_for("that is all")
        program.settle(1.0)
        program.type("\t")
        program.settle(1.0)
        held = _held(program)
    keys = [milliseconds - 2000 * DELAY for milliseconds, _ in echoes]
    sent = [size for _, size in echoes]
    note = f"beside the line's own {2000 * DELAY:.0f} ms; {RATE / 1000:.0f} kB/s"
    most = RATE * (2 * DELAY + 0.1)
    return [
        Row("line: key while 600 characters/s come, median", median(keys), "ms", 100, note),
        Row("line: the same, 95th percentile", quantiles(keys, n=20)[-1], "ms", None, note),
        Row(
            "line: comes before a key's echo, 95th percentile", quantiles(sent, n=20)[-1], "B", most
        ),
        Row("line: still comes after a held page key ends", held / 1000, "kB"),
    ]


def _remote(made: Installation) -> dict[str, str]:
    return {**made.environment, "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22"}


def _echo(program: Program, typed: str) -> tuple[float, int]:
    """Milliseconds and bytes until the last of what was typed is shown."""
    begun, sent = time.monotonic(), program.sent
    program.type(typed[-1])
    program.wait_for(typed)
    cost = (time.monotonic() - begun) * 1000, program.sent - sent
    _pump_for(program, 0.15)
    return cost


def _held(program: Program) -> int:
    """Bytes that come after the last of many repeats."""
    for _ in range(HELD_KEYS):
        program.type("\x1b[5~")
        _pump_for(program, HELD_EVERY)
    sent = program.sent
    program.settle(1.5, timeout=60)
    return program.sent - sent
