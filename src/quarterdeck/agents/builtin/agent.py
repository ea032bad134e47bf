"""The built-in agent's side of the Agent Client Protocol: sessions and requests.

It uses the SDK's connection with plain objects: with the SDK's models it would start a second later
and take 12 MB more. The tests validate all its messages against those models.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from quarterdeck import __version__
from quarterdeck.agents.acp.sdk import PROTOCOL_VERSION, Connection, RequestError
from quarterdeck.agents.acp.shapes import AcpShape
from quarterdeck.agents.builtin.runner import Runner
from quarterdeck.agents.builtin.turn import (
    BlockFailure,
    BuiltinTurn,
    SessionStore,
    StoredSession,
    UnknownSessionError,
)
from quarterdeck.agents.session.process import LineTransport, Message


class NewSession(AcpShape):
    """`session/new`: where to work."""

    cwd: str


class SessionCall(AcpShape):
    """Names the session of a call."""

    session_id: str


class LoadSession(SessionCall, NewSession):
    """`session/load`."""


class SetMode(SessionCall):
    """`session/set_mode`."""

    mode_id: str


class PromptSession(SessionCall):
    """`session/prompt`."""

    prompt: list[dict[str, Any]] = []

    @property
    def text(self) -> str:
        """The text of the message; it contains nothing else, since nothing else is offered."""
        return "\n".join(str(part.get("text", "")) for part in self.prompt)


Answer = dict[str, Any]
Notify = Callable[[str, Any], Awaitable[None]]

BLOCK_FAILED = 1
"""Code of the error when a block fails. JSON-RPC leaves codes above -32000 to the application."""

MODES = [
    {"id": "default", "name": "Default", "description": "Run the blocks"},
    {"id": "plan", "name": "Plan", "description": "Show what would run, run nothing"},
]


async def _discard(method: str, params: Any) -> None:
    """Drop an update, until there is a connection."""


class BuiltinAgent:
    """Sessions of the built-in agent. Each has its own runner, so turns do not interfere."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._sessions: dict[str, tuple[StoredSession, Runner]] = {}
        self.notify: Notify = _discard
        """Sends a notification to the client."""

    async def handle(self, method: str, params: Any, is_notification: bool) -> Answer | None:
        """Answer one request, or handle one notification.

        Raises:
            RequestError: an unknown method or session, invalid parameters, or a prompt with a
                failed block.
        """
        try:
            return await self._dispatch(method, params or {})
        except ValidationError as error:
            raise RequestError.invalid_params({"details": str(error)}) from error
        except UnknownSessionError as error:
            raise RequestError.resource_not_found(str(error)) from error

    async def close(self) -> None:
        """End all processes that blocks left running."""
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

        failure = await BuiltinTurn(session, self._store, runner, send).run(call.text)
        if failure is not None:
            raise _block_failed(failure)
        return {"stopReason": "cancelled" if runner.cancelled else "end_turn"}

    async def _send(self, session: StoredSession, update: Answer) -> None:
        await self.notify("session/update", {"sessionId": session.id, "update": update})

    def _keep(self, session: StoredSession) -> None:
        self._sessions[session.id] = session, Runner(session.directory, self._store.script(session))

    def _session(self, call: SessionCall) -> tuple[StoredSession, Runner]:
        try:
            return self._sessions[call.session_id]
        except KeyError as error:
            raise UnknownSessionError(call.session_id) from error


def _block_failed(failure: BlockFailure) -> RequestError:
    """Return the answer to a prompt that failed: the protocol has no stop reason for that.

    For a client the error of a prompt is the failure of its turn; the session stays as it is.
    """
    message = f"`{failure.title}` failed with exit code {failure.exit_code}"
    return RequestError(BLOCK_FAILED, message, {"exitCode": failure.exit_code})


def _hello() -> Answer:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {"loadSession": True},
        "agentInfo": {"name": "quarterdeck-builtin", "title": "Built-in", "version": __version__},
        "authMethods": [],
    }


def _modes(session: StoredSession) -> Answer:
    return {"currentModeId": session.mode, "availableModes": MODES}


STATE_VARIABLE = "QUARTERDECK_AGENT_STATE"
_LIMIT = 1 << 18


async def _serve(state: Path) -> None:
    agent = BuiltinAgent(SessionStore(state))
    transport = await _standard_streams()
    connection = Connection(agent.handle, transport, listening=False)
    agent.notify = connection.send_notification
    try:
        await connection.main_loop()
    finally:
        await connection.close()
        await agent.close()


async def _standard_streams() -> LineTransport:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    pipe, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sys.stdout
    )
    writer = asyncio.StreamWriter(pipe, protocol, None, loop)
    return LineTransport(reader, writer, _unchanged)


async def _unchanged(message: Message) -> Message:
    return message


def run() -> int:
    """Serve until standard input ends; 2 when no state directory is given."""
    state = os.environ.pop(STATE_VARIABLE, "")
    if not state:
        sys.stderr.write(f"{STATE_VARIABLE} names no directory for the sessions.\n")
        return 2
    asyncio.run(_serve(Path(state)))
    return 0
