"""The built-in agent's side of the Agent Client Protocol."""

import asyncio
from collections.abc import Sequence
from typing import Any

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    TextContentBlock,
)

from quarterdeck import __version__
from quarterdeck.agents.builtin.runner import Runner
from quarterdeck.agents.builtin.sessions import Session, SessionStore, UnknownSessionError
from quarterdeck.agents.builtin.turn import Turn, Update

MODES = [
    SessionMode(id="default", name="Default", description="Run the blocks"),
    SessionMode(id="plan", name="Plan", description="Say what would run, run nothing"),
]


class BuiltinAgent:
    """Sessions of the built-in agent. Each keeps its own runner, so turns do not meet."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._client: Client | None = None
        self._sessions: dict[str, tuple[Session, Runner]] = {}

    def on_connect(self, conn: Client) -> None:
        """Keeps the way back to the client."""
        self._client = conn

    async def close(self) -> None:
        """Ends everything that blocks left running."""
        for _, runner in self._sessions.values():
            await runner.close()

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Says what the agent can do."""
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True),
            agent_info=Implementation(
                name="quarterdeck-builtin", title="Built-in", version=__version__
            ),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Opens a session and stores it."""
        session = await asyncio.to_thread(self._store.create, cwd)
        self._keep(session)
        return NewSessionResponse(session_id=session.id, modes=_modes(session))

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """Opens a stored session and tells its history again."""
        try:
            session = await asyncio.to_thread(self._store.load, session_id)
        except UnknownSessionError as error:
            raise RequestError.resource_not_found(session_id) from error
        session.directory = cwd
        self._keep(session)
        for update in session.history:
            await self._send(session, update)
        return LoadSessionResponse(modes=_modes(session))

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> SetSessionModeResponse:
        """Changes between running and planning."""
        session, _runner = self._session(session_id)
        if mode_id not in [mode.id for mode in MODES]:
            raise RequestError.invalid_params({"details": f"There is no mode {mode_id!r}."})
        session.mode = mode_id
        await asyncio.to_thread(self._store.save, session)
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        """Runs one turn."""
        session, runner = self._session(session_id)
        runner.begin()

        async def send(update: Update) -> None:
            await self._send(session, update)

        message = "\n".join(part.text for part in prompt if isinstance(part, TextContentBlock))
        await Turn(session, self._store, runner, send).run(message)
        return PromptResponse(stop_reason="cancelled" if runner.cancelled else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Ends the running turn."""
        if session_id in self._sessions:
            self._session(session_id)[1].cancel()

    async def _send(self, session: Session, update: Any) -> None:
        if self._client is not None:
            await self._client.session_update(session_id=session.id, update=update)

    def _keep(self, session: Session) -> None:
        self._sessions[session.id] = session, Runner(session.directory, self._store.script(session))

    def _session(self, session_id: str) -> tuple[Session, Runner]:
        try:
            return self._sessions[session_id]
        except KeyError as error:
            raise RequestError.resource_not_found(session_id) from error


def _modes(session: Session) -> SessionModeState:
    return SessionModeState(current_mode_id=session.mode, available_modes=MODES)
