"""Runs the shell blocks of a message."""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, STDOUT

from quarterdeck.agents.output import SHOWN_LIVE, OutputTail
from quarterdeck.agents.processes import Tree, new_mark
from quarterdeck.local.files import write_file

SHELLS = {"": "bash", "sh": "sh", "bash": "bash", "shell": "bash", "console": "bash"}
"""Languages that are run, and the shell that runs each."""

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})\s*(?P<language>[^\s`{]*)(?P<rest>[^`]*)$")
_TITLE_WIDTH = 200


@dataclass(frozen=True)
class ShellBlock:
    """One fenced block that can be run."""

    shell: str
    script: str

    @property
    def title(self) -> str:
        """The first line that is not a comment."""
        lines = [line.strip() for line in self.script.splitlines() if line.strip()]
        commands = [line for line in lines if not line.startswith("#")] or lines
        return commands[0][:_TITLE_WIDTH]


@dataclass(frozen=True)
class Parsed:
    """The parts of a message: blocks to run, and the languages of blocks that are not run."""

    blocks: list[ShellBlock]
    skipped: list[str]


def parse(message: str) -> Parsed:
    """Return the blocks of a message in order. A fence that is never closed goes to the end."""
    parsed = Parsed([], [])
    lines = iter(message.splitlines())
    for line in lines:
        if not (fence := _FENCE.match(line)):
            continue
        body: list[str] = []
        for inner in lines:
            if _closes(inner, fence["mark"]):
                break
            body.append(inner)
        _add(parsed, fence["language"].lower(), body)
    return parsed


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and set(stripped) == {mark[0]}


def _add(parsed: Parsed, language: str, body: list[str]) -> None:
    if language not in SHELLS:
        parsed.skipped.append(language)
        return
    script = "\n".join(_commands(body) if language == "console" else body)
    if script.strip():
        parsed.blocks.append(ShellBlock(SHELLS[language], script + "\n"))


def _commands(body: list[str]) -> list[str]:
    """Return the commands in a console block with prompts; the rest is output."""
    commands = [line.strip()[2:] for line in body if line.strip().startswith("$ ")]
    return commands or body


Show = Callable[[str], Awaitable[None]]

_CHUNK = 1 << 16
_GRACE = 0.5
_SETTLE = 0.1
_SETTLE_ROUNDS = 5
_MARK = "QUARTERDECK_BLOCK"
# The script comes from a file: a command line is limited in length and visible to other users.
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
    """Runs blocks one after the other; `cancel` ends the running block and refuses further ones."""

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
        """Start a turn: an earlier cancel no longer counts."""
        self._cancelled.clear()

    def cancel(self) -> None:
        """End the running block with everything it started."""
        self._cancelled.set()

    async def run(self, block: ShellBlock, show: Show) -> Ran:
        """Run a block to its end. Processes that it leaves in the background keep running.

        Raises:
            OSError: no shell, or the working directory is missing.
        """
        script = block.script.encode(errors="surrogateescape")
        await asyncio.to_thread(write_file, self._script, script, durable=False)
        started = time.monotonic()
        tree = await self._start(block)
        output = OutputTail()
        reading = asyncio.create_task(_read(tree, output))
        showing = asyncio.create_task(_keep_showing(output, show))
        left_open = False
        try:
            await self._wait_for_end(tree)
            if not self.cancelled:
                left_open = await _is_left_open(reading, output)
        finally:
            await _stop(showing)
            await self._finish(tree, reading, left_open)
        code = None if self.cancelled else _exit_code(tree.exit_status)
        duration = round((time.monotonic() - started) * 1000)
        return Ran(code, duration, output.text(), output.truncated)

    async def close(self) -> None:
        """End processes that blocks left in the background."""
        for tree, reading in self._background:
            await tree.end(_GRACE)
            await _stop(reading)
        self._background.clear()

    async def _start(self, block: ShellBlock) -> Tree:
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

    async def _wait_for_end(self, tree: Tree) -> None:
        """Wait for the block's end, or for a cancel."""
        waits = [asyncio.create_task(tree.exited()), asyncio.create_task(self._cancelled.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                await _stop(wait)

    async def _finish(self, tree: Tree, reading: asyncio.Task[None], left_open: bool) -> None:
        if left_open:
            # Keep reading, and discard: a closed pipe would kill a background program.
            self._background.append((tree, reading))
            return
        if tree.exit_status is None or self.cancelled:
            await tree.end(_GRACE)
        await _stop(reading)
        tree.release()


async def _read(tree: Tree, output: OutputTail) -> None:
    while chunk := await tree.stdout.read(_CHUNK):
        output.add(chunk)


async def _keep_showing(output: OutputTail, show: Show) -> None:
    shown = 0
    while True:
        await asyncio.sleep(output.pause())
        if output.total != shown:
            shown = output.total
            await show(output.text(SHOWN_LIVE))


async def _is_left_open(reading: asyncio.Task[None], output: OutputTail) -> bool:
    """Read the rest of the pipe after the shell's end; return whether another process holds it."""
    for _ in range(_SETTLE_ROUNDS):
        before = output.total
        await asyncio.wait([reading], timeout=_SETTLE)
        if reading.done() or output.total == before:
            break
    return not reading.done()


async def _stop(task: "asyncio.Task[object] | asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _exit_code(status: int | None) -> int | None:
    """Return the exit code by the shell's convention: 128 and the signal."""
    return 128 - status if status is not None and status < 0 else status


_HEAD = re.compile(r"^## Check$", re.MULTILINE)
_ID = re.compile(r"^- id: (\S+)$", re.MULTILINE)
_TOKEN = re.compile(r"^- token: (\S+)$", re.MULTILINE)


def check_variables(message: str) -> dict[str, str]:
    """Return `QD_CHECK_ID` and `QD_CHECK_TOKEN` of the message's last section, for `qd check`."""
    heads = list(_HEAD.finditer(message))
    if not heads:
        return {}
    section = message[heads[-1].end() :]
    matches = {"QD_CHECK_ID": _ID.search(section), "QD_CHECK_TOKEN": _TOKEN.search(section)}
    if not all(matches.values()):
        return {}
    return {name: match[1] for name, match in matches.items() if match is not None}
