"""Starts codex's app-server: its command, permission modes, settings and handshake."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quarterdeck import __version__
from quarterdeck.agents.acp.options import nearest_level
from quarterdeck.agents.availability import program_of, spawn
from quarterdeck.agents.codex.link import CodexLink, OnResult
from quarterdeck.agents.objects import as_list, as_object
from quarterdeck.agents.port import AgentUnavailableError, ModelOffer, Prompt, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.process import AgentProcess, RefusedError
from quarterdeck.wire.chats import ChatSetting, ChatSettings, SettingChoice, SettingValue
from quarterdeck.wire.setup import McpServer

Params = dict[str, Any]

_FULL: Params = {"type": "dangerFullAccess"}
_WORKSPACE: Params = {"type": "workspaceWrite"}
_READ_ONLY: Params = {"type": "readOnly"}
CONFIGURED = SettingValue(id="configured", name="As configured")
"""The user's configuration is none of the modes."""


@dataclass(frozen=True)
class PermissionMode:
    """A pair of codex's approval policy and its sandbox.

    Codex offers no list of them. Its own interface has such pairs, too; these are the ones that differ
    in a replica, where its sandbox is not needed to protect the machine.
    """

    choice: SettingChoice
    approvals: str
    sandbox: Params

    @property
    def settings(self) -> Params:
        """The fields of `turn/start` and of `thread/settings/update`."""
        return {"approvalPolicy": self.approvals, "sandboxPolicy": self.sandbox}


def _mode(id: str, name: str, description: str, approvals: str, sandbox: Params) -> PermissionMode:
    return PermissionMode(
        SettingChoice(id=id, name=name, description=description), approvals, sandbox
    )


_MODES = (
    _mode("read-only", "Read only", "Asks before it changes anything.", "on-request", _READ_ONLY),
    _mode("ask", "Ask first", "Asks before each command that may change something.", "untrusted", _FULL),
    _mode("workspace", "Workspace", "Asks to use the network or write elsewhere.", "on-request", _WORKSPACE),
    _mode("agent", "Agent", "Works in the whole replica, and asks when it is unsure.", "on-request", _FULL),
    _mode("full-access", "Full access", "Never asks.", "never", _FULL),
)  # fmt: skip
MODES = {mode.choice.id: mode for mode in _MODES}


class PermissionModes:
    """Follows the mode of a thread."""

    def __init__(self) -> None:
        self._current: SettingValue | None = None

    def opened(self, answer: Params) -> None:
        """Note the answer that opened the thread."""
        approvals, sandbox = answer.get("approvalPolicy"), as_object(answer.get("sandbox"))
        for mode in _MODES:
            if mode.approvals == approvals and mode.sandbox["type"] == sandbox.get("type"):
                self._current = _value(mode)
                return
        self._current = CONFIGURED

    def settings_for(self, id: str | None) -> Params:
        """Return the fields that a turn in this mode needs; none when the thread is in it already."""
        mode = MODES.get(id or "")
        if mode is None or (self._current and self._current.id == id):
            return {}
        return mode.settings

    def chosen(self, id: str | None) -> None:
        """Note that codex accepted a mode."""
        if mode := MODES.get(id or ""):
            self._current = _value(mode)

    @property
    def setting(self) -> ChatSetting:
        """The mode and the choices."""
        return ChatSetting(current=self._current, choices=[mode.choice for mode in _MODES])


def _value(mode: PermissionMode) -> SettingValue:
    return SettingValue(id=mode.choice.id, name=mode.choice.name)


_CLIENT: Params = {
    "clientInfo": {"name": "quarterdeck", "title": "quarterdeck", "version": __version__},
    # Plan mode and ending background shells need this flag.
    "capabilities": {"experimentalApi": True, "requestAttestation": False},
}
_APPROVALS = "on-request"
_SANDBOXES = {True: "danger-full-access", False: "workspace-write"}
"""Unless the user configured otherwise: inside our sandbox, codex's own one would only remove
network access."""
_TRANSPORTS = {"stdio", "http"}


@dataclass
class OpenThread:
    """An open thread."""

    thread_id: str
    answer: Params
    forgotten: str | None = None
    """Why an earlier thread could not be reopened, when that is so."""
    left_out: list[str] = field(default_factory=list[str])
    """MCP servers that codex cannot use."""


def home_of(environment: "dict[str, str]") -> Path | None:
    """Return codex's home directory, which also holds the user's configuration and log-in."""
    own, home = environment.get("CODEX_HOME"), environment.get("HOME")
    return Path(own) if own else Path(home) / ".codex" if home else None


