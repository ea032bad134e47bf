"""One shell command in the workspace root (specification, operation 1)."""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from quarterdeck.engine.processes import kill_session, wait_for_exit
from quarterdeck.engine.starting import not_started
from quarterdeck.wire.exec import EXEC_OUTPUT_LIMIT, ExecRequest, ExecResponse

_READ_BYTES = 1 << 16
_READS_A_TURN = 16
_PIPE_BYTES = 1 << 20
_LONGEST_ARGUMENT = (1 << 17) - 1
"""Bytes of one argument that Linux takes."""
_READ_FROM_INPUT = (
    "QUARTERDECK_COMMAND=$(cat) || exit; "
    'eval "unset QUARTERDECK_COMMAND; exec </dev/null\n$QUARTERDECK_COMMAND"'
)
"""A script that runs what its input holds, as `-c` would; the command itself has no input."""


class Tail:
    """Reads a pipe and keeps the last bytes of what came."""

    def __init__(self, descriptor: int, limit: int = EXEC_OUTPUT_LIMIT) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._limit = limit
        self._kept = bytearray()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)
        self.total = 0

    @property
    def truncated(self) -> bool:
        return self.total > self._limit

    def finish(self) -> str:
        """Takes what is in the pipe now, stops, and returns the text."""
        for _ in range(2 * _PIPE_BYTES // _READ_BYTES):
            if not self._read_once():
                break
        self._loop.remove_reader(self._descriptor)
        return self._kept[-self._limit :].decode(errors="replace")

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
        self._kept += chunk
        if len(self._kept) > 4 * self._limit:
            del self._kept[: -self._limit]
        return True


async def run_command(
    request: ExecRequest, directory: Path, environment: Mapping[str, str]
) -> ExecResponse:
    """Runs a command to its end or its time-out; being cancelled stops it as well.

    What the command leaves running in the background goes on, unless it timed out; the answer does
    not wait for it.

    Raises:
        EngineRefused: the shell cannot be started; CONFLICT when the variables are too large.
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
        exit_code = await _wait(process, request.timeout_seconds)
    finally:
        output = tail.finish()
        os.close(reading)
    return ExecResponse(
        output=output,
        exit_code=exit_code,
        timed_out=exit_code is None,
        truncated=tail.truncated,
    )


def _spawn(
    command: str, directory: Path, environment: Mapping[str, str], output: int
) -> "subprocess.Popen[bytes]":
    script = os.fsencode(command)
    in_argument = len(script) <= _LONGEST_ARGUMENT
    given = os.open(os.devnull, os.O_RDONLY) if in_argument else _in_memory(script)
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", script if in_argument else _READ_FROM_INPUT],
            cwd=directory,
            env=environment,
            stdin=given,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(given)


def _in_memory(script: bytes) -> int:
    """A file of no directory that holds the script, open at its beginning."""
    with os.fdopen(os.memfd_create("command"), "wb") as file:
        file.write(script)
        file.flush()
        file.seek(0)
        return os.dup(file.fileno())


async def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    exiting = asyncio.ensure_future(wait_for_exit(process.pid))
    try:
        done, _ = await asyncio.wait({exiting}, timeout=seconds)
    except asyncio.CancelledError:
        await _stop(process.pid, exiting)
        process.returncode = -9
        raise
    if done:
        process.returncode = exiting.result()
        return process.returncode
    await _stop(process.pid, exiting)
    process.returncode = -9
    return None


async def _stop(pid: int, exiting: "asyncio.Future[int]") -> None:
    await kill_session(pid)
    await exiting


def _widen(pipe: int) -> None:
    import fcntl

    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        return  # over the user's allowance; the default size does
