"""Runs commands, and ends the processes they started."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from quarterdeck.engine.agent_session import not_started
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.local.processes import process_ids, read_stat, send_signal
from quarterdeck.wire.engine import StreamCommand
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.terminals import EXEC_OUTPUT_LIMIT, ExecRequest, ExecResponse

_ROUNDS = 20


def members_of(session: int) -> list[int]:
    """Return the processes of a session: those its leader started, without their own session."""
    stats = ((pid, read_stat(pid)) for pid in process_ids())
    return [pid for pid, stat in stats if stat and stat.session == session and not stat.has_ended]


def signal_session(session: int, number: signal.Signals) -> bool:
    """Send a signal to the leader's group and every process of its session; False: none left."""
    send_signal(os.killpg, session, number)
    members = members_of(session)
    for pid in members:
        send_signal(os.kill, pid, number)
    return bool(members)


async def kill_session(session: int) -> None:
    """Kill a session; repeat until processes that were just starting have ended too."""
    for _ in range(_ROUNDS):
        if not signal_session(session, signal.SIGKILL):
            return
        await asyncio.sleep(0.005)


async def wait_for_exit(pid: int) -> int:
    """Wait for a child and reap it; return its exit code, 128 + number for a signal."""
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


_READ_BYTES = 1 << 16
_READS_A_TURN = 16
_PIPE_BYTES = 1 << 20
_PART_BYTES = 1 << 17
_ERROR_BYTES = 1 << 14
_GATHER_SECONDS = 0.001
_LONGEST_ARGUMENT = (1 << 17) - 1
"""Most bytes of one argument on Linux."""
_READ_FROM_INPUT = (
    "QUARTERDECK_COMMAND=$(cat) || exit; "
    'eval "unset QUARTERDECK_COMMAND; exec </dev/null\n$QUARTERDECK_COMMAND"'
)
"""A script that runs its input as `-c` would; the command itself has no input."""


