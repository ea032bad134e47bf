"""MCP servers as the protocol's sessions take them."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from quarterdeck.agents.acp.shapes import McpCapabilities
from quarterdeck.wire.setup import McpServer


def offered(servers: Sequence[McpServer], known: McpCapabilities) -> list[McpServer]:
    """Those whose transport the agent knows; every agent knows stdio."""
    transports = {"stdio", *(["http"] if known.http else []), *(["sse"] if known.sse else [])}
    return [server for server in servers if server.transport in transports]


def write_file(servers: Sequence[McpServer], directory: str) -> Path:
    """A file that lists servers over stdio, as agents take them at start; for its owner's eyes."""
    listed = {
        server.name: {
            "type": "stdio",
            "command": server.config.get("command", ""),
            "args": list(server.config.get("args") or []),
            "env": dict(server.config.get("env") or {}),
            "tools": ["*"],
        }
        for server in servers
    }
    path = Path(directory, "mcp.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"mcpServers": listed}, file)
    return path


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
