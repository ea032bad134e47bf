"""From a started codex to an open thread: initialize, log in, a new or an old thread."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from quarterdeck import __version__
from quarterdeck.agents.codex.link import CodexLink, Heed
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import AgentUnavailableError, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.link import RefusedError
from quarterdeck.wire.setup import McpServer

Params = dict[str, Any]

_CLIENT: Params = {
    "clientInfo": {"name": "quarterdeck", "title": "quarterdeck", "version": __version__},
    # Plan mode and the end of background shells are asked for under this flag.
    "capabilities": {"experimentalApi": True, "requestAttestation": False},
}
_APPROVALS = "on-request"
_SANDBOXES = {True: "danger-full-access", False: "workspace-write"}
"""Unless the person configured otherwise: where a sandbox is around codex, one of its own inside
would only take the network away."""
_TRANSPORTS = {"stdio", "http"}


@dataclass
class Opened:
    """An open thread."""

    thread_id: str
    answer: Params
    forgotten: str | None = None
    """Why an earlier thread could not be reopened, when that is so."""
    left_out: list[str] = field(default_factory=list[str])
    """MCP servers that codex cannot use."""


def home_of(environment: "dict[str, str]") -> Path | None:
    """Where codex keeps what it knows: also a person's own configuration and log-in."""
    own, home = environment.get("CODEX_HOME"), environment.get("HOME")
    return Path(own) if own else Path(home) / ".codex" if home else None


def key_to_use(preset: Preset, spec: SessionSpec) -> str | None:
    """The key to log in with; a log-in of the person's own needs none."""
    home = home_of(dict(spec.environment))
    if home is not None and (home / "auth.json").exists():
        return None
    if spec.key:
        return preset.credential(spec.key)[1]
    found = preset.key_found(spec.environment)
    return spec.environment[found] if found else None


class Handshake:
    """Opens the thread of `spec` on a fresh link."""

    def __init__(
        self, preset: Preset, link: CodexLink, spec: SessionSpec, key: str | None, heed: Heed
    ) -> None:
        """`heed` is given the answer that opens the thread, before anything that follows it."""
        self._heed = heed
        self._preset = preset
        self._link = link
        self._spec = spec
        self._key = key

    async def run(self) -> Opened:
        """Opens the thread; a goal that it had does not begin to work by that.

        Raises:
            AgentUnavailableError: there is no key.
            LinkLostError: codex ended.
            RefusedError: codex refused.
        """
        await self._link.request("initialize", _CLIENT)
        await self._link.notify("initialized")
        await self._log_in()
        place = await self._place()
        forgotten = None
        if self._spec.session_id is not None:
            try:
                return await self._resumed(self._spec.session_id, place)
            except RefusedError as error:
                forgotten = str(error)
        answer = await self._link.request("thread/start", place, self._heed)
        return self._opened(answer, forgotten)

    async def _resumed(self, thread_id: str, place: Params) -> Opened:
        # A thread whose goal is active would go to work as soon as it is there.
        goal = await self._link.request("thread/goal/get", {"threadId": thread_id})
        if as_object(goal.get("goal")).get("status") == "active":
            paused = {"threadId": thread_id, "status": "paused"}
            await self._link.request("thread/goal/set", paused)
        asked = {"threadId": thread_id, "excludeTurns": True, **place}
        return self._opened(await self._link.request("thread/resume", asked, self._heed), None)

    def _opened(self, answer: Params, forgotten: str | None) -> Opened:
        thread_id = as_object(answer.get("thread")).get("id")
        if not isinstance(thread_id, str):
            raise AgentUnavailableError(f"{self._preset.name} opened a thread without an id.")
        servers = self._spec.mcp_servers
        left_out = [one.name for one in servers if one.transport not in _TRANSPORTS]
        return Opened(thread_id, answer, forgotten, left_out)

    async def _log_in(self) -> None:
        account = await self._link.request("account/read", {})
        if account.get("account") is not None or not account.get("requiresOpenaiAuth"):
            return
        if self._key is None:
            keys = " or ".join(self._preset.keys)
            raise AgentUnavailableError(
                f"{self._preset.name} has no key: set the variable {keys}, or log in with "
                "`codex login` in a terminal of the workspace."
            )
        await self._link.request("account/login/start", {"type": "apiKey", "apiKey": self._key})

    async def _place(self) -> Params:
        """The parameters of a thread, as far as the person's configuration leaves them to us."""
        asked = {"cwd": self._spec.working_directory}
        config = as_object((await self._link.request("config/read", asked)).get("config"))
        sandbox = _SANDBOXES[self._spec.isolated]
        return {
            "cwd": self._spec.working_directory,
            "model": self._spec.model,
            "approvalPolicy": None if config.get("approval_policy") else _APPROVALS,
            "sandbox": None if config.get("sandbox_mode") else sandbox,
            "config": self._overrides(config),
        }

    def _overrides(self, config: Params) -> Params:
        usable = [one for one in self._spec.mcp_servers if one.transport in _TRANSPORTS]
        found: Params = {}
        if usable:
            found["mcp_servers"] = {one.name: _as_server(one) for one in usable}
        if self._spec.key:
            # It is codex's: what codex starts for the model has no use for it.
            policy = as_object(config.get("shell_environment_policy"))
            excluded = cast("list[object]", policy.get("exclude") or [])
            names = [*map(str, excluded), *self._preset.keys]
            found["shell_environment_policy.exclude"] = list(dict.fromkeys(names))
        return found


def _as_server(server: McpServer) -> Params:
    config = server.config
    if server.transport == "stdio":
        return {
            "command": config.get("command", ""),
            "args": list(config.get("args") or []),
            "env": _texts(config.get("env")),
        }
    return {"url": config.get("url", ""), "http_headers": _texts(config.get("headers"))}


def _texts(values: object) -> dict[str, str]:
    return {name: str(value) for name, value in as_object(values).items()}
