"""Processes of this machine, as `/proc` shows them, and ways to end them with their descendants."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

PROC = Path("/proc")
ENVIRONMENT_BYTES, MOST_VARIABLES = 256 << 10, 10_000
"""What is read of the variables of a process."""


@dataclass(frozen=True)
class ProcessStat:
    """`state` is a letter; `started` is in clock ticks since the machine booted."""

    state: str
    parent: int
    session: int
    started: int

    @property
    def has_ended(self) -> bool:
        """Whether it is a zombie."""
        return self.state in "ZX"


def boot_id() -> str:
    """Return the id of the machine's current boot; empty where it is unknown.

    Process ids are valid only within one boot.
    """
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_ids() -> list[int]:
    """Return the ids of all processes; none without `/proc`."""
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdecimal()]  # noqa: PTH208
    except OSError:
        return []


def read_stat(pid: int) -> ProcessStat | None:
    """Return the state of a process; None when there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()
    return ProcessStat(fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def read_name(pid: int) -> str | None:
    """Return the name of a process's program, at most 15 bytes of it; None when there is none."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return None


def read_environment(pid: int) -> list[bytes]:
    """Return the variables that a process was started with; none if it has ended or is not ours.

    They are read up to `ENVIRONMENT_BYTES`; after `MOST_VARIABLES` the rest is one item. A process may say
    that any part of its memory holds them (`PR_SET_MM_MAP`).
    """
    try:
        with (PROC / str(pid) / "environ").open("rb", buffering=0) as file:
            return (file.read(ENVIRONMENT_BYTES) or b"").split(b"\0", MOST_VARIABLES)
    except OSError:
        return []


@dataclass(frozen=True)
class ProcessRef:
    """A process, identified so that no later one can be mistaken for it.

    `started` is in clock ticks since the machine booted, as in `/proc/PID/stat`.
    """

    pid: int
    started: int


def find(pid: int) -> ProcessRef | None:
    """Return the running process of that number; None when there is none or it has ended (zombie)."""
    stat = read_stat(pid)
    if stat is None or stat.has_ended:
        return None
    return ProcessRef(pid, stat.started)


def is_running(ref: ProcessRef) -> bool:
    """Return whether exactly this process runs."""
    return find(ref.pid) == ref


def send(ref: ProcessRef, number: signal.Signals) -> None:
    """Signal a process if it still runs; a recycled pid is left alone."""
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


def send_signal(call: Callable[[int, int], None], target: int, number: int) -> bool:
    """Send with `os.kill` or `os.killpg`; return False without such a process of ours."""
    try:
        call(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def wait_for_exit(process: asyncio.subprocess.Process) -> int:
    """Wait for the end of a child; return its exit status.

    `Process.wait` may also wait for all processes that have its pipes. asyncio offers no other way, so an
    interpreter with other inner parts waits like that.
    """
    protocol = cast("asyncio.SubprocessProtocol | None", vars(process).get("_protocol"))
    if protocol is None:
        return await process.wait()
    exited = asyncio.Event()
    told = protocol.process_exited

    def process_exited() -> None:
        told()
        exited.set()

    protocol.process_exited = process_exited
    if process.returncode is None:
        await exited.wait()
    assert process.returncode is not None
    return process.returncode


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Kill a running child with its descendants in its session, wait for its end, and close its pipes.

    If it leads a process group, that is killed, too. What it started in another session, or left when
    it ended, may still have the other ends of its pipes: `Process.wait` would wait for these
    processes, too, or leave the pipes open.
    """
    if process.returncode is None:
        started = _descendants(process.pid)
        with suppress(ProcessLookupError):
            process.kill()
        for ref in started:
            send(ref, signal.SIGKILL)
        kill_group(process.pid)
    transport = cast("asyncio.SubprocessTransport | None", vars(process).get("_transport"))
    if transport is None:  # as in `wait_for_exit`
        await process.wait()
        return
    for number in (1, 2):
        if pipe := transport.get_pipe_transport(number):
            pipe.close()
    pipe = cast("asyncio.WriteTransport | None", transport.get_pipe_transport(0))
    # Closing it would wait until all was read.
    if pipe and (pipe.get_write_buffer_size() or not pipe.is_closing()):
        pipe.abort()
    await process.wait()
    transport.close()


def kill_group(leader: int) -> None:
    """Kill a process group, whose leader may have ended already."""
    send_signal(os.killpg, leader, signal.SIGKILL)


def _descendants(pid: int) -> list[ProcessRef]:
    """Return the descendants of a process, except those that started a new session."""
    stats = {id: stat for id in process_ids() if (stat := read_stat(id))}
    pids = [pid]
    for parent in pids:  # the list grows meanwhile
        pids += [
            child
            for child, stat in stats.items()
            if stat.parent == parent and pid in stats and stat.session == stats[pid].session
        ]
    return [ProcessRef(child, stats[child].started) for child in pids[1:]]