def key_to_use(preset: Preset, spec: SessionSpec) -> str | None:
    """Return the key to log in with; None when the user is logged in."""
    home = home_of(dict(spec.environment))
    if home is not None and (home / "auth.json").exists():
        return None
    if spec.key:
        return preset.credential(spec.key)[1]
    name = preset.key_found(spec.environment)
    return spec.environment[name] if name else None


class CodexHandshake:
    """Opens the thread of `spec` on a fresh link."""

    def __init__(
        self,
        preset: Preset,
        link: CodexLink,
        spec: SessionSpec,
        key: str | None,
        on_opened: OnResult,
    ) -> None:
        """`on_opened` receives the answer that opens the thread, before any later message."""
        self._on_opened = on_opened
        self._preset = preset
        self._link = link
        self._spec = spec
        self._key = key

    async def run(self) -> OpenThread:
        """Open the thread; an active goal of it is paused.

        Raises:
            AgentUnavailableError: there is no key.
            LinkLostError: codex ended.
            RefusedError: codex refused.
        """
        await self._link.request("initialize", _CLIENT)
        await self._link.notify("initialized")
        await self._log_in()
        place = await self._parameters()
        forgotten = None
        if self._spec.session_id is not None:
            try:
                return await self._resume(self._spec.session_id, place)
            except RefusedError as error:
                forgotten = str(error)
        answer = await self._link.request("thread/start", place, self._on_opened)
        return self._opened(answer, forgotten)

    async def _resume(self, thread_id: str, place: Params) -> OpenThread:
        # A thread with an active goal would start to work as soon as it is open.
        goal = await self._link.request("thread/goal/get", {"threadId": thread_id})
        if as_object(goal.get("goal")).get("status") == "active":
            paused = {"threadId": thread_id, "status": "paused"}
            await self._link.request("thread/goal/set", paused)
        params = {"threadId": thread_id, "excludeTurns": True, **place}
        return self._opened(
            await self._link.request("thread/resume", params, self._on_opened), None
        )

    def _opened(self, answer: Params, forgotten: str | None) -> OpenThread:
        thread_id = as_object(answer.get("thread")).get("id")
        if not isinstance(thread_id, str):
            raise AgentUnavailableError(f"{self._preset.name} opened a thread without an id.")
        servers = self._spec.mcp_servers
        left_out = [server.name for server in servers if server.transport not in _TRANSPORTS]
        return OpenThread(thread_id, answer, forgotten, left_out)

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

    async def _parameters(self) -> Params:
        """Return the parameters of a thread; what the user has configured is kept.

        The sandbox is always named: a thread whose last turn planned would stay read-only.
        """
        params = {"cwd": self._spec.working_directory}
        config = as_object((await self._link.request("config/read", params)).get("config"))
        sandbox = _SANDBOXES[self._spec.isolated]
        return {
            "cwd": self._spec.working_directory,
            "model": self._spec.model,
            "approvalPolicy": None if config.get("approval_policy") else _APPROVALS,
            "sandbox": config.get("sandbox_mode") or sandbox,
            "config": self._overrides(config),
        }

    def _overrides(self, config: Params) -> Params:
        usable = [server for server in self._spec.mcp_servers if server.transport in _TRANSPORTS]
        overrides: Params = {}
        if usable:
            overrides["mcp_servers"] = {server.name: _as_server(server) for server in usable}
        if self._spec.key:
            # Only codex needs the key, not the commands that it runs for the model.
            policy = as_object(config.get("shell_environment_policy"))
            excluded = as_list(policy.get("exclude"))
            names = [*map(str, excluded), *self._preset.keys]
            overrides["shell_environment_policy.exclude"] = list(dict.fromkeys(names))
        return overrides


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


_IN_MEMORY = ("-c", 'cli_auth_credentials_store="ephemeral"')
"""A key is not written into codex's home, where any program in the workspace could read it.
"""


async def start_process(preset: Preset, spec: SessionSpec, key: str | None) -> AgentProcess:
    """Start codex in the session's directory.

    Raises:
        AgentUnavailableError: not installed, no such directory, or the system refused.
    """
    program = await program_of(preset, spec)
    arguments = [*preset.arguments(spec.model), *(_IN_MEMORY if key else ())]
    return await spawn(preset, spec, [program, *arguments])


_FAST = "fast"


def as_text(value: object) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


