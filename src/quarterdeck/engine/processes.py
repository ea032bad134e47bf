"""Ending what a shell has started, and knowing when a process has ended."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

_ROUNDS = 20


def members_of(session: int) -> list[int]:
    """Processes of a session: everything a session leader started that made none of its own."""
    return [pid for pid in _pids() if _session_of(pid) == session]


def signal_session(session: int, number: signal.Signals) -> bool:
    """Sends a signal to the leader's group and every process of its session; False: none left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, number)
    members = members_of(session)
    for pid in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(members)


async def kill_session(session: int) -> None:
    """Kills a session; looks again until those that were just being made are gone too."""
    for _ in range(_ROUNDS):
        if not signal_session(session, signal.SIGKILL):
            return
        await asyncio.sleep(0.005)


async def wait_for_exit(pid: int) -> int:
    """Waits for a child and reaps it; returns its exit code, 128 + number for a signal."""
    descriptor = os.pidfd_open(pid)
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    loop.add_reader(descriptor, lambda: ended.done() or ended.set_result(None))
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return _reap(pid)


def _reap(pid: int) -> int:
    _, status = os.waitpid(pid, 0)  # it has ended: this does not wait
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _session_of(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rfind(b")") + 2 :].split()
    return None if fields[0] == b"Z" else int(fields[3])
