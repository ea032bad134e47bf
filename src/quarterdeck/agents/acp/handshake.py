"""From a started agent to an open session: initialize, log in, new or reopened session."""

import asyncio
from typing import Any

from quarterdeck import __version__
from quarterdeck.agents.acp.choices import Choices
from quarterdeck.agents.acp.link import AgentLink
from quarterdeck.agents.acp.mcp import as_parameter, offered
from quarterdeck.agents.acp.refusals import AUTH_REQUIRED
from quarterdeck.agents.acp.reopening import note_made
from quarterdeck.agents.acp.sdk import PROTOCOL_VERSION
from quarterdeck.agents.acp.shapes import AgentCapabilities, Initialized, Opened, Shape
from quarterdeck.agents.port import AgentUnavailableError, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.link import RefusedError

_HISTORY_PAUSE = 0.5
"""Seconds of silence behind which no more of a session's history is expected."""

_CLIENT: dict[str, Any] = {
    # No files and no terminals of ours: the agent works in the sandbox itself.
    "clientCapabilities": {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        # Questions as forms: without it agents do not offer their models a tool for questions.
        "elicitation": {"form": {}},
    },
    "clientInfo": {"name": "quarterdeck", "title": "quarterdeck", "version": __version__},
}


class Handshake:
    """Opens the session of `spec` on a fresh link."""

    def __init__(self, preset: Preset, link: AgentLink, spec: SessionSpec) -> None:
        self._preset = preset
        self._link = link
        self._spec = spec
        self.capabilities = AgentCapabilities()
        self.forgotten: str | None = None
        """Why an earlier session could not be reopened, when that is so."""
        self.left_out: list[str] = []
        """MCP servers that were not handed over: the agent does not know their transport."""

    async def run(self, session_id: str | None) -> str:
        """Returns the id of the open session.

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
        if session_id is not None and await self._reopened(session_id):
            return session_id
        return await self._new()

    async def _log_in(self, hello: Initialized) -> None:
        method = self._preset.auth_method
        if method not in [offered.id for offered in hello.auth_methods]:
            keys = self._preset.key_names
            raise AgentUnavailableError(
                f"{self._preset.name} is not logged in."
                + (f" Set the variable {keys} in the environment." if keys else "")
            )
        await self._link.request("authenticate", {"methodId": method}, Shape)

    async def _new(self) -> str:
        opened = await self._link.request("session/new", self._place(), Opened)
        if opened.session_id is None:
            raise AgentUnavailableError(f"{self._preset.name} opened a session without an id.")
        await asyncio.to_thread(note_made, self._preset, self._spec)
        self._link.choices = Choices(opened, self._preset.traps.takes_any_model)
        return opened.session_id

    async def _reopened(self, session_id: str) -> bool:
        """Whether the session is open again; `forgotten` says why it is not."""
        can = self.capabilities
        ways = [("session/resume", can.resume), ("session/load", can.load_session)]
        methods = [method for method, known in ways if known]
        self.forgotten = None if methods else "it cannot reopen sessions"
        for method in methods:
            if await self._reopened_by(method, session_id):
                self.forgotten = None
                return True
        return False

    async def _reopened_by(self, method: str, session_id: str) -> bool:
        self._link.replaying = True
        try:
            params = {"sessionId": session_id, **self._place()}
            opened = await self._link.request(method, params, Opened)
        except RefusedError as error:
            self._link.replaying = False
            if error.code == AUTH_REQUIRED:
                raise
            self.forgotten = str(error)
            return False
        # Some answer a load before they have told all of the history; the next prompt ends it.
        self._link.replaying = method == "session/load"
        if self._link.replaying and self._preset.traps.tells_history_late:
            await self._link.quiet(_HISTORY_PAUSE)
        self._link.choices = Choices(opened, self._preset.traps.takes_any_model)
        return True

    def _place(self) -> dict[str, Any]:
        servers = offered(self._spec.mcp_servers, self.capabilities.mcp_capabilities)
        at_start = [one for one in servers if one.transport == "stdio"]
        at_start = at_start if self._preset.traps.stdio_mcp_arguments else []
        self.left_out = [one.name for one in self._spec.mcp_servers if one not in servers]
        return {
            "cwd": self._spec.working_directory,
            "mcpServers": [as_parameter(one) for one in servers if one not in at_start],
        }
