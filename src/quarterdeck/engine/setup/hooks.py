r"""Runs the hooks of a boot in the contract's order, and journals their progress.

hooks.started -> (hooks.progress ... hooks.status with the hook's log) ... -> hooks.completed
                                                                          \-> hooks.failed

The environment's hooks come first, in the order they were given, then each repository's own:
`.quarterdeck/hooks/warm.sh` and `.quarterdeck/hooks/start.sh`, run in the repository. The others
run in the workspace's root. The first that fails ends the boot.
"""

import asyncio
import codecs
import os
import subprocess
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.engine.exec import wait_or_kill
from quarterdeck.engine.journal import (
    Journal,
    JournalDraft,
    JournalNote,
    event,
    note,
    payload_of_line,
)
from quarterdeck.engine.setup.home import SetupError
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.engine import EngineConfig
from quarterdeck.wire.events import EventType, HooksChanged
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT, HookKind, HookLog

_HOOK, _WARMED, _CLAIMED = "hook", "warmed", "claimed"
_ASLEEP, _AWAKE = "asleep", "awake"


class SetupMemory:
    """Earlier boots as the journal has them; `visit` reads a line, the running boot updates it.

    #hook       a warm hook that succeeded, written together with its log
    #warmed     all of them
    #claimed    the workspace left its pool
    #asleep     the engine ended because it was unused, and #awake its next start
    """

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.warmed = False
        self.claimed = False
        self.asleep = False

    def visit(self, type: str, line: bytes) -> None:
        """Read one line of the journal."""
        match type:
            case "#hook":
                self.done.add(payload_of_line(line)["name"])
            case "#warmed":
                self.warmed = True
            case "#claimed":
                self.claimed = True
            case "#asleep" | "#awake":
                self.asleep = type == "#asleep"
            case _:
                pass


def hook_done(name: str) -> JournalNote:
    """Return the note of a warm hook that succeeded."""
    return note(_HOOK, {"name": name})


def all_warmed() -> JournalNote:
    """Return the note that all warm hooks succeeded."""
    return note(_WARMED, {})


def was_claimed() -> JournalNote:
    """Return the note that the workspace has its owner."""
    return note(_CLAIMED, {})


def rests(asleep: bool) -> JournalNote:
    """Return the note that the engine goes to sleep, or is awake again."""
    return note(_ASLEEP if asleep else _AWAKE, {})


_READ_BYTES = 1 << 16
_READS_A_TURN = 8
_READS_AT_END = 64
_PIECE = 16_384
"""Most characters passed on at once."""


