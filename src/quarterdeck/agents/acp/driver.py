"""Opens sessions of an Agent Client Protocol agent.

Kept free of the SDK: an engine without a chat does not pay for its import.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.agents.acp.process import AgentProcess
from quarterdeck.agents.port import AgentSession, AgentSink, AgentUnavailableError, SessionSpec
from quarterdeck.agents.presets import Preset

if TYPE_CHECKING:
    from quarterdeck.agents.acp.session import AcpSession


@dataclass(frozen=True)
class Patience:
    """How long the driver waits for an agent, in seconds."""

    start: float = 60.0
    """For `initialize` and for the session together."""
    choose: float = 20.0
    """For a change of mode or model."""
    cancel: float = 5.0
    """From a cancel to the end of the turn; then everything of the agent is killed."""
    leave: float = 1.0
    """From the end of its input, or a SIGTERM, to the agent's end; then SIGKILL."""


class AcpDriver:
    """Implements `AgentDriver` for one preset."""

    def __init__(self, preset: Preset, patience: Patience | None = None) -> None:
        self._preset = preset
        self._patience = patience or Patience()

    async def open(self, spec: SessionSpec, sink: AgentSink) -> AgentSession:
        """Starts the agent and opens, or reopens, a session.

        A `spec.session_id` that the agent does not know any more gives a new session, and a
        line in the next turn that says so.

        Raises:
            AgentUnavailableError: not installed, no key, wrong version, or it did not start.
        """
        loading = asyncio.create_task(asyncio.to_thread(_session_class))
        try:
            process = await start_process(self._preset, spec)
        finally:
            session_class = await loading
        session = session_class(self._preset, self._patience, spec, sink)
        await session.open(process)
        return session


def _session_class() -> "type[AcpSession]":
    from quarterdeck.agents.acp.session import AcpSession

    return AcpSession


async def start_process(preset: Preset, spec: SessionSpec) -> AgentProcess:
    """Starts the agent's process in the session's directory.

    Raises:
        AgentUnavailableError: not installed, no such directory, or the system refused.
    """
    if not await asyncio.to_thread(Path(spec.working_directory).is_dir):
        raise AgentUnavailableError(f"The directory {spec.working_directory} does not exist.")
    program = await asyncio.to_thread(preset.program, spec.environment)
    if program is None:
        hint = f" Install it with: {preset.install}" if preset.install else ""
        raise AgentUnavailableError(
            f"{preset.name} is not installed: {preset.command[0]} is not on the PATH.{hint}"
        )
    return await _spawn(preset, spec, [program, *preset.arguments(spec.model)])


async def _spawn(preset: Preset, spec: SessionSpec, command: list[str]) -> AgentProcess:
    variables: Mapping[str, str] = preset.variables(
        spec.environment, spec.state_directory, spec.model, spec.key
    )
    try:
        return await AgentProcess.start(command, spec.working_directory, variables)
    except OSError as error:
        raise AgentUnavailableError(
            f"{preset.name} could not be started: {error.strerror or error}."
        ) from error