class Settings:
    """Follows the settings of a thread. `list_models` queries codex, at most once."""

    def __init__(self, list_models: Callable[[], Awaitable[Params]]) -> None:
        self._list_models = list_models
        self._models: dict[str, Params] | None = None
        self._model = ""
        self._planning = False
        self._effort_now: str | None = None
        self.modes = PermissionModes()
        self._sandbox: Params = {}
        """The sandbox outside of plan mode."""

    def opened(self, answer: Params) -> None:
        """Note the answer that opened the thread."""
        self._model = str(answer.get("model") or "")
        mode = as_object(answer.get("collaborationMode")).get("mode")
        self._planning = mode == "plan"
        self._effort_now = as_text(answer.get("reasoningEffort"))
        self.modes.opened(answer)
        self._sandbox = as_object(answer.get("sandbox"))

    def plans(self, prompt: Prompt) -> bool:
        """Return whether the prompt uses plan mode, or ends it."""
        return prompt.plan_mode or self._planning

    async def turn_settings(self, prompt: Prompt) -> Params:
        """Return the fields of `turn/start` that `thread/settings/update` also has."""
        model = prompt.model or self._model
        settings: Params = {}
        if prompt.model and prompt.model != self._model:
            settings["model"] = prompt.model
        if prompt.thinking_level:
            settings["effort"] = await self._effort(model, prompt.thinking_level)
        settings |= self.modes.settings_for(prompt.permission_mode)
        if self.plans(prompt):
            # Plan mode is only a request to the model, so its commands are kept from writing.
            after = settings.get("sandboxPolicy", self._sandbox)
            settings["sandboxPolicy"] = _READ_ONLY if prompt.plan_mode else after
            settings["collaborationMode"] = {
                "mode": "plan" if prompt.plan_mode else "default",
                "settings": {
                    "model": model,
                    "reasoning_effort": settings.get("effort"),
                    "developer_instructions": None,
                },
            }
        return settings

    async def speed(self, prompt: Prompt) -> Params:
        """Return the field of `turn/start` that makes one turn fast, if the model supports it."""
        if not prompt.fast_mode:
            return {}
        model = (await self._models_by_name()).get(prompt.model or self._model, {})
        tiers = [as_object(tier) for tier in as_list(model.get("serviceTiers"))]
        fast = next((tier for tier in tiers if str(tier.get("name")).lower() == _FAST), None)
        return {"serviceTierForTurn": fast["id"]} if fast else {}

    def chosen(self, prompt: Prompt, settings: Params) -> None:
        """Note that codex accepted the prompt, with the settings of `turn_settings`."""
        self._model = prompt.model or self._model
        self._effort_now = settings.get("effort") or self._effort_now
        self._planning = prompt.plan_mode
        self.modes.chosen(prompt.permission_mode)
        if mode := MODES.get(prompt.permission_mode or ""):
            self._sandbox = mode.sandbox

    @property
    def planning(self) -> bool:
        """Whether the thread is in plan mode."""
        return self._planning

    async def load(self) -> None:
        """Ask for the models, so that they can be announced."""
        await self._models_by_name()

    @property
    def offer(self) -> ModelOffer | None:
        """The models, as far as they were asked for."""
        records = [record for record in (self._models or {}).values() if not record.get("hidden")]
        default = next((str(each["model"]) for each in records if each.get("isDefault")), None)
        named = [(str(each["model"]), str(each.get("displayName"))) for each in records]
        return ModelOffer(tuple(named), default) if named else None

    @property
    def announced(self) -> ChatSettings:
        """The settings as codex has them."""
        models = self.offer.models if self.offer else ()
        known = (self._models or {}).get(self._model, {})
        name = str(known.get("displayName") or self._model)
        return ChatSettings(
            permission_mode=self.modes.setting,
            model=ChatSetting(
                current=SettingValue(id=self._model, name=name) if self._model else None,
                choices=[SettingChoice(id=id, name=name) for id, name in models],
            ),
            thinking_level=self._thinking(known),
        )

    def _thinking(self, model: Params) -> ChatSetting | None:
        choices = [
            SettingChoice(id=level, name=level, description=as_text(effort.get("description")))
            for effort in map(as_object, as_list(model.get("supportedReasoningEfforts")))
            if (level := as_text(effort.get("reasoningEffort")))
        ]
        level = self._effort_now or as_text(model.get("defaultReasoningEffort"))
        current = SettingValue(id=level, name=level) if level else None
        return ChatSetting(current=current, choices=choices) if choices else None

    async def _effort(self, model: str, level: str) -> str:
        """Return the level, or the nearest lower one of the model, or its default."""
        record = (await self._models_by_name()).get(model)
        if record is None:
            return level
        listed = as_list(record.get("supportedReasoningEfforts"))
        offered = [str(as_object(effort).get("reasoningEffort")) for effort in listed]
        return nearest_level(level, offered) or str(record.get("defaultReasoningEffort") or level)

    async def _models_by_name(self) -> dict[str, Params]:
        if self._models is None:
            answer = await self._list_models()
            listed = [as_object(model) for model in as_list(answer.get("data"))]
            self._models = {str(model.get("model")): model for model in listed}
        return self._models
