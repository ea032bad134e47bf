"""Which agents can be used here, and why others cannot.

The version of a package is read from its `package.json` each time. Any other program is run, once
for each state of its file, in a thread, with its own home directory: agents write files where they
run, and some phone home. A caller waits for the answer shortly the first time, and never again.

A package's `package.json` also says which versions of Node it supports. With an older Node it would
end with a syntax error, which does not say what to do.
"""

import asyncio
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import AgentUnavailableError, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.local.processes import kill_group


def manifest_of(program: Path) -> dict[str, Any]:
    """Return the manifest of a program's package; empty when it is not in a package."""
    target = program.resolve()
    if "node_modules" not in target.parts:
        return {}
    for directory in target.parents:
        if directory.name == "node_modules":
            return {}
        if manifest := _read(directory / "package.json"):
            return manifest
    return {}


def _read(path: Path) -> dict[str, Any]:
    """Return a manifest; those without a version only mark a directory and do not count."""
    try:
        parsed: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    manifest = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    return manifest if isinstance(manifest.get("version"), str) else {}


_SECONDS = 5.0
"""How long a program may take to print its version."""
_OUTPUT_BYTES = 4096
_RUNNER = re.compile(r"(node|nodejs|bun|deno|npx|pnpx|bunx|uvx|pipx|python[\d.]*)\Z")
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-(?:alpha|beta|rc|preview|nightly|canary)[\w.]*)?")


@dataclass(frozen=True)
class VersionQuestion:
    """A program, the arguments that print its version, and variables for it.

    `entry`: the program only runs the agent, which these first arguments name.
    """

    program: Path
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] | None = None
    path: str = os.defpath
    entry: tuple[str, ...] = ()

    @property
    def agent(self) -> Path | None:
        """The agent's own file; None when a runner finds it by a name."""
        if not self.entry:
            return self.program
        return Path(self.entry[-1]) if self.entry[-1].startswith("/") else None

    @property
    def command(self) -> tuple[str, ...]:
        """The command that prints the version."""
        named = self.arguments[: len(self.entry)] == self.entry
        return (str(self.program), *(() if named else self.entry), *self.arguments)


