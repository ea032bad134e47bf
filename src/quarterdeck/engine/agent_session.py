"""The session of a chat's agent.

Starting processes: what their variables may take, and how a failed start is reported.

Linux limits the arguments and variables of a process together. Each variable may be within its own
limit and all of them still too large; then no process can be started.
"""

import asyncio
import errno
import logging
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.agents.port import (
    SESSION_FILE,
    AgentCatalog,
    AgentSession,
    AgentSink,
    SelfStartingSession,
    SessionSpec,
)
from quarterdeck.engine.chat_state import EngineChat
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.git_operations import keep_checkpoints
from quarterdeck.local.files import write_file
from quarterdeck.wire.agents import AGENTS_VARIABLE, BUILTIN, KnownAgents, OwnAgent
from quarterdeck.wire.engine import DeliverMessage
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.inside import CHAT_VARIABLE, CO_AUTHOR_VARIABLE
from quarterdeck.wire.permissions import Permissions
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
    """Keys by agent. Read when an agent starts: a claim of the workspace may change them."""
    mcp_servers: Sequence[McpServer] = ()
    isolated: bool = True
    """Whether this engine runs in a sandbox."""
    repositories: Sequence[EngineRepository] = ()
    """Checkpoints are made of them when a turn starts."""
    own_agents: Mapping[str, OwnAgent] = field(default_factory=dict[str, OwnAgent])
    co_author: str | None = None
    system_prompt: str | None = None
    """Instructions of the environment; `setup` writes them into the files that known agents read."""
    permissions: Callable[[], Permissions] = Permissions
    """Returns the permission policy that applies at the moment."""
    workspace: Path | None = None
    """The directory of all repositories."""

    def preamble(self, agent_id: str) -> str | None:
        """Return what precedes the first message of a session of an agent without such a file."""
        own = self.own_agents.get(agent_id)
        if not self.system_prompt or own is None or own.instructions:
            return None
        return f"Instructions of the environment that you work in:\n\n{self.system_prompt.strip()}"

    def environment_of(self, agent_id: str) -> Mapping[str, str]:
        """Return the variables of an agent's process; for the built-in one they list the agents."""
        if agent_id != BUILTIN:
            return self.environment
        known = KnownAgents(own=dict(self.own_agents), keyed=sorted(self.credentials))
        return {**self.environment, AGENTS_VARIABLE: known.model_dump_json(exclude_defaults=True)}


class AgentSessionHolder:
    """The session of one chat; opened when first needed, and again after it was dropped."""

    def __init__(
        self,
        place: AgentPlace,
        chat: EngineChat,
        sink: AgentSink,
        on_own_turn: Callable[[], None],
    ) -> None:
        self._place = place
        self._chat = chat
        self._sink = sink
        self._on_own_turn = on_own_turn
        self.session: AgentSession | None = None
        self._noted: str | None = None

    @property
    def own_turn_waits(self) -> bool:
        """Whether the agent began to work by itself, and no turn has shown it yet."""
        return isinstance(self.session, SelfStartingSession) and self.session.own_turn_waits

    @property
    def _directory(self) -> Path:
        return self._place.state_directory / str(self._chat.record.id)

    @property
    def preamble(self) -> str | None:
        """What precedes the first message of a new session; see `AgentPlace.preamble`."""
        return self._place.preamble(self._chat.record.provider)

    async def open(self, model: str | None) -> AgentSession:
        """Return the open session; a new one continues the chat's last one.

        Raises:
            AgentError: the agent cannot be used or did not start.
        """
        if self.session is None:
            driver = self._place.catalog().driver(self._chat.record.provider)
            spec = await asyncio.to_thread(self._spec, model)
            self.session = await driver.open(spec, self._sink)
        if self.session.id != self._noted:
            self._noted = self.session.id
            await asyncio.to_thread(self._note, self._noted)
        return self.session

    def _note(self, session_id: str) -> None:
        """Store the session's id next to the agent's files, so that a fork can continue it."""
        try:
            write_file(self._directory / SESSION_FILE, session_id, mode=None, durable=False)
        except OSError as error:
            logger.warning("the id of an agent's session could not be stored: %s", error)

    def _inherited_session(self) -> str | None:
        """Return the session id that was put into the directory of a fork's chat."""
        try:
            return (self._directory / SESSION_FILE).read_text("utf-8") or None
        except (OSError, ValueError):
            return None

    async def keep_checkpoints(self, message: DeliverMessage) -> None:
        """Make checkpoints of the files before the agent receives a message."""
        place = self._place
        text = message.text if message.origin is None else "A turn that the agent began"
        await keep_checkpoints(place.repositories, place.environment, message.message_id, text)

    async def drop(self) -> None:
        """End the agent's process; the next `open` starts another."""
        session, self.session = self.session, None
        if session is None:
            return
        try:
            await session.close()
        except Exception:
            logger.exception("an agent's session could not be closed")

    def _spec(self, model: str | None) -> SessionSpec:
        chat = self._chat.record
        directory = self._directory
        directory.mkdir(parents=True, exist_ok=True)
        return SessionSpec(
            chat_id=str(chat.id),
            working_directory=str(self._place.working_directory),
            state_directory=str(directory),
            environment={
                **self._place.environment_of(chat.provider),
                CHAT_VARIABLE: str(chat.id),
                **({CO_AUTHOR_VARIABLE: author} if (author := self._place.co_author) else {}),
            },
            session_id=self._chat.session_id or self._inherited_session(),
            model=model,
            key=self._place.credentials.get(chat.provider),
            mcp_servers=tuple(self._place.mcp_servers),
            isolated=self._place.isolated,
            permissions=self._place.permissions,
            workspace=str(self._place.workspace) if self._place.workspace else None,
            on_own_turn=self._on_own_turn,
        )


_LEAST, _MOST = 128 << 10, 6 << 20
"""Bytes that Linux gives at least and at most; between them it is a quarter of the stack."""
_FOR_ARGUMENTS = 16 << 10
"""Bytes of it that are reserved for arguments."""
_EACH = 10
"""Bytes that a variable takes beyond its name and value: `=`, a terminator and a pointer."""

_ADVICE = "Remove some, or move large values to files of the environment, then restart the replica."


def too_large(environment: Mapping[str, str]) -> str | None:
    """Return why no process can be started with these variables, and what to do."""
    size = sum(
        len(os.fsencode(key)) + len(os.fsencode(value)) + _EACH
        for key, value in environment.items()
    )
    room = _room() - _FOR_ARGUMENTS
    if size <= room:
        return None
    return (
        f"The environment's variables are together too large for a process: {size:,} bytes, "
        f"where at most {room:,} fit. {_ADVICE}"
    )


def not_started(sentence: str, error: Exception) -> EngineRefusedError:
    """Return the refusal of a call whose process could not be started."""
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        reason = "The environment's variables are together too large for a process."
        return EngineRefusedError(ErrorCode.CONFLICT, f"{sentence} {reason} {_ADVICE}", str(error))
    return EngineRefusedError(ErrorCode.INTERNAL_ERROR, sentence, str(error))


def _room() -> int:
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _MOST if stack == resource.RLIM_INFINITY else min(max(stack // 4, _LEAST), _MOST)
