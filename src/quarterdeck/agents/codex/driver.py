"""Opens sessions of codex."""

from quarterdeck.agents.codex.session import CodexSession
from quarterdeck.agents.port import AgentSession, AgentSink, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.patience import Patience


class CodexDriver:
    """Implements `AgentDriver` for a preset that speaks codex's app-server protocol."""

    def __init__(self, preset: Preset, patience: Patience | None = None) -> None:
        self._preset = preset
        self._patience = patience or Patience()

    async def open(self, spec: SessionSpec, sink: AgentSink) -> AgentSession:
        """Starts codex and opens, or reopens, a thread.

        A `spec.session_id` that codex does not know any more gives a new thread, and a line in
        the next turn that says so.

        Raises:
            AgentUnavailableError: not installed, no key, or it did not start.
        """
        session = CodexSession(self._preset, self._patience, spec, sink)
        await session.open(await session.start())
        return session
