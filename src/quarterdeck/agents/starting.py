"""From a preset to a running process, for the drivers of every protocol."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from quarterdeck.agents.node import need_of
from quarterdeck.agents.port import AgentUnavailableError, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.agents.versions import VERSIONS

_NODE_PATIENCE = 5.0
"""Seconds for Node to say its version; asked once, and the agent is started without an answer."""


async def program_of(preset: Preset, spec: SessionSpec) -> str:
    """The agent's program, for a session whose directory is there.

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
    return need.obstacle(preset.name, VERSIONS.find([need.question(path)], _NODE_PATIENCE)[0])


async def spawn(preset: Preset, spec: SessionSpec, command: Sequence[str]) -> AgentProcess:
    """Starts a command in the session's directory, with the agent's variables, key and files.

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
    """Outside a sandbox the home is a person's own, where we write nothing."""
    home = spec.environment.get("HOME")
    if not spec.isolated or not home:
        return
    for name, text in preset.home_files.items():
        path = Path(home, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
            file.write(text)
