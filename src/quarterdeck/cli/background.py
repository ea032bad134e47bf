"""The embedded service as a background process: started once, found, stopped.

A process that needs the service requests its health. When it does not answer, one of these processes
takes the start lock and starts it; the others wait for the lock and then find it running.
"""

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from quarterdeck.cli.errors import CliError, NoServiceError
from quarterdeck.cli.target import KEY_VARIABLE, URL_VARIABLE, Target
from quarterdeck.client.errors import StoppedError
from quarterdeck.local.files import read_file
from quarterdeck.local.home import Home
from quarterdeck.local.sockets import socket_address

START_SECONDS = 30.0
STOP_SECONDS = 30.0
PROBE_SECONDS = 2.0
POLL_SECONDS = 0.03
LOG_TAIL = 1500
"""Characters of the log that are shown when the service did not start."""

_PROBE = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def answers(home: Home) -> bool:
    """Return whether the home's service answers. Without the HTTP library, which takes 100 ms to load."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await _probe(home.socket)
    except OSError:  # a time-out is one too
        return False


async def _probe(socket: Path) -> bool:
    with socket_address(socket) as address:
        reader, writer = await asyncio.open_unix_connection(address)
    try:
        writer.write(_PROBE)
        status = await reader.readline()
        # A service without its database answers 503, but runs.
        return status.split()[1:2] in ([b"200"], [b"503"])
    finally:
        writer.close()


async def ensure_service(home: Home, report: Callable[[str], None]) -> None:
    """Ensure that the embedded service runs and answers.

    Raises:
        NoServiceError: it did not start; the message ends with the end of its log.
    """
    if await answers(home):
        return
    async with _start_lock(home):
        if await answers(home):
            return
        report("Starting the service.")
        await _start(home)


def service_starter(target: Target) -> Callable[[bool], Awaitable[str | None]] | None:
    """Return a function that restarts the embedded service; None for a remote service.

    Its argument says whether the person wants it. Otherwise it raises `StoppedError` after `qd stop`.
    """
    if not target.embedded:
        return None

    async def revive(wanted: bool) -> str | None:
        if not wanted and target.home.stopped.exists():
            raise StoppedError("The service was stopped by qd stop; agents keep running.")
        try:
            await ensure_service(target.home, lambda _: None)
        except CliError as e:
            return f"{e.message} {e.next_step or ''}".strip()
        return None

    return revive


@dataclass
class _Child:
    """A process started here; reaped if it ends while we wait for it."""

    pid: int

    def has_ended(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True


async def _start(home: Home) -> None:
    log_start = _size(home.log)
    child = _Child(_spawn(home))
    limit = monotonic() + START_SECONDS
    while monotonic() < limit:
        if await answers(home):
            return
        if child.has_ended():
            raise _did_not_start(home, log_start, "The service ended immediately.")
        await asyncio.sleep(POLL_SECONDS)
    raise _did_not_start(
        home, log_start, f"The service did not answer within {START_SECONDS:.0f} seconds."
    )


def _spawn(home: Home) -> int:
    """Start the service in its own session, so that closing a terminal does not end it."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {URL_VARIABLE, KEY_VARIABLE}
    }
    log_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        # -P: a directory named quarterdeck in the current directory must not be imported.
        [sys.executable, "-P", "-m", "quarterdeck", "serve", "--background"],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(home.log), log_flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGHUP],
    )


@asynccontextmanager
async def _start_lock(home: Home) -> AsyncGenerator[None]:
    lock = home.service / "start.lock"
    try:
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.service.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise NoServiceError(
            f"{e.filename or lock} cannot be created: {e.strerror}.",
            "Make the directory writable, or set QUARTERDECK_HOME to another one.",
        ) from e
    try:
        await _poll_until(lambda: _try_lock(descriptor))
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _did_not_start(home: Home, log_start: int, message: str) -> NoServiceError:
    try:
        with home.log.open("rb") as log:
            log.seek(log_start)
            output = log.read().decode(errors="replace").strip()[-LOG_TAIL:]
    except OSError:
        output = ""
    message = f"{message}\n{output}" if output else message
    return NoServiceError(
        message, f"The whole log is in {home.log}; qd doctor checks this machine."
    )


def running_pid(home: Home) -> int | None:
    """Return the process that holds the home's lock, or None.

    The lock is only inspected: taking it would keep a service from starting for a moment.
    """
    try:
        text = read_file(home.lock).decode("ascii", "replace").strip()
        inode = str(home.lock.stat().st_ino)
        locks = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in locks.splitlines():
        fields = line.split()
        if fields[1:2] == ["FLOCK"] and fields[4] == text and fields[5].endswith(f":{inode}"):
            return int(text)
    return None


async def stop_service(home: Home) -> int | None:
    """End the embedded service and wait for its end.

    Returns:
        Its process id, or None when none ran.

    Raises:
        NoServiceError: it belongs to someone else, or does not end.
    """
    with suppress(OSError):  # without it an open cockpit starts the service again
        home.stopped.touch(mode=0o600)
    pid = running_pid(home)
    if pid is None:
        return None
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return pid
    except PermissionError as e:
        home.stopped.unlink(missing_ok=True)
        raise NoServiceError(f"The service (process {pid}) belongs to another user.") from e
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await _poll_until(lambda: running_pid(home) != pid)
    except TimeoutError as e:
        raise NoServiceError(
            f"The service (process {pid}) did not end within {STOP_SECONDS:.0f} seconds.",
            f"Look at {home.log}.",
        ) from e
    return pid


async def _poll_until(holds: Callable[[], bool]) -> None:
    """Poll until the condition holds."""
    while True:
        if holds():
            return
        await asyncio.sleep(POLL_SECONDS)
