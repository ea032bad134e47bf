"""Opens sessions of an Agent Client Protocol agent.

Kept free of the SDK: an engine without a chat does not pay for its import.
"""

import asyncio
from typing import TYPE_CHECKING

from quarterdeck.agents.acp.mcp import write_file
from quarterdeck.agents.acp.reopening import clear_twins, let_minute_pass
from quarterdeck.agents.port import AgentSession, AgentSink, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.patience import Patience
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.agents.starting import program_of, spawn

if TYPE_CHECKING:
    from quarterdeck.agents.acp.session import AcpSession


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
    program = await program_of(preset, spec)
    await let_minute_pass(preset, spec)
    await asyncio.to_thread(clear_twins, preset, spec)
    words = [*preset.arguments(spec.model), *await asyncio.to_thread(_mcp_arguments, preset, spec)]
    return await spawn(preset, spec, [program, *words])


def _mcp_arguments(preset: Preset, spec: SessionSpec) -> list[str]:
    words = preset.traps.stdio_mcp_arguments
    servers = [server for server in spec.mcp_servers if server.transport == "stdio"]
    if not words or not servers:
        return []
    file = str(write_file(servers, spec.state_directory))
    return [word.replace("{file}", file) for word in words]