class HookOutput:
    """Reads a pipe. After `finish` it reads and discards until all writers have closed it.

    A hook may leave a server running; with the pipe closed, the server's next line would kill it.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept: deque[str] = deque()
        self._kept_chars = 0
        self._unread: deque[str] = deque()
        self._passed_on = 0
        self._finished = False
        self._open = True
        self._news = asyncio.Event()
        self.total = 0
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    @property
    def text(self) -> str:
        """The last characters."""
        return "".join(self._kept)[-HOOK_OUTPUT_LIMIT:]

    @property
    def truncated(self) -> bool:
        return self.total > HOOK_OUTPUT_LIMIT

    async def piece(self) -> str | None:
        """Return the output since the last call, once there is some; None at the end.

        In total it returns no more than a log keeps, even when a hook prints without end.
        """
        while not self._unread:
            if self._finished:
                return None
            self._news.clear()
            await self._news.wait()
        text = "".join(self._unread)
        self._unread.clear()
        if len(text) > _PIECE:
            self._unread.append(text[_PIECE:])
        return text[:_PIECE]

    def finish(self) -> None:
        """Note that the hook has ended and read the rest of the pipe."""
        for _ in range(_READS_AT_END):
            if not self._read_once():
                break
        self._take(self._decoder.decode(b"", final=True))
        self._finished = True
        self._news.set()

    def close(self) -> None:
        """Stop reading."""
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _read(self) -> None:
        for _ in range(_READS_A_TURN):
            if not self._read_once():
                return

    def _read_once(self) -> bool:
        if not self._open:
            return False
        try:
            chunk = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self.close()
            return False
        if not self._finished:
            self._take(self._decoder.decode(chunk))
        return True

    def _take(self, text: str) -> None:
        if not text:
            return
        self.total += len(text)
        self._kept.append(text)
        self._kept_chars += len(text)
        while self._kept_chars - len(self._kept[0]) >= HOOK_OUTPUT_LIMIT:
            self._kept_chars -= len(self._kept.popleft())
        if (room := HOOK_OUTPUT_LIMIT - self._passed_on) > 0:
            self._passed_on += len(text[:room])
            self._unread.append(text[:room])
            self._news.set()


OnOutput = Callable[[str], Awaitable[None]]

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
    """Runs hooks one at a time. `close` stops reading output of processes they left running."""

    def __init__(self, scripts: Path, environment: Mapping[str, str], seconds: float) -> None:
        self._scripts = scripts
        self._environment = environment
        self._seconds = seconds
        self._outputs: list[HookOutput] = []

    async def run(self, hook: Hook, on_output: OnOutput) -> HookLog:
        """Run a hook to its end, or stop it with its processes at the time limit.

        `on_output` receives its output in pieces. Being cancelled stops the hook as well.
        """
        executed_at, started = utc_now(), time.monotonic()
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
        forwarding = asyncio.create_task(_forward(output, on_output), name="hook output")
        exit_code: int | None = _NOT_STARTED
        try:
            if process is not None:
                exit_code = await wait_or_kill(process, self._seconds)
        finally:
            output.finish()
            await _settle(forwarding)
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
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    def close(self) -> None:
        """Stop reading output."""
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
                await wait_or_kill(starting.result(), 0)
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


def interpreter_of(script: str) -> list[str]:
    """Return the command of a `#!` line, else a shell."""
    first = script.split("\n", 1)[0]
    if first.startswith("#!") and (command := first[2:].strip().split(None, 1)):
        return command
    return [next((shell for shell in _SHELLS if Path(shell).exists()), _SHELLS[-1])]


async def _forward(output: HookOutput, on_output: OnOutput) -> None:
    while (piece := await output.piece()) is not None:
        await on_output(piece)


async def _settle(forwarding: "asyncio.Task[None]") -> None:
    try:
        await forwarding
    except asyncio.CancelledError:
        forwarding.cancel()
        raise


REPOSITORY_HOOKS = ".quarterdeck/hooks"
SCRIPT_LIMIT = 1 << 20
_LAST_LINES = 5


class Hooks:
    """The hooks of one workspace. `running` says whether one runs now."""

    def __init__(
        self, config: EngineConfig, runner: HookRunner, journal: Journal, memory: SetupMemory
    ) -> None:
        self._config = config
        self._runner = runner
        self._journal = journal
        self._memory = memory
        self._completed: list[str] = []
        self._now: list[str] = []

    @property
    def running(self) -> bool:
        return bool(self._now)

    async def warm(self) -> None:
        """Run the warm hooks that have not succeeded here yet.

        Raises:
            SetupError: one failed; the rest did not run.
        """
        if self._memory.warmed:
            return
        hooks = await asyncio.to_thread(self._hooks, HookKind.WARM)
        await self._run([hook for hook in hooks if hook.name not in self._memory.done])
        await self._journal.append(all_warmed(), durable=True)
        self._memory.warmed = True

    async def start(self) -> None:
        """Run the start hooks.

        Raises:
            SetupError: one failed; the rest did not run.
        """
        await self._run(await asyncio.to_thread(self._hooks, HookKind.START))

    def _hooks(self, kind: HookKind) -> list[Hook]:
        root, setup = Path(self._config.workspace_dir), self._config.setup
        own = [
            Hook(kind, hook.name, hook.script, root) for hook in setup.hooks if hook.kind == kind
        ]
        if setup.repository_hooks:
            own += repository_hooks(kind, self._config.repositories)
        return own

    async def _run(self, hooks: Sequence[Hook]) -> None:
        if not hooks:
            return
        self._completed = []
        self._now = [hooks[0].name]
        try:
            await self._report(EventType.HOOKS_STARTED)
            for hook in hooks:
                await self._run_hook(hook)
        finally:
            self._now = []
        await self._report(EventType.HOOKS_COMPLETED)

    async def _run_hook(self, hook: Hook) -> None:
        self._now = [hook.name]

        async def progress(output: str) -> None:
            await self._report(EventType.HOOKS_PROGRESS, hook_name=hook.name, output=output)

        log = await self._runner.run(hook, progress)
        self._now = []
        notes: list[JournalNote] = []
        if log.exit_code == 0:
            self._completed.append(hook.name)
            if hook.kind == HookKind.WARM:
                notes.append(hook_done(hook.name))
                self._memory.done.add(hook.name)
        status = self._draft(EventType.HOOKS_STATUS, hook_name=hook.name, log=log)
        await self._journal.append(*notes, status, durable=True)
        if log.exit_code != 0:
            failure = failure_of(log)
            await self._report(EventType.HOOKS_FAILED, hook_name=hook.name, error=failure)
            raise SetupError(failure)

    async def _report(self, type: EventType, **more: object) -> None:
        await self._journal.append(self._draft(type, **more))

    def _draft(self, type: EventType, **more: object) -> JournalDraft:
        changed = HooksChanged.model_validate(
            {"running": list(self._now), "completed": list(self._completed), **more}
        )
        return event(type, changed.model_dump(mode="json", by_alias=True, exclude_unset=True))


def repository_hooks(kind: HookKind, repositories: Sequence[EngineRepository]) -> list[Hook]:
    """Return the repositories' own hooks, in the repositories' order. Blocking."""
    hooks: list[Hook] = []
    for repository in repositories:
        path = Path(repository.path, REPOSITORY_HOOKS, f"{kind.value}.sh")
        if not path.is_file():
            continue
        with path.open("rb") as file:
            script = file.read(SCRIPT_LIMIT).decode(errors="replace")
        hooks.append(Hook(kind, f"repository:{repository.name}", script, Path(repository.path)))
    return hooks


def failure_of(log: HookLog) -> str:
    """Return a sentence that says which hook failed, how, and its last output."""
    result = "timed out and was stopped" if log.timed_out else f"ended with code {log.exit_code}"
    lines = [line for line in log.output.splitlines() if line.strip()][-_LAST_LINES:]
    tail = " Its last lines: " + " | ".join(lines)[-1000:] if lines else ""
    return f"The {log.hook_type} hook {log.hook_name!r} {result}.{tail}"