class Tail:
    """Reads a pipe and keeps the last bytes."""

    def __init__(self, descriptor: int, limit: int = EXEC_OUTPUT_LIMIT) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._limit = limit
        self._tail = bytearray()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)
        self.total = 0

    @property
    def truncated(self) -> bool:
        return self.total > self._limit

    def finish(self) -> str:
        """Read what is in the pipe now, stop, and return the text."""
        for _ in range(2 * _PIPE_BYTES // _READ_BYTES):
            if not self._read_once():
                break
        self._loop.remove_reader(self._descriptor)
        return self._tail[-self._limit :].decode(errors="replace")

    def _read(self) -> None:
        for _ in range(_READS_A_TURN):
            if not self._read_once():
                return

    def _read_once(self) -> bool:
        try:
            chunk = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._loop.remove_reader(self._descriptor)
            return False
        self.total += len(chunk)
        self._tail += chunk
        if len(self._tail) > 4 * self._limit:
            del self._tail[: -self._limit]
        return True


async def run_command(
    request: ExecRequest, directory: Path, environment: Mapping[str, str]
) -> ExecResponse:
    """Run a command to its end or its time-out; being cancelled stops it as well.

    Processes that the command leaves in the background keep running, unless it timed out; the
    answer does not wait for them.

    Raises:
        EngineRefusedError: the shell cannot be started; CONFLICT when the variables are too large.
    """
    reading, writing = os.pipe()
    try:
        _widen(reading)
        process = _spawn(request.command, directory, environment, writing)
    except (OSError, ValueError) as error:
        os.close(reading)
        raise not_started("The command could not be started.", error) from error
    finally:
        os.close(writing)
    tail = Tail(reading)
    exit_code = None
    try:
        exit_code = await wait_or_kill(process, request.timeout_seconds)
    finally:
        output = tail.finish()
        os.close(reading)
    return ExecResponse(
        output=output,
        exit_code=exit_code,
        timed_out=exit_code is None,
        truncated=tail.truncated,
    )


async def stream_command(
    request: StreamCommand, environment: Mapping[str, str]
) -> AsyncGenerator[bytes]:
    """Run a command; yield its output in large parts. It ends with the generator.

    The stream does not wait for processes that the command leaves in the background.

    Raises:
        EngineRefusedError: CONFLICT: it failed or could not be started; `details` has the end of its
            standard error.
    """
    output, errors, data = os.pipe(), os.pipe(), _in_memory(request.data.encode())
    try:
        process = _start(
            request.command, request.directory, environment, (data, output[1], errors[1])
        )
    except (OSError, ValueError) as error:
        os.close(output[0])
        os.close(errors[0])
        raise _failed(str(error)) from error
    finally:
        os.close(data)
        os.close(output[1])
        os.close(errors[1])
    tail = Tail(errors[0], _ERROR_BYTES)
    exiting = asyncio.ensure_future(wait_for_exit(process.pid))
    try:
        async with aclosing(_parts(output[0], exiting)) as parts:
            async for part in parts:
                yield part
        process.returncode = await exiting
    finally:
        if not exiting.done():
            await _stop(process, exiting)
        said = tail.finish()
        os.close(errors[0])
        os.close(output[0])
    if process.returncode:
        raise _failed(said)


async def _parts(pipe: int, ended: "asyncio.Future[int]") -> AsyncGenerator[bytes]:
    """Yield what comes through a pipe until its end, or until it is empty after `ended`."""
    os.set_blocking(pipe, False)
    _widen(pipe)
    part = bytearray()
    chunk = None
    while chunk != b"":
        try:
            chunk = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            if ended.done():
                break
            await _readable(pipe, ended)
            # Programs write a few KiB at a time; each part costs every process that it passes.
            await asyncio.sleep(_GATHER_SECONDS)
            continue
        part += chunk
        if len(part) >= _PART_BYTES:
            yield bytes(part)
            part.clear()
    if part:
        yield bytes(part)


async def _readable(pipe: int, ended: "asyncio.Future[int]") -> None:
    """Wait for data in a pipe, its end, or `ended`."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(pipe, lambda: ready.done() or ready.set_result(None))
    try:
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(pipe)


def _failed(said: str) -> EngineRefusedError:
    return EngineRefusedError(ErrorCode.CONFLICT, "The command failed.", said)


def _spawn(
    command: str, directory: Path, environment: Mapping[str, str], output: int
) -> "subprocess.Popen[bytes]":
    script = os.fsencode(command)
    in_argument = len(script) <= _LONGEST_ARGUMENT
    stdin = os.open(os.devnull, os.O_RDONLY) if in_argument else _in_memory(script)
    try:
        shell = ["/bin/sh", "-c", script if in_argument else _READ_FROM_INPUT]
        return _start(shell, directory, environment, (stdin, output, output))
    finally:
        os.close(stdin)


def _start(
    command: Sequence[str | bytes],
    directory: Path | str,
    environment: Mapping[str, str],
    streams: tuple[int, int, int],
) -> "subprocess.Popen[bytes]":
    """Start a session leader with these standard streams."""
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _in_memory(data: bytes) -> int:
    """Return an anonymous file that holds the data, open at its start."""
    with os.fdopen(os.memfd_create("command"), "wb") as file:
        file.write(data)
        file.flush()
        file.seek(0)
        return os.dup(file.fileno())


async def wait_or_kill(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """Wait for the end of a session leader, and collect it; kill its session at the time limit.

    Being cancelled kills it as well.

    Returns:
        Its exit code; None after the time limit, in seconds.
    """
    exiting = asyncio.ensure_future(wait_for_exit(process.pid))
    try:
        done, _ = await asyncio.wait({exiting}, timeout=seconds)
    except asyncio.CancelledError:
        await _stop(process, exiting)
        raise
    if done:
        process.returncode = exiting.result()
        return process.returncode
    await _stop(process, exiting)
    return None


async def _stop(process: "subprocess.Popen[bytes]", exiting: "asyncio.Future[int]") -> None:
    await kill_session(process.pid)
    await exiting
    process.returncode = -signal.SIGKILL


def _widen(pipe: int) -> None:
    import fcntl

    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        return  # over the user's limit; the default size is enough
