"""Runs one block in a shell and shows its output while it comes."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, STDOUT

from quarterdeck.agents.builtin.blocks import Block
from quarterdeck.agents.builtin.files import write_private
from quarterdeck.agents.output import SHOWN_LIVE, Output
from quarterdeck.agents.processes import Tree, new_mark

Show = Callable[[str], Awaitable[None]]

_CHUNK = 1 << 16
_GRACE = 0.5
_SETTLE = 0.1
_SETTLE_ROUNDS = 5
_MARK = "QUARTERDECK_BLOCK"
# The script comes from a file: a command line has a length limit and everyone can read it.
# Evaluated rather than run from there, so that messages say "bash: line 2", not a long path.
_EVALUATE = 'eval "set --; $(cat -- "$1")"'


@dataclass(frozen=True)
class Ran:
    """How a block ended. `exit_code` is None when it was canceled."""

    exit_code: int | None
    duration_ms: int
    text: str
    truncated: bool


class Runner:
    """Runs blocks one after the other; `cancel` ends what runs and refuses what would follow."""

    def __init__(self, directory: str, script: Path) -> None:
        self._directory = directory
        self._script = script
        self.variables: dict[str, str] = {}
        """Added to the environment of every block."""
        self._cancelled = asyncio.Event()
        self._background: list[tuple[Tree, asyncio.Task[None]]] = []

    @property
    def cancelled(self) -> bool:
        """Whether the running turn was canceled."""
        return self._cancelled.is_set()

    def begin(self) -> None:
        """Starts a turn: an earlier cancel no longer counts."""
        self._cancelled.clear()

    def cancel(self) -> None:
        """Ends the running block with everything it started."""
        self._cancelled.set()

    async def run(self, block: Block, show: Show) -> Ran:
        """Runs a block to its end. What it leaves in the background goes on.

        Raises:
            OSError: no shell, or the working directory is gone.
        """
        await asyncio.to_thread(write_private, self._script, block.script)
        started = time.monotonic()
        tree = await self._start(block)
        output = Output()
        reading = asyncio.create_task(_read(tree, output))
        showing = asyncio.create_task(_keep_showing(output, show))
        kept = False
        try:
            await self._ended(tree)
            if not self.cancelled:
                kept = await _left_open(reading, output)
        finally:
            await _stopped(showing)
            await self._put_away(tree, reading, kept)
        code = None if self.cancelled else _exit_code(tree.exit_status)
        duration = round((time.monotonic() - started) * 1000)
        return Ran(code, duration, output.text(), output.truncated)

    async def close(self) -> None:
        """Ends what blocks left in the background."""
        for tree, reading in self._background:
            await tree.end(_GRACE)
            await _stopped(reading)
        self._background.clear()

    async def _start(self, block: Block) -> Tree:
        environment = {"PYTHONUNBUFFERED": "1", **os.environ, **self.variables}
        command = [block.shell, "-e", "-c", _EVALUATE, block.shell, str(self._script)]
        start = Tree.start
        mark = new_mark(_MARK)
        try:
            return await start(
                command, self._directory, environment, mark, stdin=DEVNULL, stderr=STDOUT
            )
        except FileNotFoundError:
            command = ["sh", *command[1:4], "sh", str(self._script)]
            return await start(
                command, self._directory, environment, mark, stdin=DEVNULL, stderr=STDOUT
            )

    async def _ended(self, tree: Tree) -> None:
        """Returns at the block's own end, or at a cancel."""
        waits = [asyncio.create_task(tree.exited()), asyncio.create_task(self._cancelled.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                await _stopped(wait)

    async def _put_away(self, tree: Tree, reading: asyncio.Task[None], kept: bool) -> None:
        if kept:
            # Read on, to nowhere: a background program must not die of a closed pipe.
            self._background.append((tree, reading))
            return
        if tree.exit_status is None or self.cancelled:
            await tree.end(_GRACE)
        await _stopped(reading)
        tree.release()


async def _read(tree: Tree, output: Output) -> None:
    while chunk := await tree.stdout.read(_CHUNK):
        output.add(chunk)


async def _keep_showing(output: Output, show: Show) -> None:
    shown = 0
    while True:
        await asyncio.sleep(output.pause())
        if output.total != shown:
            shown = output.total
            await show(output.text(SHOWN_LIVE))


async def _left_open(reading: asyncio.Task[None], output: Output) -> bool:
    """After the shell's end: reads what is still in the pipe; whether someone else holds it."""
    for _ in range(_SETTLE_ROUNDS):
        before = output.total
        await asyncio.wait([reading], timeout=_SETTLE)
        if reading.done() or output.total == before:
            break
    return not reading.done()


async def _stopped(task: "asyncio.Task[object] | asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _exit_code(status: int | None) -> int | None:
    """The shell's own convention: 128 and the signal for what a signal ended."""
    return 128 - status if status is not None and status < 0 else status
