"""Starting processes so that everything they start can be found again and ended.

A process group is not enough: what calls `setsid` leaves it, and what outlives its parent cannot be
found by parentage. So each tree also carries a mark, one variable in its environment, which every
descendant inherits and which Linux shows in `/proc`. Elsewhere only the group is ended.
"""

import asyncio
import os
import signal
import uuid
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import TypeVar

_POLL = 0.02
_NOTHING = 0
_PATIENCE = 5.0
"""For the kernel to take what was killed out of the way, in seconds."""
_PROC = Path("/proc")
_Stream = TypeVar("_Stream", asyncio.StreamReader, asyncio.StreamWriter)


def new_mark(name: str) -> tuple[str, str]:
    """A fresh mark: a variable's name and its unique value."""
    return name, uuid.uuid4().hex


class _Protocol(SubprocessStreamProtocol):
    """Tells of the exit at once; `Process.wait` may wait for pipes that a grandchild holds."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Tree:
    """A started process and whatever it starts. Whoever starts it calls `end` or `release`."""

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
        """Starts `command` as the leader of a session of its own.

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
        """What the process prints."""
        return _present(self._protocol.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        """What it complains about."""
        return _present(self._protocol.stderr)

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """What it is told."""
        return _present(self._protocol.stdin)

    @property
    def exit_status(self) -> int | None:
        """Exit status; negative: the signal that ended it; None while it runs."""
        return self._transport.get_returncode()

    async def exited(self, within: float | None = None) -> bool:
        """Waits for the leader's end; False when `within` seconds passed first."""
        try:
            async with asyncio.timeout(within):
                await self._protocol.exited.wait()
        except TimeoutError:
            return False
        return True

    def release(self) -> None:
        """Closes the pipes. What the process left running in the background goes on."""
        self._transport.close()

    async def end_rest(self) -> None:
        """Kills what the leader left behind when it ended; the pipes stay, to be read to their end."""
        await self._gone(signal.SIGKILL, within=_PATIENCE)

    async def end(self, grace: float) -> None:
        """Ends the process and everything it started: SIGTERM, and SIGKILL after `grace` seconds.

        Safe to call twice, and when the leader is long gone. The pipes are closed.
        """
        if grace > 0 and await asyncio.to_thread(self._signal, signal.SIGTERM):
            await self._gone(_NOTHING, within=grace)
        await self._gone(signal.SIGKILL, within=_PATIENCE)
        self.release()

    async def end_some(self, variable: str) -> None:
        """Kills those of the tree that have a variable in their environment, and waits for it."""
        sign = f"{variable}=".encode()
        try:
            async with asyncio.timeout(_PATIENCE):
                while pids := await asyncio.to_thread(_marked, self._mark, sign):
                    for pid in pids:
                        _send(os.kill, pid, signal.SIGKILL)
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            return

    async def _gone(self, number: int, within: float) -> None:
        """Waits until nothing of the tree is left, sending `number` (0: nothing) on the way."""
        try:
            async with asyncio.timeout(within):
                # Processes that are no children of ours give no event when they end.
                while await asyncio.to_thread(self._signal, number):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            return

    def _signal(self, number: int) -> bool:
        """Sends a signal to the whole tree; whether anything of it is left."""
        leads = self.exit_status is None
        if leads:
            _send(os.killpg, self.pid, number)
        reached = [_send(os.kill, pid, number) for pid in _marked(self._mark)]
        return leads or any(reached)


def _send(call: Callable[[int, int], None], target: int, number: int) -> bool:
    try:
        call(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _marked(mark: bytes, sign: bytes = b"") -> list[int]:
    """Processes that carry the mark, and a variable that begins with the sign.

    Zombies show no environment, so they do not count.
    """
    pids = [int(entry.name) for entry in _entries() if entry.name.isdecimal()]
    return [pid for pid in pids if pid != os.getpid() and _carries(pid, mark, sign)]


def _carries(pid: int, mark: bytes, sign: bytes) -> bool:
    variables = _environment(pid)
    return mark in variables and any(one.startswith(sign) for one in variables)


def _entries() -> list[Path]:
    return list(_PROC.iterdir()) if _PROC.is_dir() else []


def _environment(pid: int) -> list[bytes]:
    try:
        return _PROC.joinpath(str(pid), "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _present(stream: _Stream | None) -> _Stream:
    assert stream is not None, "this stream was not asked for"
    return stream
