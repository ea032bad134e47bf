"""Agents that no preset names, as people add them: a table in `config.toml`, and a replica."""

import json
import os
from collections.abc import Callable, Iterator

import pytest

from quarterdeck.transcript.blocks import TextPart, ToolBlock
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent
from tests.real_agents import served
from tests.real_agents.acp.agents import KEY, PINNED, RealAgent, opencode_files, quiet
from tests.real_agents.codex.place import configuration
from tests.real_agents.model import thread
from tests.real_agents.model.chat import Chat
from tests.real_agents.model.responses import Responses
from tests.real_agents.model.thread import ModelThread
from tests.real_agents.served import awaited, ended, texts, turn
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
    lambda url: {".codex/config.toml": configuration(url, 'approval_policy = "untrusted"')},
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


@pytest.fixture(scope="module")
def model() -> Iterator[ModelThread]:
    with thread.running(Chat(), Responses()) as running:
        yield running


@pytest.fixture(scope="module")
def deck(model: ModelThread, require_tool: Callable[[str], str]) -> Iterator[Installation]:
    require_tool("bwrap")
    with installed() as made:
        made.variables["PATH"] = f"{PINNED}:{os.environ['PATH']}"
        made.home.root.mkdir()
        (made.home.root / "config.toml").write_text(TABLES)
        made.start()
        for agent in (ADAPTER, KILO):
            made.post(f"/v1/{agent.id}/user/credentials", {"api_key": KEY})
        yield made


def _last_call(deck: Installation, replica: str) -> ToolBlock:
    """The last tool call as the cockpit shows it."""
    events = [AgentEvent.model_validate(event) for event in deck.history(replica)]
    return [block for block in Transcript(events).blocks if isinstance(block, ToolBlock)][-1]


@pytest.mark.parametrize("agent", [ADAPTER, KILO], ids=lambda agent: agent.id)
def test_it_works_asks_and_goes_on_after_sleep(
    deck: Installation, model: ModelThread, agent: RealAgent
) -> None:
    files, variables = agent.files(model.url), agent.variables(model.url)
    environment = served.equipped(deck, agent.path, files, variables, agent.id)
    replica = deck.create(environment, coding_agent=agent.id)
    sent = deck.send(replica, "shell echo kept > a; echo x > b\nshell rm b\nsay removed")
    until(lambda: awaited(deck, replica), "a question", seconds=100)
    assert ended(deck, replica, sent)["stopReason"] == "end_turn"
    assert deck.run(replica, "cat a; ls a b 2>/dev/null")["output"].split() == ["kept", "a"]
    assert texts(deck, replica, sent["chat_id"]).endswith("removed")
    assert served.INSTRUCTIONS in json.dumps(model.model.requests[-1].body)
    deck.post(f"/v1/replica/{replica}/sleep")
    deck.reach(replica, "sleeping")
    deck.post(f"/v1/replica/{replica}/wake", status=202)
    deck.reach(replica, "active")
    assert turn(deck, replica, "shell echo loud; exit 3\nsay awake")["stopReason"] == "end_turn"
    shown = _last_call(deck, replica)
    assert shown.exit_code == 3
    assert "loud" in "".join(part.text for part in shown.shown_parts if isinstance(part, TextPart))
    assert "say removed" in json.dumps(model.model.requests[-1].body)  # it kept its session
    assert KEY not in json.dumps(deck.history(replica)) + deck.log.read_text()
