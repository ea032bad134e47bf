"""Agents that no preset names, as people add them: a table in `config.toml`, and a replica.

The tables of `qwen-code` and `mistral-vibe` are those that `qd agents search` prints.
"""

import json
import os
from collections.abc import Callable, Iterator
from importlib.resources import files

import pytest
import tomlkit

from quarterdeck.cli.agent_search import parse_registry
from quarterdeck.transcript.blocks import TextPart, ToolBlock
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent
from tests.real_agents import served
from tests.real_agents.acp.agents import (
    KEY,
    MODEL,
    OTHERS,
    PINNED,
    RealAgent,
    npm_path,
    opencode_files,
    quiet,
)
from tests.real_agents.acp.conftest import MORE
from tests.real_agents.codex.place import configuration
from tests.real_agents.model import thread
from tests.real_agents.model.chat import Chat
from tests.real_agents.model.responses import Responses
from tests.real_agents.model.thread import ModelThread
from tests.real_agents.served import asked_of, awaited, ended, texts, turn
from tests.support.installation import Installation
from tests.support.waiting import until
from tests.system.conftest import installed

pytestmark = pytest.mark.long

TABLES = """
[agents.adapter]
name = "Codex by its adapter"
command = ["codex-acp"]
keys = ["OPENAI_API_KEY"]

[agents.kilo]
name = "Kilo"
command = ["kilo", "acp"]
keys = ["ANTHROPIC_API_KEY"]
supports_plan = true
"""


def _kilo_files(url: str) -> dict[str, str]:
    return {".config/kilo/kilo.json": opencode_files(url)[".config/opencode/opencode.json"]}


ADAPTER = RealAgent(
    "adapter",
    "codex-acp",
    (PINNED,),
    lambda url: quiet(),
    # Its own sandbox cannot be made within that of a replica, and the replica is one.
    lambda url: {
        ".codex/config.toml": configuration(
            url, 'approval_policy = "untrusted"\nsandbox_mode = "danger-full-access"'
        )
    },
)
KILO = RealAgent(
    "kilo",
    "kilo",
    (PINNED,),
    lambda url: quiet(
        KILO_DISABLE_MODELS_FETCH="1", KILO_DISABLE_DEFAULT_PLUGINS="1", KILO_DISABLE_AUTOUPDATE="1"
    ),
    _kilo_files,
)
QWEN = RealAgent(
    "qwen-code",
    "qwen",
    npm_path("qwen"),
    lambda url: quiet(OPENAI_BASE_URL=f"{url}/v1", OPENAI_MODEL=MODEL),
    lambda url: {
        ".qwen/settings.json": json.dumps(
            {
                "security": {"auth": {"selectedType": "openai"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False},
            }
        )
    },
)
VIBE = RealAgent(
    "mistral-vibe",
    "vibe-acp",
    (OTHERS / "vibe" / "bin",),
    lambda url: quiet(),
    lambda url: {".vibe/config.toml": _VIBE.format(url=url, model=MODEL)},
    tells_exit_codes=False,
)
_VIBE = """
enable_telemetry = false
enable_update_checks = false
active_model = "{model}"
[[providers]]
name = "stub"
api_base = "{url}/v1"
api_key_env_var = "MISTRAL_API_KEY"
[[models]]
name = "{model}"
provider = "stub"
alias = "{model}"
"""


def registered(*agents: RealAgent) -> str:
    """The tables that `qd agents search` prints for agents."""
    known = parse_registry(files("quarterdeck.agents").joinpath("registry.json").read_bytes())
    tables = {one.id: one.table() for one in known if one.id in [agent.id for agent in agents]}
    return tomlkit.dumps({"agents": tables})


@pytest.fixture(scope="module")
def model() -> Iterator[ModelThread]:
    with thread.running(Chat(), Responses()) as running:
        yield running


@pytest.fixture(scope="module")
def deck(model: ModelThread, require_tool: Callable[[str], str]) -> Iterator[Installation]:
    require_tool("bwrap")
    with installed() as made:
        found = [agent for agent in (QWEN, VIBE) if agent.installed]
        places = ":".join([str(PINNED), *(agent.path for agent in found)])
        made.variables["PATH"] = f"{places}:{os.environ['PATH']}"
        made.home.root.mkdir()
        (made.home.root / "config.toml").write_text(TABLES + registered(*found))
        made.start()
        for agent in (ADAPTER, KILO, *found):
            made.post(f"/v1/{agent.id}/user/credentials", {"api_key": KEY})
        yield made


def _last_call(deck: Installation, replica: str) -> ToolBlock:
    """The last tool call as the cockpit shows it."""
    events = [AgentEvent.model_validate(event) for event in deck.history(replica)]
    return [block for block in Transcript(events).blocks if isinstance(block, ToolBlock)][-1]


@pytest.mark.parametrize(
    "agent",
    [ADAPTER, KILO, *(pytest.param(agent, marks=MORE) for agent in (QWEN, VIBE))],
    ids=lambda agent: agent.id,
)
def test_it_works_asks_and_goes_on_after_sleep(
    deck: Installation, model: ModelThread, agent: RealAgent
) -> None:
    agent.require()
    written, variables = agent.files(model.url), agent.variables(model.url)
    environment = served.equipped(deck, agent.path, written, variables, agent.id)
    replica = deck.create(environment, coding_agent=agent.id)
    sent = deck.send(replica, "shell echo kept > a; echo x > b\nshell rm b\nsay removed")
    until(lambda: awaited(deck, replica), "a question", seconds=100)
    assert ended(deck, replica, sent)["stopReason"] == "end_turn"
    assert deck.run(replica, "cat a; ls a b 2>/dev/null")["output"].split() == ["kept", "a"]
    assert texts(deck, replica, sent["chat_id"]).endswith("removed")
    assert served.INSTRUCTIONS in json.dumps(asked_of(model, "say removed").body)
    deck.post(f"/v1/replica/{replica}/sleep")
    deck.reach(replica, "sleeping")
    deck.post(f"/v1/replica/{replica}/wake", status=202)
    deck.reach(replica, "active")
    assert turn(deck, replica, "shell echo loud; exit 3\nsay awake")["stopReason"] == "end_turn"
    shown = _last_call(deck, replica)
    assert shown.exit_code == (3 if agent.tells_exit_codes else None)
    assert "loud" in "".join(part.text for part in shown.shown_parts if isinstance(part, TextPart))
    assert "say removed" in json.dumps(asked_of(model, "say awake").body)  # it kept its session
    assert KEY not in json.dumps(deck.history(replica)) + deck.log.read_text()
