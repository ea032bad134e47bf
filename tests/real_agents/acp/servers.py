"""Tool servers for the agents."""

import sys
from pathlib import Path

from quarterdeck.wire.setup import McpServer
from tests.real_agents.codex import notes
from tests.real_agents.served import PLANTED


def notes_server(file: Path) -> McpServer:
    """A tool server whose notes go into a file."""
    env = {"NOTES": str(file), "SECRET": PLANTED}
    command = {"command": sys.executable, "args": ["-I", notes.__file__], "env": env}
    return McpServer(name="notes", transport="stdio", config=command)
