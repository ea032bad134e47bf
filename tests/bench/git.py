"""Getting work out of a replica: a patch of many files, a fetch of a long history, states."""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from quarterdeck.local.home import Home
from tests.bench.installation import Installation
from tests.bench.table import PAGE, TICKS, Row

FILES = 1_000
LINES = 200
HISTORY_BYTES = 100 << 20
REPLICAS = 50
RUNS = 5
WATCHED_SECONDS = 20.0


def git_rows(place: Installation) -> list[Row]:
    """Each beside what git itself takes for the same on the host."""
    return [*_diff_rows(place), *_fetch_rows(place), _state_row(place)]


def _diff_rows(place: Installation) -> list[Row]:
    name = _replica(place, "diff")
    lines = f"for n in $(seq {FILES}); do seq $n $((n + {LINES})) > f$n; done; git add -A"
    script = f"{lines}; git commit -qm Files; for n in $(seq {FILES}); do echo more >> f$n; done"
    place.qd("replica", "exec", name, "--timeout", "50", "--", "sh", "-c", script)
    same = ("git", "-C", _same(place, script), "diff", "--binary", "HEAD~1")

    def taken() -> list[float]:
        return _least(
            lambda: place.qd("replica", "diff", name),
            # The start of a verb: the interpreter, what it imports, and finding the replica, which
            # takes this one a short request more.
            lambda: place.qd("replica", "show", name),
            lambda: subprocess.run(same, capture_output=True, check=True),
        )

    ours, start, theirs = taken()
    place.qd("replica", "sleep", name)
    asleep, start_asleep, theirs_then = taken()
    place.qd("replica", "rm", "--yes", name)
    note = f"git diff {theirs * 1000:.0f} ms, qd replica show {start * 1000:.0f} ms"
    made = "(qd replica diff - qd replica show) / git diff"
    with_start = "qd replica diff / git diff"
    return [
        Row(f"git: diff of {FILES} files", ours * 1000, "ms", None, note),
        Row(
            "git: the same beside git diff, without the start",
            (ours - start) / theirs,
            "x",
            1.5,
            made,
        ),
        Row("git: the same with the start", ours / theirs, "x", None, with_start),
        Row(
            "git: without the start, of a sleeping replica",
            (asleep - start_asleep) / theirs_then,
            "x",
            None,
            "a sandbox is started for it",
        ),
    ]


def _fetch_rows(place: Installation) -> list[Row]:
    name = _replica(place, "fetch")
    part = HISTORY_BYTES // 20
    script = f"for n in $(seq 20); do head -c {part} /dev/urandom > f; git add f; git commit -qm $n; done"
    place.qd("replica", "exec", name, "--timeout", "50", "--", "sh", "-c", script)
    copies = iter(range(100))

    def clone(source: str) -> None:
        target = place.directory / f"copy{next(copies)}"
        environment = {**place.environment, "PATH": _path()}
        command = ["git", "clone", "-q", "--no-local", source, str(target)]
        subprocess.run(command, env=environment, check=True)

    pid = _service(place)
    before = _memory(pid)
    taken = _median(lambda: clone(f"qd::{name}"), 3)
    grown = (_peak(pid) - before) / (1 << 20)
    same = _same(place, script)
    peer = _median(lambda: clone(same), 3)
    place.qd("replica", "rm", "--yes", name)
    note = f"{taken:.2f} s, git clone {peer:.2f} s"
    return [
        Row("git: fetch of 100 MB", taken / peer, "x", 1.5, note),
        Row("git: memory of the service meanwhile", grown, "MiB", 64),
    ]


def _same(place: Installation, script: str) -> str:
    """Carry the script of a replica out in a clone on the host; return where the clone is."""
    here = Path(tempfile.mkdtemp(dir=place.directory))
    subprocess.run(["git", "clone", "-q", str(place.repository), str(here)], check=True)
    subprocess.run(["sh", "-c", script], cwd=here, check=True)
    return str(here)


def _state_row(place: Installation) -> Row:
    for number in range(REPLICAS):
        _replica(place, f"state{number}", wait=False)
    for number in range(REPLICAS):
        place.qd("replica", "wake", f"state{number}")
    pids = [_service(place), *_engines(place)]
    before, begun = sum(map(_processor, pids)), time.monotonic()
    time.sleep(WATCHED_SECONDS)
    used = (sum(map(_processor, pids)) - before) / (time.monotonic() - begun)
    note = f"the service and {len(pids) - 1} engines, of one processor"
    return Row(f"git: processor with the state of {REPLICAS}", used * 100, "%", 2, note)


def _replica(place: Installation, name: str, *, wait: bool = True) -> str:
    place.qd("replica", "create", "--name", name, *(["--wait"] if wait else []))
    return name


def _median(run: Callable[[], object], runs: int = RUNS) -> float:
    taken: list[float] = []
    for _ in range(runs):
        begun = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def _least(*runs: Callable[[], object], times: int = 6 * RUNS) -> list[float]:
    """The least time of each of several runs that take turns: a busy machine only adds to it."""
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(times):
        for seconds, run in zip(taken, runs, strict=True):
            begun = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begun)
    return list(map(min, taken))


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def _service(place: Installation) -> int:
    return int(Home(place.home).lock.read_text())


def _engines(place: Installation) -> list[int]:
    """Return the engines whose files are in this home, in a sandbox or not."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            mounts = (process / "mountinfo").read_text()
            home = str(place.home)
            own = home in mounts or any(home.encode() in one for one in command)
            if own and b"quarterdeck.engine" in command and b"--args" not in command:
                found.append(int(process.name))
    return found


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
