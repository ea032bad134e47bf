"""Finding, naming and ending processes, so that a recycled pid is never taken for the old one."""

import asyncio
import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

MARKER = "QUARTERDECK_SANDBOX"
"""Environment variable that every process of a sandbox is born with; see `Places.mark`."""

_STEP = 0.01
_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessRef:
    """A process, named so that no later one can be mistaken for it.

    `started` is in clock ticks since the machine came up, as in `/proc/PID/stat`.
    """

    pid: int
    started: int


@dataclass(frozen=True)
class _Stat:
    state: str
    parent: int
    started: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    words = text.rpartition(b")")[2].split()
    return _Stat(state=words[0].decode(), parent=int(words[1]), started=int(words[19]))


def boot_id() -> str:
    """Names the present run of the machine; pids mean nothing in another one."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def find(pid: int) -> ProcessRef | None:
    """The running process of that number; None when there is none or it has ended (zombie)."""
    found = _stat(pid)
    if found is None or found.state in "ZX":
        return None
    return ProcessRef(pid, found.started)


def parent_of(ref: ProcessRef) -> ProcessRef | None:
    """The process that started this one, or took it over."""
    found = _stat(ref.pid)
    return find(found.parent) if found and found.started == ref.started else None


def is_running(ref: ProcessRef) -> bool:
    """Whether exactly this process runs."""
    return find(ref.pid) == ref


def send(ref: ProcessRef, number: signal.Signals) -> None:
    """Signals a process if it still runs; a recycled pid is left alone."""
    try:
        handle = os.pidfd_open(ref.pid)
    except OSError as e:
        if e.errno == errno.ENOSYS:
            _send_by_number(ref, number)
        return
    try:
        if is_running(ref):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def _send_by_number(ref: ProcessRef, number: signal.Signals) -> None:
    # a kernel without process handles (before 5.3)
    if is_running(ref):
        os.kill(ref.pid, number)


async def wait_gone(ref: ProcessRef, seconds: float) -> bool:
    """Waits until the process has ended; False when it still runs after `seconds`."""
    end = time.monotonic() + seconds
    while is_running(ref):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_STEP)
    return True


def reap(pid: int) -> int | None:
    """Collects a child that has ended; its exit code, None while it runs, -1 when not ours."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return -1
    if done == 0:
        return None
    return os.waitstatus_to_exitcode(status)


def is_namespace_init(ref: ProcessRef) -> bool:
    """Whether the process is the first one of a pid namespace below ours."""
    try:
        lines = (_PROC / str(ref.pid) / "status").read_text().splitlines()
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), None)
    return numbers is not None and len(numbers) > 1 and numbers[-1] == "1"


def is_marked(ref: ProcessRef, mark: str) -> bool:
    """Whether the process was born in the sandbox with this mark."""
    wanted = f"{MARKER}={mark}".encode()
    try:
        return wanted in (_PROC / str(ref.pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def marked(mark: str) -> list[ProcessRef]:
    """Every running process that was born in the sandbox with this mark."""
    running = (find(int(name.name)) for name in _PROC.iterdir() if name.name.isdigit())
    return [ref for ref in running if ref and is_marked(ref, mark)]
