"""Starts codex's process."""

from quarterdeck.agents.port import SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.process import AgentProcess
from quarterdeck.agents.starting import program_of, spawn

_IN_MEMORY = ("-c", 'cli_auth_credentials_store="ephemeral"')
"""A key that codex is given is not written into its home, where everything in the workspace could
read it."""


async def start_process(preset: Preset, spec: SessionSpec, key: str | None) -> AgentProcess:
    """Starts codex in the session's directory.

    Raises:
        AgentUnavailableError: not installed, no such directory, or the system refused.
    """
    program = await program_of(preset, spec)
    words = [*preset.arguments(spec.model), *(_IN_MEMORY if key else ())]
    return await spawn(preset, spec, [program, *words])
