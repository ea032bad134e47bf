"""MCP servers as the protocol's sessions take them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from quarterdeck.agents.acp.shapes import McpCapabilities
from quarterdeck.wire.setup import McpServer


def offered(servers: Sequence[McpServer], known: McpCapabilities) -> list[McpServer]:
    """Those whose transport the agent knows; every agent knows stdio."""
    transports = {"stdio", *(["http"] if known.http else []), *(["sse"] if known.sse else [])}
    return [server for server in servers if server.transport in transports]


def as_parameter(server: McpServer) -> dict[str, Any]:
    """One entry of `mcpServers`."""
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
