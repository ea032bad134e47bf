"""What a replica costs: from create to active, and twenty at rest."""

import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.bench.installation import Installation, installation
from tests.bench.table import Row, resident_mb

RUNS = 5
MANY = 20


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
        return rows


def _wait_active(made: Installation, wanted: int) -> int:
    end = time.monotonic() + 120
    count = 0
    while count < wanted and time.monotonic() < end:
        listed: Any = made.json("replica", "ls", "--status", "active")
        count = len(listed["replicas"] if isinstance(listed, dict) else listed)
    return count
