"""A person's agents in a whole installation: seen inside, own ones too, and their keys nowhere else."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.installation import Installation, command_of, environment_of, pids, refused
from tests.support.trees import files_under
from tests.support.waiting import until
from tests.system.conftest import installed

ROBOT = Path(__file__).with_name("robot.py")
CONFIG = """
[agents.keyless]
name = "Keyless"
command = ["robot"]
keys = ["KEYLESS_API_KEY"]
logins = [".keyless/login"]

[agents.robot]
name = "Robot"
command = ["robot", "--acp"]
keys = ["ROBOT_API_KEY"]
"""


@pytest.fixture(scope="module")
def secrets() -> dict[str, str]:
    return {name: f"sk-{name}-{uuid4().hex}" for name in ("robot", "gemini")}


@pytest.fixture(scope="module")
def deck(secrets: dict[str, str], require_tool: Callable[[str], str]) -> Iterator[Installation]:
    """An installation whose person has two agents: one of their own, and one by a known name."""
    require_tool("bwrap")
    with installed() as made:
        person = made.base / "person"
        programs = person / ".local/bin"
        programs.mkdir(parents=True)
        for name in ("robot", "gemini"):
            program = programs / name
            program.write_text(f"#!{sys.executable}\n{ROBOT.read_text()}")
            program.chmod(0o755)
        (person / ".gemini").mkdir()
        (person / ".gemini/oauth_creds.json").write_text("a login of the person")
        made.home.root.mkdir()
        (made.home.root / "config.toml").write_text(CONFIG)
        made.variables |= {"HOME": str(person), "GEMINI_API_KEY": secrets["gemini"]}
        made.start()
        body = {"api_key": secrets["robot"]}
        assert made.ask("POST", "/v1/robot/user/credentials", body).status_code == 200
        yield made


def answer(deck: Installation, id: str, message: str = "hello") -> str:
    """What the agent says to a message, in one piece."""
    before = len(deck.history(id))
    assert deck.turn(id, message)["stopReason"] == "end_turn"
    told = [event["payload"] for event in deck.history(id)[before:]]
    chunks = [one for one in told if one.get("sessionUpdate") == "agent_message_chunk"]
    return "".join(one["content"]["text"] for one in chunks)


@pytest.fixture(scope="module")
def working(deck: Installation) -> dict[str, str]:
    """A replica for each agent, which has answered and still runs."""
    return {name: deck.create(coding_agent=name) for name in ("robot", "gemini", "builtin")}


@pytest.mark.long
def test_the_agents_are_told_with_what_they_have(deck: Installation) -> None:
    agents = {one["id"]: one for one in deck.get("/v1/agents")["agents"]}
    assert list(agents)[-3:] == ["keyless", "robot", "builtin"]
    for name in ("robot", "gemini"):
        assert (agents[name]["available"], agents[name]["auth_method"]) == (True, "api_key")
    assert agents["gemini"]["login_found"]
    shown = deck.qd("agents").stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("robot "))
    assert line.endswith("ready")


@pytest.mark.long
def test_each_agent_has_its_key_and_no_other(deck: Installation, working: dict[str, str]) -> None:
    """What an agent starts inherits its environment: only the agent itself could prevent that."""
    for name in ("robot", "gemini"):
        variable = [f"{name.upper()}_API_KEY"]
        assert answer(deck, working[name]) == f"{name} has {variable}, its shell {variable}"


@pytest.mark.long
def test_the_built_in_agent_tells_of_them(deck: Installation, working: dict[str, str]) -> None:
    said = answer(deck, working["builtin"])
    assert "**Robot** (`robot`): available" in said
    assert "**Gemini** (`gemini`): " in said
    assert "Not installed" not in said.split("**Gemini**")[1].splitlines()[0]


@pytest.mark.long
def test_a_key_is_nowhere_but_in_its_agents_process(
    deck: Installation, working: dict[str, str], secrets: dict[str, str]
) -> None:
    for name in ("robot", "gemini"):
        answer(deck, working[name], "again")
        inside = [pid for id in working.values() for pid in deck.processes(id)]
        holders = [pid for pid in inside if secrets[name].encode() in environment_of(pid)]
        assert holders
        assert all(name in command_of(pid) for pid in holders)
        assert set(holders) <= set(deck.processes(working[name]))
        assert not [pid for pid in pids() if secrets[name] in command_of(pid)]
        for id in working.values():
            command = "env; cat /proc/*/cmdline; cat /run/replica/*.json"
            assert secrets[name] not in deck.run(id, command)["output"]
            assert secrets[name] not in json.dumps(deck.history(id))


@pytest.mark.long
def test_a_key_is_in_no_file(
    deck: Installation, working: dict[str, str], secrets: dict[str, str]
) -> None:
    """Neither the database, nor a journal, nor a log, nor what an engine was started with."""
    for name in ("robot", "gemini"):
        answer(deck, working[name], "once more")
    looked_at = 0
    for path, content in files_under(deck.base):
        looked_at += 1
        assert not [name for name, secret in secrets.items() if secret.encode() in content], path
    assert looked_at > 30


@pytest.mark.long
def test_a_login_on_the_machine_is_not_seen_inside(
    deck: Installation, working: dict[str, str]
) -> None:
    person = deck.variables["HOME"]
    for id in working.values():
        seen = deck.run(id, f"find {person} ~ -name oauth_creds.json; ls -A {person}")["output"]
        assert "oauth_creds" not in seen
        assert ".gemini" not in seen


@pytest.mark.long
def test_who_logs_in_inside_a_replica_may_use_the_agent_there(
    deck: Installation, working: dict[str, str]
) -> None:
    id = working["builtin"]
    body = {"message": "hello", "coding_agent": "keyless"}
    path = f"/v1/replica/{id}/messages"
    refused(deck.ask("POST", path, body), 400, "INVALID_REQUEST", "qd credentials set keyless")
    deck.run(id, "mkdir ~/.keyless; ln -s /etc/passwd ~/.keyless/login")
    refused(deck.ask("POST", path, body), 400, "INVALID_REQUEST", "No key")
    deck.run(id, "rm ~/.keyless/login; touch ~/.keyless/login")
    told = deck.get(f"/v1/replica/{id}?include=environment")["replica"]["environment"]
    assert told["coding_agents"]["keyless"] == {"available": True, "auth_method": "login"}
    sent = deck.post(path, body)
    chat = f"/v1/replica/{id}/history?chat_id={sent['chat_id']}"
    until(lambda: "its shell []" in json.dumps(deck.get(chat)["events"]), "its answer")
    elsewhere = {"name": "y", "environment_id": deck.plain_environment, "coding_agent": "keyless"}
    refused(deck.ask("POST", "/v1/replica", elsewhere), 400, "INVALID_REQUEST", "No key")


@pytest.mark.long
def test_another_home_has_not_the_own_agent(deck: Installation) -> None:
    with installed() as other:
        other.variables |= {"HOME": deck.variables["HOME"]}
        other.start()
        assert "robot" not in [one["id"] for one in other.get("/v1/agents")["agents"]]
        body = {"name": "x", "environment_id": other.plain_environment, "coding_agent": "robot"}
        refused(other.ask("POST", "/v1/replica", body), 400, "INVALID_REQUEST", "no such agent")


@pytest.mark.long
def test_an_engine_that_comes_again_knows_the_own_agent_and_its_key(
    deck: Installation, working: dict[str, str]
) -> None:
    id = working["robot"]
    os.kill(deck.engine(id), signal.SIGKILL)
    assert answer(deck, id, "still there?").endswith("its shell ['ROBOT_API_KEY']")
