"""Starts processes so that all their descendants can be found and ended.

A process group is not enough: a process that calls `setsid` leaves it, and one that outlives its
parent cannot be found by parentage. So each tree also carries a mark, an environment variable that
every descendant inherits and that Linux shows in `/proc`. Elsewhere only the group is ended.
"""

import asyncio
import os
import signal
import uuid
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from subprocess import PIPE
from typing import TypeVar

from quarterdeck.local.processes import process_ids, read_environment, send_signal

_POLL = 0.02
_NOTHING = 0
_KILL_SECONDS = 5.0
"""For the kernel to remove killed processes, in seconds."""
_Stream = TypeVar("_Stream", asyncio.StreamReader, asyncio.StreamWriter)


def new_mark(name: str) -> tuple[str, str]:
    """Return a new mark: a variable's name and a unique value."""
    return name, uuid.uuid4().hex


class _Protocol(SubprocessStreamProtocol):
    """Reports the exit at once; `Process.wait` may wait for pipes that a grandchild holds."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Tree:
    """A started process and its descendants. The owner calls `end` or `release`."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, protocol: _Protocol, mark: tuple[str, str]
    ) -> None:
        self._transport = transport
        self._protocol = protocol
        self._mark = f"{mark[0]}={mark[1]}".encode()
        self.pid = transport.get_pid()

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        directory: str,
        environment: Mapping[str, str],
        mark: tuple[str, str],
        *,
        stdin: int = PIPE,
        stderr: int = PIPE,
        limit: int = 1 << 18,
    ) -> "Tree":
        """Start `command` as the leader of a new session.

        Raises:
            OSError: the program or the directory cannot be used.
        """
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(limit, loop),
            *command,
            stdin=stdin,
            stdout=PIPE,
            stderr=stderr,
            cwd=directory,
            env={**environment, mark[0]: mark[1]},
            start_new_session=True,
        )
        return cls(transport, protocol, mark)

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Its standard output."""
        return _present(self._protocol.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        """Its standard error."""
        return _present(self._protocol.stderr)

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Its standard input."""
        return _present(self._protocol.stdin)

    @property
    def exit_status(self) -> int | None:
        """Exit status; negative: the signal that ended it; None while it runs."""
        return self._transport.get_returncode()

    async def exited(self, within: float | None = None) -> bool:
        """Wait for the leader's end; False when `within` seconds passed first."""
        try:
            async with asyncio.timeout(within):
                await self._protocol.exited.wait()
        except TimeoutError:
            return False
        return True

    def release(self) -> None:
        """Close the pipes. Background processes keep running."""
        self._transport.close()

    async def end_rest(self) -> None:
        """Kill the descendants that an ended leader left; the pipes stay open."""
        await self._wait_for_end(signal.SIGKILL, within=_KILL_SECONDS)

    async def end(self, grace: float) -> None:
        """End the process and everything it started: SIGTERM, and SIGKILL after `grace` seconds.

        Safe to call twice, and after the leader's end. The pipes are closed.
        """
        if grace > 0 and await asyncio.to_thread(self._signal, signal.SIGTERM):
            await self._wait_for_end(_NOTHING, within=grace)
        await self._wait_for_end(signal.SIGKILL, within=_KILL_SECONDS)
        self.release()

    async def end_some(self, variable: str) -> None:
        """Kill the processes of the tree that have this environment variable."""
        prefix = f"{variable}=".encode()
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                while pids := await asyncio.to_thread(_marked, self._mark, prefix):
                    for pid in pids:
                        send_signal(os.kill, pid, signal.SIGKILL)
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            return

    async def _wait_for_end(self, number: int, within: float) -> None:
        """Wait until the whole tree has ended, sending `number` (0: nothing) meanwhile."""
        try:
            async with asyncio.timeout(within):
                # The ends of processes that are not our children cause no event.
                while await asyncio.to_thread(self._signal, number):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            return

    def _signal(self, number: int) -> bool:
        """Send a signal to the whole tree; return whether any process is left."""
        leads = self.exit_status is None
        if leads:
            send_signal(os.killpg, self.pid, number)
        reached = [send_signal(os.kill, pid, number) for pid in _marked(self._mark)]
        return leads or any(reached)


def _marked(mark: bytes, prefix: bytes = b"") -> list[int]:
    """Return the processes with the mark and a variable that starts with the prefix.

    Zombies show no environment, so they do not count.
    """
    return [pid for pid in process_ids() if pid != os.getpid() and _carries(pid, mark, prefix)]


def _carries(pid: int, mark: bytes, prefix: bytes) -> bool:
    variables = read_environment(pid)
    return mark in variables and any(variable.startswith(prefix) for variable in variables)


def _present(stream: _Stream | None) -> _Stream:
    assert stream is not None, "unexpected stream"
    return stream
