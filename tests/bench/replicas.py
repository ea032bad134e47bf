"""What a replica costs: from create to active, fifty that idle, and a hundred asleep."""

import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from quarterdeck.local.home import Home
from tests.bench.installation import Installation, installation
from tests.bench.table import Row, cpu_seconds, pss_mb, resident_mb

RUNS = 5
MANY = 50
ASLEEP = 100
WATCHED_SECONDS = 20.0


def _clone_seconds(source: Path, target: Path) -> float:
    begun = time.monotonic()
    subprocess.run(["git", "clone", "-q", "--shared", source, target], check=True)
    elapsed = time.monotonic() - begun
    shutil.rmtree(target)
    return elapsed


def _create_seconds(made: Installation, name: str) -> float:
    begun = time.monotonic()
    made.qd("replica", "create", "--name", name, "--wait")
    return time.monotonic() - begun


def _verb_seconds(made: Installation) -> float:
    begun = time.monotonic()
    made.qd("replica", "ls")
    return time.monotonic() - begun


def engines() -> list[int]:
    """Process ids of the engines of this machine (not of the sandbox around them)."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"quarterdeck.engine" in argv and b"python" in argv[0]:
            found.append(int(entry.name))
    return found


def replica_rows() -> list[Row]:
    """Create to active beyond a bare clone, and the memory of idle engines."""
    with installation(files=1000) as made:
        clone = statistics.median(
            _clone_seconds(made.repository, made.directory / "clone") for _ in range(RUNS)
        )
        verb = statistics.median(_verb_seconds(made) for _ in range(RUNS))
        made.qd("replica", "create", "--name", "first", "--wait")
        create = statistics.median(_create_seconds(made, f"timed-{n}") for n in range(RUNS))
        note = f"clone --shared: {clone:.2f} s, a verb: {verb:.2f} s"
        rows = [
            Row("replica of 1,000 files: create to active", create - clone - verb, "s", 1.5, note)
        ]
        begun = time.monotonic()
        for number in range(MANY - RUNS - 1):
            made.qd("replica", "create", "--name", f"many-{number}")
        listed = _wait_active(made, MANY)
        rows.append(
            Row(f"{MANY} replicas active", time.monotonic() - begun, "s", None, f"{listed} active")
        )
        sizes = [resident_mb(pid) for pid in engines()]
        rows.append(Row("idle engine: resident memory, the largest", max(sizes), "MB", 45))
        shared = statistics.mean(pss_mb(pid) for pid in engines())
        rows.append(Row(f"idle engine: PSS, the mean of {MANY}", shared, "MB", 20))
        command = statistics.median(_exec_seconds(made) for _ in range(RUNS))
        note = f"a verb: {verb:.2f} s"
        rows.append(Row(f"a command in one of {MANY} active replicas", command, "s", None, note))
        return [*rows, *_asleep_rows(made)]


def _exec_seconds(made: Installation) -> float:
    begun = time.monotonic()
    made.qd("replica", "exec", "first", "--", "true")
    return time.monotonic() - begun


def _asleep_rows(made: Installation) -> list[Row]:
    """Put all to sleep, and as many more until there are enough."""
    for one in _listed(made, "active"):
        made.qd("replica", "sleep", one["name"])
    for number in range(ASLEEP - len(_listed(made, "sleeping"))):
        made.qd("replica", "create", "--name", f"more-{number}", "--wait")
        made.qd("replica", "sleep", f"more-{number}")
    pid = int(Home(made.home).lock.read_text())
    before = cpu_seconds(pid)
    time.sleep(WATCHED_SECONDS)
    used = (cpu_seconds(pid) - before) / WATCHED_SECONDS * 100
    count = len(_listed(made, "sleeping"))
    files = sum(
        path.lstat().st_blocks for path in Home(made.home).workspaces.rglob("*") if path.exists()
    )
    note = f"{files / 2048 / count:.1f} MiB of disk each"
    return [
        Row(f"{count} asleep: processes", float(len(engines())), "", 0, note),
        Row(f"{count} asleep: CPU of the service", used, "%", 0.5),
        Row(f"{count} asleep: memory of the service", resident_mb(pid), "MB", None),
    ]


def _wait_active(made: Installation, wanted: int) -> int:
    end = time.monotonic() + 120
    count = 0
    while count < wanted and time.monotonic() < end:
        count = len(_listed(made, "active"))
    return count


def _listed(made: Installation, status: str) -> list[Any]:
    listed: Any = made.json("replica", "ls", "--status", status)
    return listed["replicas"] if isinstance(listed, dict) else listed
