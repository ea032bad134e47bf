"""Starts agents of the Agent Client Protocol and opens their sessions.

Does not import the SDK: an engine without a chat does not pay for its import.

One agent names session files by the clock's minute. When it reopens a session in the minute of its
creation, it overwrites the session with a new one. So the driver notes when a session was created
and lets that minute pass. Each reopening leaves an empty file named by its minute, which is removed
before the next.
"""

import asyncio
from glob import escape
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from quarterdeck import __version__
from quarterdeck.agents.acp.link import AUTH_REQUIRED, AgentLink
from quarterdeck.agents.acp.options import OptionState
from quarterdeck.agents.acp.sdk import PROTOCOL_VERSION
from quarterdeck.agents.acp.shapes import (
    AcpShape,
    AgentCapabilities,
    Initialized,
    OpenedSession,
    as_parameter,
    merged,
    offered,
    with_file,
    write_file,
)
from quarterdeck.agents.acp.terminal_output import KEYS as TERMINAL_OUTPUT
from quarterdeck.agents.availability import program_of, spawn
from quarterdeck.agents.port import AgentSession, AgentSink, AgentUnavailableError, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.process import AgentProcess, RefusedError
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.wire.setup import McpServer

if TYPE_CHECKING:
    from quarterdeck.agents.acp.session import AcpSession


_MARK = "session-made"
_MINUTE = 60.0
_NAMED = 8


def note_created(preset: Preset, spec: SessionSpec) -> None:
    """Note that a session was created now."""
    if preset.traps.reopens_next_minute:
        mark = Path(spec.state_directory, _MARK)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def clear_twins(preset: Preset, spec: SessionSpec) -> None:
    """Remove the session's empty files; the largest holds the session. Blocking."""
    files, home = preset.traps.session_files, spec.environment.get("HOME")
    if files is None or home is None or not spec.session_id:
        return
    pattern = files.replace("{session}", escape(spec.session_id[:_NAMED]))
    matches = sorted(Path(home).glob(pattern), key=lambda path: path.stat().st_size)
    for twin in matches[:-1]:
        twin.unlink(missing_ok=True)


async def let_minute_pass(preset: Preset, spec: SessionSpec) -> None:
    """Wait until the session can be reopened."""
    mark = Path(spec.state_directory, _MARK)
    if not preset.traps.reopens_next_minute or spec.session_id is None:
        return
    if await asyncio.to_thread(mark.is_file):
        created = (await asyncio.to_thread(mark.stat)).st_mtime
        await asyncio.sleep(seconds_to_next_minute(created, time()))


def seconds_to_next_minute(created: float, now: float) -> float:
    """Return the seconds until the minute of a session's creation has passed."""
    return _MINUTE - now % _MINUTE if created // _MINUTE == now // _MINUTE else 0.0


class AcpDriver:
    """Implements `AgentDriver` for one preset."""

    def __init__(self, preset: Preset, timeouts: Timeouts | None = None) -> None:
        self._preset = preset
        self._timeouts = timeouts or Timeouts()

    async def open(self, spec: SessionSpec, sink: AgentSink) -> AgentSession:
        """Start the agent and open, or reopen, a session.

        When the agent no longer knows `spec.session_id`, a new session is opened, and a line in
        the next turn says so.

        Raises:
            AgentUnavailableError: not installed, no key, wrong version, or it did not start.
        """
        loading = asyncio.create_task(asyncio.to_thread(_session_class))
        try:
            process = await start_process(self._preset, spec)
        finally:
            session_class = await loading
        session = session_class(self._preset, self._timeouts, spec, sink)
        try:
            await session.open(process)
        except BaseException:
            await session.close()
            raise
        return session


def _session_class() -> "type[AcpSession]":
    from quarterdeck.agents.acp.session import AcpSession

    return AcpSession


async def start_process(preset: Preset, spec: SessionSpec) -> AgentProcess:
    """Start the agent's process in the session's directory.

    Raises:
        AgentUnavailableError: not installed, no such directory, or the system refused.
    """
    program = await program_of(preset, spec)
    await let_minute_pass(preset, spec)
    await asyncio.to_thread(clear_twins, preset, spec)
    arguments = [
        *preset.arguments(spec.model),
        *await asyncio.to_thread(_mcp_arguments, preset, spec),
    ]
    return await spawn(preset, spec, [program, *arguments])


def _mcp_arguments(preset: Preset, spec: SessionSpec) -> list[str]:
    arguments = preset.traps.stdio_mcp_arguments
    servers = [server for server in spec.mcp_servers if server.transport == "stdio"]
    if not arguments or not servers:
        return []
    file = str(write_file(servers, spec.state_directory))
    return [argument.replace("{file}", file) for argument in arguments]


_HISTORY_PAUSE = 0.5
"""Seconds of silence after which no more of a session's history is expected."""

_CLIENT: dict[str, Any] = {
    # No file and terminal access through us: the agent works in the sandbox itself.
    "clientCapabilities": {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        # Questions as forms: without it agents do not offer their models a tool for questions.
        "elicitation": {"form": {}},
        # The output of a command while it runs, and its exit code.
        "_meta": dict.fromkeys(TERMINAL_OUTPUT, True),
    },
    "clientInfo": {"name": "quarterdeck", "title": "quarterdeck", "version": __version__},
}


