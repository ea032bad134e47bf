"""The cockpit beside other full-screen programs: start, memory, idling and one key.

Those that are installed take part: what `make agents` put down, and what is on the PATH. A program is
counted with all that it has started in its session.
"""

import os
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.cockpit import PEER
from tests.bench.installation import QD, Installation
from tests.bench.table import Row, cpu_seconds, members, resident_mb
from tests.support.program import Program

RUNS = 5
CONTENT = 20
"""Characters on the screen with which a program has begun."""
QUIET, MURMUR = 1.5, 1_500
"""A program has started when less than so many bytes came in so many seconds."""
LONGEST = 60.0
"""Seconds after which it counts as started all the same: some draw without end."""
IDLE_SECONDS = 10.0
TYPED = ("a", "b", "c")
CLIENT = "tmux, its client"
"""Its server is a process of another session."""
HTOP_DELAY = 600
"""Tenths of a second between two readings: longer than it is watched."""
NAMES = {CLIENT, "htop", "lazygit", "toad", "posting", "codex", "opencode"}
"""Peers that may not be installed."""
AGENTS = Path(sys.prefix) / "agents" / "bin"
CODEX = """
model = "none"
model_provider = "nowhere"
check_for_update_on_startup = false
[model_providers.nowhere]
name = "nowhere"
base_url = "http://127.0.0.1:9/v1"
[projects."{repository}"]
trust_level = "trusted"
"""


@dataclass(frozen=True)
class Peer:
    """A program, and keys that change little in it."""

    name: str
    argv: tuple[str, ...]
    keys: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    shown: str = ""
    """A text that is shown only when it has started."""


class Answering(Program):
    """Answers what programs ask of their terminal, as those that wait for it would hang."""

    def __init__(self, peer: Peer, made: Installation) -> None:
        home = made.directory / "homes" / peer.name.replace(" ", "-")
        home.mkdir(parents=True, exist_ok=True)
        plain = {**os.environ, "HOME": str(home), "LANG": "C.UTF-8", **peer.environment}
        directory = made.repository
        super().__init__(peer.argv, columns=120, lines=40, environment=plain, directory=directory)
        self.screen.write_process_input = self.type


def peer_rows(made: Installation) -> list[Row]:
    """Five figures for each program; limits are the cockpit's alone."""
    for name in ("one", "two"):
        made.qd("replica", "create", "--name", name, "--wait")
    peers = list(_peers(made))
    rows = [row for peer in peers for row in _rows_of(peer, made)]
    missing = NAMES - {peer.name for peer in peers}
    return [*rows, *(Row(name, None, note="not installed") for name in sorted(missing))]


def _peers(made: Installation) -> Iterator[Peer]:
    yield Peer("quarterdeck", QD, ("j", "k", "j"), made.environment, "online")
    yield Peer("a list app", (sys.executable, "-c", PEER), ("\x1b[B",) * 3)
    if program := shutil.which("tmux"):
        socket = str(made.directory / "tmux")
        yield Peer(CLIENT, (program, "-S", socket, "-f", "/dev/null", "new", "cat"), TYPED)
    if program := shutil.which("htop"):
        yield Peer("htop", (program, f"--delay={HTOP_DELAY}"), ("\x1b[B",) * 3)
    for name in ("lazygit", "toad", "posting"):
        if program := shutil.which(name):
            yield Peer(name, (program,), ("j",) * 3)
    if (program := AGENTS / "codex").exists():
        home = made.directory / "codex"
        home.mkdir()
        (home / "config.toml").write_text(CODEX.format(repository=made.repository))
        yield Peer("codex", (str(program),), TYPED, {"CODEX_HOME": str(home)})
    if (program := AGENTS / "opencode").exists():
        yield Peer("opencode", (str(program),), TYPED)


FIGURES = (
    ("CPU until it is quiet", "s", 0.45),
    ("output at start", "kB", 9),
    ("resident memory", "MB", 70),
    (f"bytes while idle for {IDLE_SECONDS:.0f} s", "B", 0),
    ("bytes of one key", "B", 400),
)


def _rows_of(peer: Peer, made: Installation) -> Iterator[Row]:
    own = peer.name == "quarterdeck"
    _, *costs = [_run(peer, made) for _ in range(RUNS)]
    for (what, unit, limit), values in zip(FIGURES, zip(*costs, strict=True), strict=True):
        middle = statistics.median(values)
        yield Row(f"{peer.name}: {what}", middle, unit, limit if own else None)


def _run(peer: Peer, made: Installation) -> tuple[float, ...]:
    with _alone(made.directory), Answering(peer, made) as program:
        program.wait(lambda: sum(not c.isspace() for c in program.text) >= CONTENT)
        program.wait_for(peer.shown)
        end = time.monotonic() + LONGEST
        while _bytes_in(program, QUIET) > MURMUR and time.monotonic() < end:
            pass
        own = members(program.process.pid)
        cpu, resident = sum(map(cpu_seconds, own)), sum(map(resident_mb, own))
        cost = (cpu, program.sent / 1000, resident)
        idle = _bytes_in(program, IDLE_SECONDS)
        keys = [_bytes_of_key(program, key) for key in peer.keys]
        return (*cost, idle, statistics.median(keys))


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """Ends what a program began in its home and left behind: codex keeps a daemon."""
    yield
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "exe").readlink().is_relative_to(directory):
                os.kill(int(process.name), signal.SIGKILL)


def _bytes_of_key(program: Program, key: str) -> int:
    program.type(key)
    return _bytes_in(program, 0.5)


def _bytes_in(program: Program, seconds: float) -> int:
    """What comes within a time."""
    sent, end = program.sent, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        program.pump(left)
    return program.sent - sent