def entry_of(command: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments by which a runner such as Node starts the agent.

    Empty when the program is the agent itself.
    """
    if not _RUNNER.match(Path(command[0]).name):
        return ()
    for number, argument in enumerate(command[1:], 2):
        if not argument.startswith("-"):
            return tuple(command[1:number])
    return tuple(command[1:])


class Versions:
    """Caches the versions of programs. May be used by several threads."""

    def __init__(self) -> None:
        self._futures: dict[tuple[tuple[str, ...], int, int], Future[str | None]] = {}
        self._lock = threading.Lock()

    def find(self, questions: Sequence[VersionQuestion], seconds: float) -> list[str | None]:
        """Return the version of each; None where it is not known, or not yet.

        Args:
            seconds: seconds to wait, in total, for programs that were not run before.
        """
        answers = [
            (question.agent and packaged_version(question.agent)) or self._query(question)
            for question in questions
        ]
        fresh = [answer for answer in answers if isinstance(answer, _Fresh)]
        wait([answer.future for answer in fresh], seconds)
        return [_answer(answer) for answer in answers]

    def _query(self, question: VersionQuestion) -> "_Fresh | Future[str | None] | None":
        if not question.arguments:
            return None
        try:
            state = (question.agent or question.program).stat()
        except OSError:
            return None
        key = (question.command, state.st_mtime_ns, state.st_size)
        with self._lock:
            if key in self._futures:
                return self._futures[key]
            future = self._futures[key] = Future[str | None]()
        threading.Thread(target=lambda: _fulfil(future, question), daemon=True).start()
        return _Fresh(future)


VERSIONS = Versions()
"""Of this process."""


@dataclass(frozen=True)
class _Fresh:
    """An answer that no caller has waited for yet."""

    future: Future[str | None]


def packaged_version(program: Path) -> str | None:
    """Return the version in a program's package; None when it is not in a package."""
    return version_in(manifest_of(program).get("version", ""))


def version_in(text: str) -> str | None:
    """Return the first version number in a text."""
    match = _VERSION.search(text)
    return match[0] if match else None


def _answer(answer: "str | _Fresh | Future[str | None] | None") -> str | None:
    future = answer.future if isinstance(answer, _Fresh) else answer
    if not isinstance(future, Future):
        return future
    return future.result() if future.done() else None


def _fulfil(future: Future[str | None], question: VersionQuestion) -> None:
    try:
        future.set_result(_printed_version(question))
    except OSError:
        future.set_result(None)


def _printed_version(question: VersionQuestion) -> str | None:
    """Run a program and read the start of its output. Blocking."""
    with tempfile.TemporaryDirectory(prefix="qd-version-", ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            question.command,
            cwd=home,
            env={
                "LANG": "C.UTF-8",
                **(question.variables or {}),
                "HOME": home,
                "PATH": question.path,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with process:
            try:
                assert process.stdout is not None
                return version_in(_head(process.stdout.fileno()))
            finally:
                kill_group(process.pid)


def _head(descriptor: int) -> str:
    """Return the output until its end, `_OUTPUT_BYTES`, or the time limit."""
    end, text = time.monotonic() + _SECONDS, b""
    # Not `select`, which refuses the descriptors of a service with many connections.
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while len(text) < _OUTPUT_BYTES and (remaining := end - time.monotonic()) > 0:
        if not waiting.poll(remaining * 1000):
            break
        chunk = os.read(descriptor, _OUTPUT_BYTES)
        if not chunk:
            break
        text += chunk
    return text.decode(errors="replace")


_HEAD = 4096
_BY_NODE = re.compile(rb"#!\s*\S*/env\s+(-S\s+)?node\b")
_CALL = re.compile(rb"^#!/bin/sh\n(?:export .*\n)*exec (/[^\s'\"]+) \"\$@\"\n\Z")
"""The wrapper scripts by which sandboxes start a program."""
_LEAST = re.compile(r"(\d+)(?:\.[\dx*]+)*")


@dataclass(frozen=True)
class Need:
    """A program's need of Node; `node` would run it, None when there is none."""

    least: int
    node: Path | None

    def question(self, path: str) -> VersionQuestion:
        """Return the question for Node's version."""
        return VersionQuestion(self.node or Path(), ("--version",) if self.node else (), None, path)

    def obstacle(self, name: str, version: str | None) -> str | None:
        """Return why the program cannot run; None when it can, or the version is unknown."""
        need = f"{name} needs Node {self.least} or newer"
        if self.node is None:
            return f"{need}: node is not on the PATH."
        if version is None or int(version.partition(".")[0]) >= self.least:
            return None
        return f"{need}: {self.node} is {version}. Put a newer one before it on the PATH."


def need_of(program: Path, path: str) -> Need | None:
    """Return the Node that a program needs; None when it needs none, or names no version."""
    target = _unwrapped(program.resolve())
    if not _BY_NODE.match(_node_head(target)):
        return None
    supported = str(as_object(manifest_of(target).get("engines")).get("node", ""))
    majors = [int(match[1]) for match in _LEAST.finditer(supported)]
    if not majors:
        return None
    node = shutil.which("node", path=path)
    return Need(min(majors), Path(node) if node else None)


def _unwrapped(program: Path) -> Path:
    match = _CALL.match(_node_head(program))
    return Path(match[1].decode()).resolve() if match else program


def _node_head(program: Path) -> bytes:
    try:
        with program.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def install_command(agent_id: str, preset: Preset) -> str | None:
    """Return the command that installs an agent."""
    return f"qd agents install {agent_id}" if preset.npm else preset.install


def not_installed(preset: Preset, command: str | None = None) -> str:
    """Return why an agent without a program cannot be used, and what to do."""
    ways = [way for way in dict.fromkeys((command, preset.install)) if way]
    hint = f" Install it with: {', or '.join(ways)}." if ways else ""
    return f"Not installed: {preset.command[0]} is not on the PATH.{hint}"


def no_key(preset: Preset, agent_id: str | None = None) -> str:
    """Return why an agent without a key cannot be used, and what to do."""
    named = f"No key: set the variable {preset.key_names}"
    if agent_id is None:
        return f"{named}."
    return f"{named} in an environment, or run: qd credentials set {agent_id}."


_NODE_SECONDS = 5.0
"""Seconds for Node to print its version; run once, and the agent is started without it."""


async def program_of(preset: Preset, spec: SessionSpec) -> str:
    """Return the agent's program, for a session whose directory exists.

    Raises:
        AgentUnavailableError: not installed, no such directory, or no Node that can run it.
    """
    if not await asyncio.to_thread(Path(spec.working_directory).is_dir):
        raise AgentUnavailableError(f"The directory {spec.working_directory} does not exist.")
    program = await asyncio.to_thread(preset.program, spec.environment)
    if program is None:
        hint = f" Install it with: {preset.install}" if preset.install else ""
        raise AgentUnavailableError(
            f"{preset.name} is not installed: {preset.command[0]} is not on the PATH.{hint}"
        )
    cannot_run = await asyncio.to_thread(
        _missing_node, preset, Path(program), spec.environment.get("PATH", "")
    )
    if cannot_run:
        raise AgentUnavailableError(cannot_run)
    return program


def _missing_node(preset: Preset, program: Path, path: str) -> str | None:
    need = need_of(program, path)
    if need is None:
        return None
    return need.obstacle(preset.name, VERSIONS.find([need.question(path)], _NODE_SECONDS)[0])


async def spawn(preset: Preset, spec: SessionSpec, command: Sequence[str]) -> AgentProcess:
    """Start a command in the session's directory, with the agent's variables, key and files.

    Raises:
        AgentUnavailableError: the system refused.
    """
    variables = preset.variables(spec.environment, spec.state_directory, spec.model, spec.key)
    try:
        await asyncio.to_thread(_write_files, preset, spec)
        return await AgentProcess.start(command, spec.working_directory, variables)
    except OSError as error:
        raise AgentUnavailableError(
            f"{preset.name} could not be started: {error.strerror or error}."
        ) from error


def _write_files(preset: Preset, spec: SessionSpec) -> None:
    """Write the files, but only in a sandbox: outside, the home directory is the user's."""
    home = spec.environment.get("HOME")
    if not spec.isolated or not home:
        return
    for name, text in preset.home_files.items():
        path = Path(home, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
            file.write(text)
