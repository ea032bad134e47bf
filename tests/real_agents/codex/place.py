"""Where codex works in a test: a home with its configuration, a directory, and a model."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quarterdeck.agents.codex.session import CodexDriver, CodexSession
from quarterdeck.agents.port import SessionSpec
from quarterdeck.agents.presets import load_presets
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.wire.setup import McpServer
from tests.agents.conftest import Heard
from tests.real_agents.model.server import Model
from tests.support.tools import missing

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / ".venv" / "agents" / "bin"
MODEL = "stub-model"
_CONFIG = """
{extra}
model = "{model}"
model_provider = "stub"
[model_providers.stub]
name = "Stub"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"""


def programs() -> Path:
    """The directory that holds codex."""
    if not (PROGRAMS / "codex").exists():
        missing("codex")
    return PROGRAMS


def configuration(url: str, extra: str = "", model: str = MODEL) -> str:
    """A person's `config.toml`, with the model on loopback."""
    return _CONFIG.format(url=url, extra=extra, model=model)


def quiet_environment(home: Path) -> dict[str, str]:
    """Variables of a process that finds no network and nothing of the person's."""
    path = f"{programs()}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}


@dataclass
class Place:
    """Opens sessions that all use one home."""

    home: Path
    directory: Path
    model: Model
    heard: Heard
    environment: dict[str, str] = field(default_factory=dict[str, str])
    servers: Sequence[McpServer] = ()
    sessions: list[CodexSession] = field(default_factory=list[CodexSession])

    def __post_init__(self) -> None:
        self.environment = quiet_environment(self.home)
        (self.home / ".codex").mkdir()
        self.configure(configuration(self.model.url))

    def configure(self, text: str) -> None:
        (self.home / ".codex" / "config.toml").write_text(text)

    def ask_always(self) -> None:
        """Codex asks before it touches a file."""
        rules = self.home / ".codex" / "rules"
        rules.mkdir()
        (rules / "default.rules").write_text('prefix_rule(pattern=["touch"], decision="prompt")\n')

    async def open(self, timeouts: Mapping[str, float] | None = None, **spec: Any) -> CodexSession:
        waits = Timeouts(**{"choose": 5.0, **(timeouts or {})})
        driver = CodexDriver(load_presets()["codex"], waits)
        given = SessionSpec(
            **{
                "chat_id": "chat",
                "working_directory": str(self.directory),
                "state_directory": str(self.directory.parent / "state"),
                "environment": self.environment,
                "mcp_servers": tuple(self.servers),
                **spec,
            }
        )
        session = await driver.open(given, self.heard)
        assert isinstance(session, CodexSession)
        self.sessions.append(session)
        return session

    def pid(self, session: CodexSession) -> int:
        """The process of a session."""
        assert session._link is not None
        return session._link._process.pid
