"""What the driver reads of an agent's answers. Lenient: agents differ, and send null for nothing."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from quarterdeck.agents.objects import as_object


class Shape(BaseModel):
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


class PromptCapabilities(Shape):
    """What a prompt may hold beside text."""

    image: bool = False


class McpCapabilities(Shape):
    """The transports of MCP servers that the agent knows, beside stdio."""

    http: bool = False
    sse: bool = False


class AgentCapabilities(Shape):
    """What the agent can do."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: dict[str, Any] = {}

    @property
    def resume(self) -> bool:
        """Whether a session can be reopened without its history being told again."""
        return self.session_capabilities.get("resume") is not None


class AuthMethod(Shape):
    """A way to log in."""

    id: str
    name: str = ""


class Initialized(Shape):
    """Answer of `initialize`."""

    protocol_version: int = 1
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: list[AuthMethod] = []


class Mode(Shape):
    """A mode of the session."""

    id: str


class Modes(Shape):
    """The modes of the session and the present one."""

    current_mode_id: str = ""
    available_modes: list[Mode] = []


class Model(Shape):
    """A model of the session."""

    model_id: str


class Models(Shape):
    """The models of the session and the present one: how it was told before config options."""

    current_model_id: str = ""
    available_models: list[Model] = []


class ConfigOption(Shape):
    """Something about the session that can be chosen, for instance its model."""

    id: str
    category: Any = None
    current_value: Any = None
    options: list[dict[str, Any]] = []

    @property
    def values(self) -> list[str]:
        """The values to choose from, groups opened."""
        return [str(leaf["value"]) for leaf in _leaves(self.options) if "value" in leaf]


def _leaves(options: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for option in options:
        inner = as_object(option).get("options")
        if isinstance(inner, list):
            yield from map(as_object, cast("list[object]", inner))
        else:
            yield option


class ConfigOptions(Shape):
    """Answer of `session/set_config_option`, and the update of the same content."""

    config_options: list[ConfigOption] = []


class Opened(ConfigOptions):
    """Answer of `session/new`, `session/load` and `session/resume`."""

    session_id: str | None = None
    modes: Modes | None = None
    models: Models | None = None


class Answered(Shape):
    """Answer of `session/prompt`."""

    stop_reason: str = "end_turn"
    usage: dict[str, Any] | None = None
    meta: dict[str, Any] = Field(alias="_meta", default={})

    @property
    def used(self) -> dict[str, Any] | None:
        """What the turn used, wherever the agent tells it."""
        counts = as_object(as_object(self.meta.get("quota")).get("token_count"))
        if self.usage or not counts:
            return self.usage
        read, written = (counts.get(f"{name}_tokens", 0) for name in ("input", "output"))
        return {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}


class PermissionOption(Shape):
    """One possible answer to a permission request."""

    option_id: str


class PermissionRequest(Shape):
    """What `session/request_permission` asks. The raw parts go to people untouched."""

    tool_call: dict[str, Any] = {}
    options: list[PermissionOption] = Field(min_length=1)
    raw_options: list[dict[str, Any]] = Field(alias="options", default=[])