class AcpHandshake:
    """Opens the session of `spec` on a fresh link."""

    def __init__(self, preset: Preset, link: AgentLink, spec: SessionSpec) -> None:
        self._preset = preset
        self._link = link
        self._spec = spec
        self.capabilities = AgentCapabilities()
        self.forgotten: str | None = None
        """Why an earlier session could not be reopened, when that is so."""
        self.left_out: list[str] = []
        """MCP servers that were not passed on: the agent does not support their transport."""

    async def run(self, session_id: str | None) -> str:
        """Return the id of the open session.

        Raises:
            AgentUnavailableError: another protocol version, or the agent wants a key.
            LinkLostError: the agent ended.
            RefusedError: the agent refused.
        """
        params = {"protocolVersion": PROTOCOL_VERSION, **_CLIENT}
        hello = await self._link.request("initialize", params, Initialized)
        if hello.protocol_version != PROTOCOL_VERSION:
            raise AgentUnavailableError(
                f"{self._preset.name} speaks version {hello.protocol_version} of the Agent Client"
                f" Protocol; version {PROTOCOL_VERSION} is needed. Install another version of it."
            )
        self.capabilities = hello.agent_capabilities
        try:
            return await self._session(session_id)
        except RefusedError as error:
            if error.code != AUTH_REQUIRED:
                raise
            await self._log_in(hello)
            return await self._session(session_id)

    async def _session(self, session_id: str | None) -> str:
        if session_id is not None and await self._reopen(session_id):
            return session_id
        return await self._new()

    async def _log_in(self, hello: Initialized) -> None:
        method = self._preset.auth_method
        if method not in [offered.id for offered in hello.auth_methods]:
            raise AgentUnavailableError(self._no_login(hello))
        await self._link.request("authenticate", {"methodId": method}, AcpShape)

    def _no_login(self, hello: Initialized) -> str:
        """Return the message for an agent without a login, with what to do."""
        name, chosen, keys = self._preset.name, self._preset.auth_method, self._preset.key_names
        advice = f" Set the variable {keys} in the environment." if keys else ""
        ids = ", ".join(offered.id for offered in hello.auth_methods)
        if not ids:
            return f"{name} is not logged in.{advice}"
        if chosen is not None:
            return f"{name} does not offer the login {chosen}. It offers: {ids}.{advice}"
        if keys:
            return f"{name} is not logged in.{advice} It offers the logins: {ids}."
        return f"{name} needs a login. Set auth_method to one that it offers: {ids}."

    async def _new(self) -> str:
        opened = await self._link.request("session/new", await self._parameters(), OpenedSession)
        if opened.session_id is None:
            raise AgentUnavailableError(f"{self._preset.name} opened a session without an id.")
        await asyncio.to_thread(note_created, self._preset, self._spec)
        self._link.choices = OptionState(
            opened,
            self._preset.traps.takes_any_model,
            default_model=self._spec.model is None,
            plan_mode=self._preset.plan_mode,
        )
        return opened.session_id

    async def _reopen(self, session_id: str) -> bool:
        """Return whether the session is open again; `forgotten` says why it is not."""
        can = self.capabilities
        ways = [("session/resume", can.resume), ("session/load", can.load_session)]
        methods = [method for method, supported in ways if supported]
        self.forgotten = None if methods else "it cannot reopen sessions"
        for method in methods:
            if await self._reopen_by(method, session_id):
                self.forgotten = None
                return True
        return False

    async def _reopen_by(self, method: str, session_id: str) -> bool:
        self._link.replaying = True
        try:
            params = {"sessionId": session_id, **await self._parameters()}
            opened = await self._link.request(method, params, OpenedSession)
        except RefusedError as error:
            self._link.replaying = False
            if error.code == AUTH_REQUIRED:
                raise
            self.forgotten = str(error)
            return False
        # Some answer a load before they have sent all of the history; the next prompt ends it.
        self._link.replaying = method == "session/load"
        if self._link.replaying and self._preset.traps.tells_history_late:
            await self._link.quiet(_HISTORY_PAUSE)
        self._link.choices = OptionState(
            opened, self._preset.traps.takes_any_model, plan_mode=self._preset.plan_mode
        )
        return True

    async def _parameters(self) -> dict[str, Any]:
        traps = self._preset.traps
        servers = offered(self._spec.mcp_servers, self.capabilities.mcp_capabilities)
        self.left_out = [server.name for server in self._spec.mcp_servers if server not in servers]
        meta, in_file = traps.session_meta, list[McpServer]()
        if traps.mcp_file_meta and servers:
            in_file = servers
            path = await asyncio.to_thread(write_file, servers, self._spec.state_directory)
            meta = merged(meta, with_file(traps.mcp_file_meta, str(path)))
        elif traps.stdio_mcp_arguments:
            in_file = [server for server in servers if server.transport == "stdio"]
        return {
            "cwd": self._spec.working_directory,
            "mcpServers": [as_parameter(server) for server in servers if server not in in_file],
            **({"_meta": meta} if meta else {}),
        }
