"""Opens sessions of codex."""

from quarterdeck.agents.codex.session import CodexSession
from quarterdeck.agents.port import AgentSession, AgentSink, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.recorder import Timeouts


class CodexDriver:
    """Implements `AgentDriver` for a preset that speaks codex's app-server protocol."""

    def __init__(self, preset: Preset, timeouts: Timeouts | None = None) -> None:
        self._preset = preset
        self._timeouts = timeouts or Timeouts()

    async def open(self, spec: SessionSpec, sink: AgentSink) -> AgentSession:
        """Start codex and open, or reopen, a thread.

        When codex no longer knows `spec.session_id`, a new thread is opened, and a line in the
        next turn says so.

        Raises:
            AgentUnavailableError: not installed, no key, or it did not start.
        """
        session = CodexSession(self._preset, self._timeouts, spec, sink)
        await session.open(await session.start())
        return session
