"""From a started agent to an open session: initialize, log in, new or reopened session."""

from typing import Any

from quarterdeck import __version__
from quarterdeck.agents.acp.choices import Choices
from quarterdeck.agents.acp.link import AgentLink
from quarterdeck.agents.acp.mcp import as_parameter, offered
from quarterdeck.agents.acp.sdk import PROTOCOL_VERSION, RequestError
from quarterdeck.agents.acp.shapes import AgentCapabilities, Initialized, Opened, Shape
from quarterdeck.agents.port import AgentUnavailableError, SessionSpec
from quarterdeck.agents.presets import Preset

AUTH_REQUIRED = -32000

_CLIENT: dict[str, Any] = {
    # No files and no terminals of ours: the agent works in the sandbox itself.
    "clientCapabilities": {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
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
            RequestError: the agent refused.
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
        except RequestError as error:
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
            keys = " or ".join(self._preset.keys)
            raise AgentUnavailableError(
                f"{self._preset.name} is not logged in."
                + (f" Set the variable {keys} in the environment." if keys else "")
            )
        await self._link.request("authenticate", {"methodId": method}, Shape)

    async def _new(self) -> str:
        opened = await self._link.request("session/new", self._place(), Opened)
        if opened.session_id is None:
            raise AgentUnavailableError(f"{self._preset.name} opened a session without an id.")
        self._link.choices = Choices(opened)
        return opened.session_id

    async def _reopened(self, session_id: str) -> bool:
        if self.capabilities.resume:
            method = "session/resume"
        elif self.capabilities.load_session:
            method = "session/load"
        else:
            self.forgotten = "it cannot reopen sessions"
            return False
        self._link.replaying = True
        try:
            params = {"sessionId": session_id, **self._place()}
            self._link.choices = Choices(await self._link.request(method, params, Opened))
        except RequestError as error:
            if error.code == AUTH_REQUIRED:
                raise
            self.forgotten = str(error)
            return False
        finally:
            self._link.replaying = False
        return True

    def _place(self) -> dict[str, Any]:
        servers = offered(self._spec.mcp_servers, self.capabilities.mcp_capabilities)
        self.left_out = [one.name for one in self._spec.mcp_servers if one not in servers]
        return {
            "cwd": self._spec.working_directory,
            "mcpServers": [as_parameter(one) for one in servers],
        }
