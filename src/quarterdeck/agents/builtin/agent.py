"""The built-in agent's side of the Agent Client Protocol.

It speaks through the SDK's connection in plain objects: with the SDK's models it would start a
second later and take 12 MB more. The tests hold all it says against those models.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ValidationError

from quarterdeck import __version__
from quarterdeck.agents.acp.sdk import PROTOCOL_VERSION, RequestError
from quarterdeck.agents.builtin.requests import (
    LoadSession,
    NewSession,
    PromptSession,
    SessionCall,
    SetMode,
)
from quarterdeck.agents.builtin.runner import Runner
from quarterdeck.agents.builtin.sessions import Session, SessionStore, UnknownSessionError
from quarterdeck.agents.builtin.turn import Turn

Answer = dict[str, Any]
Tell = Callable[[str, Any], Awaitable[None]]

MODES = [
    {"id": "default", "name": "Default", "description": "Run the blocks"},
    {"id": "plan", "name": "Plan", "description": "Say what would run, run nothing"},
]


async def _to_nobody(method: str, params: Any) -> None:
    """Stands in until the connection is there."""


class BuiltinAgent:
    """Sessions of the built-in agent. Each keeps its own runner, so turns do not meet."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._sessions: dict[str, tuple[Session, Runner]] = {}
        self.tell: Tell = _to_nobody
        """Sends a notification to the client."""

    async def handle(self, method: str, params: Any, is_notification: bool) -> Answer | None:
        """Answers one request, or takes one notification.

        Raises:
            RequestError: an unknown method or session, or parameters that make no sense.
        """
        try:
            return await self._dispatch(method, params or {})
        except ValidationError as error:
            raise RequestError.invalid_params({"details": str(error)}) from error
        except UnknownSessionError as error:
            raise RequestError.resource_not_found(str(error)) from error

    async def close(self) -> None:
        """Ends everything that blocks left running."""
        for _, runner in self._sessions.values():
            await runner.close()

    async def _dispatch(self, method: str, params: Any) -> Answer | None:
        match method:
            case "initialize":
                return _hello()
            case "session/new":
                return await self._new(NewSession.model_validate(params))
            case "session/load":
                return await self._load(LoadSession.model_validate(params))
            case "session/set_mode":
                return await self._set_mode(SetMode.model_validate(params))
            case "session/prompt":
                return await self._prompt(PromptSession.model_validate(params))
            case "session/cancel":
                self._session(SessionCall.model_validate(params))[1].cancel()
                return None
            case _:
                raise RequestError.method_not_found(method)

    async def _new(self, call: NewSession) -> Answer:
        session = await asyncio.to_thread(self._store.create, call.cwd)
        self._keep(session)
        return {"sessionId": session.id, "modes": _modes(session)}

    async def _load(self, call: LoadSession) -> Answer:
        session = await asyncio.to_thread(self._store.load, call.session_id)
        session.directory = call.cwd
        self._keep(session)
        for update in session.history:
            await self._send(session, update)
        return {"modes": _modes(session)}

    async def _set_mode(self, call: SetMode) -> Answer:
        session, _ = self._session(call)
        if call.mode_id not in [mode["id"] for mode in MODES]:
            raise RequestError.invalid_params({"details": f"There is no mode {call.mode_id!r}."})
        session.mode = call.mode_id
        await asyncio.to_thread(self._store.save, session)
        return {}

    async def _prompt(self, call: PromptSession) -> Answer:
        session, runner = self._session(call)
        runner.begin()

        async def send(update: Answer) -> None:
            await self._send(session, update)

        await Turn(session, self._store, runner, send).run(call.text)
        return {"stopReason": "cancelled" if runner.cancelled else "end_turn"}

    async def _send(self, session: Session, update: Answer) -> None:
        await self.tell("session/update", {"sessionId": session.id, "update": update})

    def _keep(self, session: Session) -> None:
        self._sessions[session.id] = session, Runner(session.directory, self._store.script(session))

    def _session(self, call: SessionCall) -> tuple[Session, Runner]:
        try:
            return self._sessions[call.session_id]
        except KeyError as error:
            raise UnknownSessionError(call.session_id) from error


def _hello() -> Answer:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {"loadSession": True},
        "agentInfo": {"name": "quarterdeck-builtin", "title": "Built-in", "version": __version__},
        "authMethods": [],
    }


def _modes(session: Session) -> Answer:
    return {"currentModeId": session.mode, "availableModes": MODES}
