"""Runs one hook as a process of its own, within its time."""

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.engine.processes import kill_session, wait_for_exit
from quarterdeck.engine.setup.output import HookOutput
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.setup import HookKind, HookLog

Tell = Callable[[str], Awaitable[None]]

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
_NOT_STARTED = 126


@dataclass(frozen=True)
class Hook:
    """A hook that can be run: its script, and the directory that it is run in."""

    kind: HookKind
    name: str
    script: str
    directory: Path


class HookRunner:
    """Runs hooks one at a time. `close` lets go of the output of what they left running."""

    def __init__(self, scripts: Path, environment: Mapping[str, str], seconds: float) -> None:
        self._scripts = scripts
        self._environment = environment
        self._seconds = seconds
        self._outputs: list[HookOutput] = []

    async def run(self, hook: Hook, tell: Tell) -> HookLog:
        """Runs a hook to its end, or stops it and all it started at its time's end.

        `tell` is given its output in pieces. Being cancelled stops the hook as well.
        """
        executed_at, begun = utc_now(), time.monotonic()
        reading, writing = os.pipe()
        output = HookOutput(reading)
        self._outputs.append(output)
        try:
            process = await self._start(hook, writing)
        except (OSError, ValueError) as error:
            os.write(writing, f"The hook could not be started: {error}\n".encode())
            process = None
        finally:
            os.close(writing)
        telling = asyncio.create_task(_tell(output, tell), name="hook output")
        exit_code: int | None = _NOT_STARTED
        try:
            if process is not None:
                exit_code = await self._wait(process)
        finally:
            output.finish()
            await _settle(telling)
        return HookLog(
            hook_type=hook.kind.value,
            hook_name=hook.name,
            hook_script=hook.script,
            output=output.text,
            output_truncated=output.truncated,
            output_total_chars=output.total,
            exit_code=exit_code,
            timed_out=exit_code is None,
            executed_at=executed_at,
            duration_ms=round((time.monotonic() - begun) * 1000),
        )

    def close(self) -> None:
        """Stops reading what is still printed."""
        for output in self._outputs:
            output.close()

    async def _start(self, hook: Hook, output: int) -> "subprocess.Popen[bytes]":
        starting = asyncio.ensure_future(asyncio.to_thread(self._spawn, hook, output))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # A thread is not cancelled: the process that it starts has no owner yet.
            await asyncio.wait({starting})
            if starting.exception() is None:
                process = starting.result()
                await _stop(process, asyncio.ensure_future(wait_for_exit(process.pid)))
            raise

    def _spawn(self, hook: Hook, output: int) -> "subprocess.Popen[bytes]":
        self._scripts.mkdir(parents=True, exist_ok=True)
        path = self._scripts / f"{hook.kind.value}.sh"
        path.write_text(hook.script)
        return subprocess.Popen(
            [*interpreter_of(hook.script), str(path)],
            cwd=hook.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    async def _wait(self, process: "subprocess.Popen[bytes]") -> int | None:
        exiting = asyncio.ensure_future(wait_for_exit(process.pid))
        try:
            done, _ = await asyncio.wait({exiting}, timeout=self._seconds)
        except asyncio.CancelledError:
            await _stop(process, exiting)
            raise
        if done:
            process.returncode = exiting.result()
            return process.returncode
        await _stop(process, exiting)
        return None


def interpreter_of(script: str) -> list[str]:
    """The command of a `#!` line, else a shell."""
    first = script.split("\n", 1)[0]
    if first.startswith("#!") and (words := first[2:].strip().split(None, 1)):
        return words
    return [next((shell for shell in _SHELLS if Path(shell).exists()), _SHELLS[-1])]


async def _stop(process: "subprocess.Popen[bytes]", exiting: "asyncio.Future[int]") -> None:
    await kill_session(process.pid)
    await exiting
    process.returncode = -9


async def _tell(output: HookOutput, tell: Tell) -> None:
    while (piece := await output.piece()) is not None:
        await tell(piece)


async def _settle(telling: "asyncio.Task[None]") -> None:
    try:
        await telling
    except asyncio.CancelledError:
        telling.cancel()
        raise
