"""Shapes of the Agent Client Protocol, and conversions of them."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from quarterdeck.agents.objects import as_object
from quarterdeck.wire.chats import SettingChoice
from quarterdeck.wire.setup import McpServer


class AcpShape(BaseModel):
    """A part of an answer; unknown fields are ignored, null counts as absent."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, validate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {
            name: field
            for name, field in as_object(cast("object", value)).items()
            if field is not None
        }


class PromptCapabilities(AcpShape):
    """What a prompt may contain besides text."""

    image: bool = False


class McpCapabilities(AcpShape):
    """The transports of MCP servers that the agent supports, besides stdio."""

    http: bool = False
    sse: bool = False


class AgentCapabilities(AcpShape):
    """What the agent can do."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: dict[str, Any] = {}

    @property
    def resume(self) -> bool:
        """Whether a session can be reopened without replaying its history."""
        return self.session_capabilities.get("resume") is not None


class AuthMethod(AcpShape):
    """A way to log in."""

    id: str
    name: str = ""


class Initialized(AcpShape):
    """Answer of `initialize`."""

    protocol_version: int = 1
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: list[AuthMethod] = []


class SessionMode(AcpShape):
    """A mode of the session."""

    id: str
    name: str = ""
    description: str | None = None


class Modes(AcpShape):
    """The modes of the session and the current one."""

    current_mode_id: str = ""
    available_modes: list[SessionMode] = []


class Model(AcpShape):
    """A model of the session."""

    model_id: str
    name: str = ""


class Models(AcpShape):
    """The models of the session and the current one: used before config options."""

    current_model_id: str = ""
    available_models: list[Model] = []


class ConfigOption(AcpShape):
    """Something about the session that can be chosen, for instance its model."""

    id: str
    category: Any = None
    current_value: Any = None
    options: list[dict[str, Any]] = []

    @property
    def values(self) -> list[str]:
        """The values to choose from, groups opened."""
        return [value for value, _ in self.named_values]

    @property
    def choices(self) -> list[SettingChoice]:
        """The same, each with its name and description."""
        leaves = [leaf for leaf in _leaves(self.options) if "value" in leaf]
        return [
            choice_of(leaf["value"], leaf.get("name"), leaf.get("description")) for leaf in leaves
        ]

    @property
    def named_values(self) -> list[tuple[str, str]]:
        """The same, each with its name."""
        leaves = [leaf for leaf in _leaves(self.options) if "value" in leaf]
        return [(str(leaf["value"]), str(leaf.get("name") or leaf["value"])) for leaf in leaves]


def choice_of(id: object, name: object, description: object = None) -> SettingChoice:
    """Return a choice of the agent, with its id where it has no name."""
    told = description if isinstance(description, str) else None
    return SettingChoice(id=str(id), name=str(name or id), description=told)


def _leaves(options: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for option in options:
        inner = as_object(option).get("options")
        if isinstance(inner, list):
            yield from map(as_object, cast("list[object]", inner))
        else:
            yield option


class ConfigOptions(AcpShape):
    """Answer of `session/set_config_option`, and the update of the same content."""

    config_options: list[ConfigOption] = []


class OpenedSession(ConfigOptions):
    """Answer of `session/new`, `session/load` and `session/resume`."""

    session_id: str | None = None
    modes: Modes | None = None
    models: Models | None = None


class PromptResponse(AcpShape):
    """Answer of `session/prompt`."""

    stop_reason: str = "end_turn"
    usage: dict[str, Any] | None = None
    meta: dict[str, Any] = Field(alias="_meta", default={})

    @property
    def used(self) -> dict[str, Any] | None:
        """The usage of the turn, wherever the agent reports it."""
        counts = as_object(as_object(self.meta.get("quota")).get("token_count"))
        if self.usage or not counts:
            return self.usage
        given = [counts.get(f"{name}_tokens", 0) for name in ("input", "output")]
        input_tokens, output_tokens = (one if isinstance(one, int) else 0 for one in given)
        return {
            "inputTokens": input_tokens,
            "outputTokens": output_tokens,
            "totalTokens": input_tokens + output_tokens,
        }


_TEXTS = ("toolCallId", "status", "title", "kind")


def is_update(update: Mapping[str, Any]) -> bool:
    """Return whether what is known of an update of a session has the protocol's types."""
    content = update.get("content")
    text = as_object(content).get("text")
    return (
        isinstance(update.get("sessionUpdate"), str)
        and all(isinstance(update.get(name), str | None) for name in _TEXTS)
        and isinstance(content, dict | list | None)
        and isinstance(text, str | None)
    )


