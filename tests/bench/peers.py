"""The cockpit beside other full-screen programs: start, memory, idling and one key.

Those that are installed take part: tmux, what `make agents` put down, and what is on the PATH.
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
from tests.bench.table import Row, cpu_seconds, resident_mb
from tests.support.program import Program

RUNS = 5
CONTENT = 20
"""Characters on the screen with which a program has begun."""
QUIET, MURMUR = 1.5, 1_500
"""A program has started when less than so many bytes came in so many seconds."""
IDLE_SECONDS = 10.0
TYPED = ("a", "b", "c")
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
    """Four figures for each program; limits are the cockpit's alone."""
    for name in ("one", "two"):
        made.qd("replica", "create", "--name", name, "--wait")
    return [row for peer in _peers(made) for row in _rows_of(peer, made)]


def _peers(made: Installation) -> Iterator[Peer]:
    yield Peer("quarterdeck", QD, ("j", "k", "j"), made.environment)
    yield Peer("a list app", (sys.executable, "-c", PEER), ("\x1b[B",) * 3)
    found = {name: shutil.which(name) for name in ("tmux", "lazygit", "toad", "posting")}
    if program := found["tmux"]:
        socket = str(made.directory / "tmux")
        yield Peer("tmux", (program, "-S", socket, "-f", "/dev/null", "new", "cat"), TYPED)
    for name in ("lazygit", "toad", "posting"):
        if program := found[name]:
            yield Peer(name, (program,), ("j",) * 3)
    if (program := AGENTS / "codex").exists():
        home = made.directory / "codex"
        home.mkdir()
        (home / "config.toml").write_text(CODEX.format(repository=made.repository))
        yield Peer("codex", (str(program),), TYPED, {"CODEX_HOME": str(home)})
    if (program := AGENTS / "opencode").exists():
        yield Peer("opencode", (str(program),), TYPED)


FIGURES = (
    ("CPU until it is quiet", "s", None),
    ("output at start", "kB", 20),
    ("resident memory", "MB", 70),
    (f"bytes while idle for {IDLE_SECONDS:.0f} s", "B", 0),
    ("bytes of one key", "B", 600),
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
        while _bytes_in(program, QUIET) > MURMUR:
            pass
        pid = program.process.pid
        cost = (cpu_seconds(pid), program.sent / 1000, resident_mb(pid))
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
