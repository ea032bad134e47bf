"""Opening and keeping one chat's agent session, from `open` to the process's end."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.agents.port import AgentCatalog, AgentSession, AgentSink, SessionSpec
from quarterdeck.engine.chat_state import ChatState
from quarterdeck.wire.agents import BUILTIN
from quarterdeck.wire.own_agents import AGENTS_VARIABLE, KnownAgents, OwnAgent
from quarterdeck.wire.setup import McpServer

logger = logging.getLogger(__name__)

CatalogFactory = Callable[[], AgentCatalog]


@dataclass(frozen=True)
class AgentPlace:
    """Where agents run. The catalog is made at the first use: drivers are slow to import."""

    catalog: CatalogFactory
    working_directory: Path
    state_directory: Path
    environment: Mapping[str, str]
    credentials: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Keys by agent. Looked at when an agent starts: a claim of the workspace may change them."""
    mcp_servers: Sequence[McpServer] = ()
    isolated: bool = True
    """Whether this engine runs in a sandbox."""
    own_agents: Mapping[str, OwnAgent] = field(default_factory=dict[str, OwnAgent])

    def environment_of(self, agent_id: str) -> Mapping[str, str]:
        """The variables of an agent's process; the built-in one is told which agents there are."""
        if agent_id != BUILTIN:
            return self.environment
        known = KnownAgents(own=dict(self.own_agents), keyed=sorted(self.credentials))
        return {**self.environment, AGENTS_VARIABLE: known.model_dump_json(exclude_defaults=True)}


class AgentDesk:
    """The session of one chat; opened when first needed, again after it was dropped."""

    def __init__(self, place: AgentPlace, chat: ChatState, sink: AgentSink) -> None:
        self._place = place
        self._chat = chat
        self._sink = sink
        self.session: AgentSession | None = None

    async def open(self, model: str | None) -> AgentSession:
        """The open session; a new one goes on where the chat's last one was.

        Raises:
            AgentError: the agent cannot be used or did not start.
        """
        if self.session is None:
            driver = self._place.catalog().driver(self._chat.record.provider)
            self.session = await driver.open(self._spec(model), self._sink)
        return self.session

    async def drop(self) -> None:
        """Ends the agent's process; the next `open` starts another."""
        session, self.session = self.session, None
        if session is None:
            return
        try:
            await session.close()
        except Exception:
            logger.exception("an agent's session could not be closed")

    def _spec(self, model: str | None) -> SessionSpec:
        chat = self._chat.record
        directory = self._place.state_directory / str(chat.id)
        directory.mkdir(parents=True, exist_ok=True)
        return SessionSpec(
            chat_id=str(chat.id),
            working_directory=str(self._place.working_directory),
            state_directory=str(directory),
            environment=self._place.environment_of(chat.provider),
            session_id=self._chat.session_id,
            model=model,
            key=self._place.credentials.get(chat.provider),
            mcp_servers=tuple(self._place.mcp_servers),
            isolated=self._place.isolated,
        )