class PermissionOption(AcpShape):
    """One possible answer to a permission request."""

    option_id: str


class PermissionRequest(AcpShape):
    """The parameters of `session/request_permission`. The raw parts are shown unchanged."""

    tool_call: dict[str, Any] = {}
    options: list[PermissionOption] = Field(min_length=1)
    raw_options: list[dict[str, Any]] = Field(alias="options", default=[])


class Todos:
    """Finds the plan in the calls of one tool."""

    def __init__(self, tool: str | None) -> None:
        self._tool = tool
        self._calls: set[str] = set()

    def plan(self, update: dict[str, Any]) -> dict[str, Any] | None:
        """Return the plan in an update, as a separate update."""
        call = update.get("toolCallId")
        if self._tool is None or not isinstance(call, str):
            return None
        if update.get("sessionUpdate") == "tool_call" and update.get("title") == self._tool:
            self._calls.add(call)
        todos = as_object(update.get("rawInput")).get("todos")
        if call not in self._calls or not isinstance(todos, list):
            return None
        self._calls.discard(call)
        entries = [_entry(as_object(todo)) for todo in cast("list[object]", todos)]
        return {"sessionUpdate": "plan", "entries": entries}


def _entry(todo: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": str(todo.get("content", "")),
        "status": str(todo.get("status", "pending")),
        "priority": str(todo.get("priority", "medium")),
    }


def offered(servers: Sequence[McpServer], supported: McpCapabilities) -> list[McpServer]:
    """Return the servers with a supported transport; every agent supports stdio."""
    transports = {
        "stdio",
        *(["http"] if supported.http else []),
        *(["sse"] if supported.sse else []),
    }
    return [server for server in servers if server.transport in transports]


def file_of(directory: str) -> Path:
    """Return the path of the file that lists servers."""
    return Path(directory, "mcp.json")


def write_file(servers: Sequence[McpServer], directory: str) -> Path:
    """Write a file that lists servers, readable by its owner; return its path."""
    listed = {server.name: _listed(server) for server in servers}
    path = file_of(directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"mcpServers": listed}, file)
    return path


def _listed(server: McpServer) -> dict[str, Any]:
    config = server.config
    if server.transport != "stdio":
        headers = dict(config.get("headers") or {})
        return {"type": server.transport, "url": config.get("url", ""), "headers": headers}
    return {
        "type": "stdio",
        "command": config.get("command", ""),
        "args": list(config.get("args") or []),
        "env": dict(config.get("env") or {}),
        "tools": ["*"],
    }


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return both objects as one, with the objects in them merged likewise."""
    common = {
        name: merged(as_object(first[name]), as_object(value))
        for name, value in second.items()
        if as_object(first.get(name)) and as_object(value)
    }
    return {**first, **second, **common}


def with_file(value: Any, file: str) -> Any:
    """Return the value with the path of a file in place of {file}."""
    if isinstance(value, str):
        return value.replace("{file}", file)
    if isinstance(value, Mapping):
        entries = as_object(cast("object", value)).items()
        return {name: with_file(entry, file) for name, entry in entries}
    return value


def as_parameter(server: McpServer) -> dict[str, Any]:
    """Return one entry of `mcpServers`."""
    config = server.config
    if server.transport == "stdio":
        return {
            "name": server.name,
            "command": config.get("command", ""),
            "args": list(config.get("args") or []),
            "env": _pairs(config.get("env")),
        }
    return {
        "type": server.transport,
        "name": server.name,
        "url": config.get("url", ""),
        "headers": _pairs(config.get("headers")),
    }


def _pairs(values: object) -> list[dict[str, str]]:
    if not isinstance(values, Mapping):
        return []
    pairs = cast("Mapping[object, object]", values).items()
    return [{"name": str(name), "value": str(value)} for name, value in pairs]
