"""MCP servers that an environment hands to its agents (INTERFACE 7)."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator

from quarterdeck.wire.base import Body, Id, Patch, Record, Timestamp
from quarterdeck.wire.stored_text import NO_NUL, ONE_LINE, Line, Text

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
VARIABLE_PATTERN = r"^[^=\x00]+$"
HEADER_PATTERN = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class McpTransport(StrEnum):
    """How an agent talks to a server."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


def _web_address(url: object) -> object:
    """Before the bounds: a text that is no address is not merely too short."""
    if isinstance(url, str) and (not url.startswith(("http://", "https://")) or " " in url):
        raise ValueError("it must begin with http:// or https://")
    return url


class StdioConfig(Body):
    """A program that is started for the agent."""

    command: Annotated[str, Field(min_length=1), NO_NUL]
    args: list[Text] = []
    env: dict[Annotated[str, Field(pattern=VARIABLE_PATTERN)], Text] = {}


class RemoteConfig(Body):
    """A server somewhere else."""

    url: Annotated[
        str, Field(min_length=9, max_length=4096), ONE_LINE, BeforeValidator(_web_address)
    ]
    headers: dict[Annotated[str, Field(pattern=HEADER_PATTERN)], Line] = {}


def checked_config(transport: McpTransport, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with what its transport knows, and nothing else.

    Raises:
        ValueError: it does not fit the transport. The text repeats nothing of it: it may be secret.
    """
    model = StdioConfig if transport is McpTransport.STDIO else RemoteConfig
    try:
        return model.model_validate(config).model_dump()
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        told = first["msg"].removeprefix("Value error, ")
    raise ValueError(f"{where}: {told}")


class EnvironmentMcp(Record):
    """One server; its configuration is encrypted where it is stored."""

    id: Id
    organization_id: Id
    environment_id: Id
    name: str
    transport: str
    config: Annotated[dict[str, Any], Field(repr=False)]
    created_at: Timestamp
    updated_at: Timestamp


class EnvironmentMcpList(Record):
    """Answer of `GET .../mcps`, by name."""

    environment_mcps: list[EnvironmentMcp]


class EnvironmentMcpAnswer(Record):
    """Answer of making or changing a server."""

    environment_mcp: EnvironmentMcp


class CreateMcp(Body):
    """Body of `POST .../mcps`."""

    name: Name
    transport: McpTransport
    config: Annotated[dict[str, Any], Field(repr=False)]

    @field_validator("config")
    @classmethod
    def _fits(cls, config: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        transport = info.data.get("transport")  # missing when it is wrong itself
        return config if transport is None else checked_config(transport, config)


class ChangeMcp(Patch):
    """Body of `PATCH .../mcps/{id}`; what is not given stays, `config` is replaced as a whole."""

    name: Name = Field(default_factory=str)
    transport: McpTransport = Field(default_factory=lambda: McpTransport.STDIO)
    config: dict[str, Any] = Field(default_factory=dict, repr=False)
