"""Agents as people have them: through the service, an engine and a sandbox; beside other agents."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real_agents import served
from tests.real_agents.acp.agents import KEY, OPENCODE, RealAgent
from tests.real_agents.codex.place import configuration
from tests.real_agents.model import thread
from tests.real_agents.model.anthropic import Anthropic
from tests.real_agents.model.chat import Chat
from tests.real_agents.model.dialect import USAGE
from tests.real_agents.model.gemini import Gemini
from tests.real_agents.model.responses import Responses
from tests.real_agents.model.server import Asked
from tests.real_agents.model.thread import ModelThread
from tests.real_agents.served import asked_of, awaited, chat_of, ended, texts, turn
from tests.support.installation import (
    Follower,
    Installation,
    block,
    command_of,
    environment_of,
    runs,
)
from tests.support.waiting import until
from tests.system.conftest import installed


@pytest.fixture(scope="module")
def model(agent: RealAgent) -> Iterator[ModelThread]:
    """One for each agent: what it was asked, and what was let go, is of that agent."""
    with thread.running(Chat(), Anthropic(), Gemini(), Responses()) as running:
        yield running


@pytest.fixture(autouse=True)
def forgotten(model: ModelThread) -> None:
    """A test that is run again uses the same names."""
    model.forget()


@pytest.fixture(scope="module")
def deck(
    agent: RealAgent, model: ModelThread, require_tool: Callable[[str], str]
) -> Iterator[Installation]:
    """An installation on a machine that has the agent, and codex."""
    require_tool("bwrap")
    agent.require()
    with installed() as made:
        made.variables["PATH"] = f"{agent.path}:{OPENCODE.path}:{os.environ['PATH']}"
        made.start()
        made.post(f"/v1/{agent.id}/user/credentials", {"api_key": KEY})
        made.post("/v1/codex/user/credentials", {"api_key": "sk-of-codex"})
        yield made


@pytest.fixture
def replica(_replica: str, deck: Installation) -> Iterator[str]:
    """The replica that all tests share, in which nothing is under way."""
    yield _replica
    for chat in deck.replica(_replica)["chats"]:
        deck.post(f"/v1/replica/{_replica}/chats/{chat['id']}/interrupt")
    until(lambda: not any(c["processing"] for c in deck.replica(_replica)["chats"]), "rest")


@pytest.fixture(scope="module")
def _replica(deck: Installation, agent: RealAgent, model: ModelThread) -> str:
    """A replica whose environment leads the agents to their model."""
    files = {**agent.files(model.url), ".codex/config.toml": configuration(model.url)}
    path = f"{agent.path}:{OPENCODE.path}"
    environment = served.equipped(deck, path, files, agent.variables(model.url))
    return deck.create(environment, coding_agent=agent.id, model=agent.models[0])


def patch(deck: Installation, path: str, body: dict[str, Any]) -> None:
    answer = deck.ask("PATCH", path, body)
    assert answer.status_code == 200, answer.text


def agents(deck: Installation, id: str, agent: RealAgent) -> list[int]:
    """The agent's processes, without what they started for the model."""
    marked = [pid for pid in deck.processes(id) if b"QUARTERDECK_AGENT=" in environment_of(pid)]
    return [pid for pid in marked if agent.program in command_of(pid)]


def model_of(asked: Asked) -> str:
    return f"{asked.path} {asked.body.get('model')}"


@pytest.mark.long
def test_a_turn_changes_a_file_and_what_it_asks_is_answered(
    deck: Installation, replica: str
) -> None:
    script = "shell echo kept > a; echo x > b", "shell rm b", "say removed"
    sent = deck.send(replica, "\n".join(script))
    until(lambda: deck.replica(replica)["chats"][0]["awaiting_input"], "a question", seconds=100)
    assert awaited(deck, replica)
    result = ended(deck, replica, sent)
    assert (result["stopReason"], result["error"]) == ("end_turn", None)
    assert result["usage"]["totalTokens"] >= USAGE["input"] + USAGE["output"]
    assert deck.run(replica, "cat a; ls a b 2>/dev/null")["output"].split() == ["kept", "a"]
    assert texts(deck, replica, sent["chat_id"]).endswith("removed")
    assert KEY not in json.dumps(deck.history(replica)) + deck.log.read_text()
    assert KEY not in (deck.place(replica) / "state" / "journal.jsonl").read_text()


@pytest.mark.long
def test_what_it_does_after_a_turn_is_shown_asked_and_kept(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    if not agent.works_in_background:
        return
    call = {
        "command": "while [ ! -e go ]; do sleep 0.1; done",
        "description": "later\nshell touch own; rm own\nsay continued\nend",
        "run_in_background": True,
    }
    sent = deck.send(replica, f"tool Bash {json.dumps(call)}\nsay first")
    assert ended(deck, replica, sent)["stopReason"] == "end_turn"
    chat = chat_of(deck, replica, agent.id)
    assert not chat["processing"]
    deck.run(replica, "touch go")
    until(lambda: chat_of(deck, replica, agent.id)["awaiting_input"], "its question")
    assert chat_of(deck, replica, agent.id)["processing"]
    assert awaited(deck, replica)
    waiting = deck.send(replica, "say next")
    assert (waiting["status"], waiting["position"]) == ("queued", 1)
    assert ended(deck, replica, waiting)["stopReason"] == "end_turn"
    assert texts(deck, replica, chat["id"]).endswith("firstcontinuednext")
    started = [e["payload"] for e in deck.history(replica) if e["type"] == "turn-started"]
    assert [one["origin"] for one in started] == ["agent"]
    (result,) = deck.results(replica)[started[0]["messageId"]]
    assert result["stopReason"] == "end_turn"
    before = texts(deck, replica, chat["id"])
    deck.post(f"/v1/replica/{replica}/sleep")
    deck.reach(replica, "sleeping")
    deck.post(f"/v1/replica/{replica}/wake", status=202)
    deck.reach(replica, "active")
    assert turn(deck, replica, "say awake", coding_agent=agent.id)["stopReason"] == "end_turn"
    assert texts(deck, replica, chat["id"]) == f"{before}awake"
    assert "say continued" in json.dumps(asked_of(model, "say awake").body)


def test_a_plan_turn_runs_nothing_that_nobody_allowed(
    deck: Installation, replica: str, agent: RealAgent
) -> None:
    """The model's verdict on each command is that it is harmless, where it is asked for one."""
    words = "shell echo x > planned\nsay planned"
    sent = deck.send(replica, words, coding_agent=agent.id, plan_mode=True)
    if agent.asks_when_planning:
        until(lambda: awaited(deck, replica), "a question", seconds=100)
    assert ended(deck, replica, sent, "reject_once")["stopReason"] == "end_turn"
    assert deck.run(replica, "ls planned")["exit_code"] != 0


def test_the_next_message_works_after_the_inner_process_died(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    if agent.inner is None:
        return
    told = "remember the word walnut\nsay remembered"
    assert turn(deck, replica, told, coding_agent=agent.id)["error"] is None
    chat = chat_of(deck, replica, agent.id)["id"]

    def kill() -> None:
        names = {pid: Path(command_of(pid).split()[0]).name for pid in deck.processes(replica)}
        inner = [pid for pid, name in names.items() if name == agent.inner]
        assert inner
        for pid in inner:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(runs, inner)), "its end")

    kill()
    assert turn(deck, replica, "say between turns", chat_id=chat)["error"] is None
    assert "walnut" in json.dumps(asked_of(model, "say between turns").body)
    cut = deck.send(replica, "shell echo x > begun\nwait inner\nsay never", chat_id=chat)

    def begun() -> bool:
        served.answer_all(deck, replica, chat)
        return model.model.has_waited("inner", 1)

    until(begun, "a turn in which it did something", seconds=100)
    kill()
    assert ended(deck, replica, cut)["stopReason"] == "failed"
    model.release("inner")
    assert turn(deck, replica, "say in a turn", chat_id=chat)["error"] is None
    assert "walnut" in json.dumps(asked_of(model, "say in a turn").body)


def test_values_of_a_tool_server_are_in_no_command_line(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    words = 'mcp notes add {"text": "secretly"}\nsay noted so'
    assert turn(deck, replica, words, coding_agent=agent.id)["error"] is None
    assert deck.run(replica, f"tail -n 1 {served.NOTES}")["output"] == "secretly\n"
    assert "mcp__notes" in json.dumps(asked_of(model, "say noted so").body) or agent.inner is None
    running = deck.processes(replica)
    assert set(agents(deck, replica, agent)) <= set(running)
    assert not [line for line in map(command_of, running) if served.PLANTED in line]
    if agent.inner is None:
        return
    named = [line for line in map(command_of, running) if "--mcp-config" in line]
    (file,) = {line.partition("--mcp-config")[2].split()[0] for line in named}
    told = deck.run(replica, f"stat -c '%a %U' {file}; id -un; cat {file}")["output"]
    mode, owner, user, content = told.split(maxsplit=3)
    assert (mode, owner) == ("600", user)
    assert served.PLANTED in content


@pytest.mark.long
@pytest.mark.parametrize("with_codex", [False, True], ids=["it", "codex"])
def test_an_allowed_command_runs_unasked_and_another_asks(
    deck: Installation, replica: str, agent: RealAgent, with_codex: bool
) -> None:
    name = "codex" if with_codex else agent.id
    assert turn(deck, replica, "shell touch one two\nsay made", coding_agent=name)["error"] is None
    chat = chat_of(deck, replica, name)["id"]
    if with_codex:
        path = f"/v1/replica/{replica}/chats/{chat}/settings"
        patch(deck, path, {"permission_mode": "ask"})
    rules = [{"action": "allow", "pattern": "rm one"}]
    patch(deck, f"/v1/replica/{replica}/permissions", {"add_rules": rules})
    sent = deck.send(replica, "shell rm one\nshell rm two\nsay gone", chat_id=chat)
    until(lambda: awaited(deck, replica), "a question", seconds=100)
    left = "two" if with_codex or agent.tells_commands else "one two"
    assert " ".join(deck.run(replica, "ls one two 2>/dev/null")["output"].split()) == left
    assert ended(deck, replica, sent)["stopReason"] == "end_turn"
    assert not deck.run(replica, "ls one two 2>/dev/null")["output"]
    told = [e["payload"]["text"] for e in deck.history(replica) if e["type"] == "policy-answer"]
    if with_codex or agent.tells_commands:
        assert told[-1] == "Allowed by the rule `rm one`"
    patch(deck, f"/v1/replica/{replica}/permissions", {"remove_rules": rules})


@pytest.mark.long
def test_instructions_a_skill_and_a_tool_server_reach_it(
    deck: Installation, replica: str, model: ModelThread
) -> None:
    words = 'mcp notes add {"text": "remember"}'
    result = turn(deck, replica, f"{words}\nsay noted")
    assert (result["stopReason"], result["error"]) == ("end_turn", None)
    assert deck.run(replica, f"tail -n 1 {served.NOTES}")["output"] == "remember\n"
    told = json.dumps(asked_of(model, "say noted").body)
    assert served.INSTRUCTIONS in told
    assert served.SKILL in told and served.SKILL_TOLD in told


@pytest.mark.long
def test_its_slash_commands_are_offered_and_work(
    deck: Installation, replica: str, agent: RealAgent
) -> None:
    assert turn(deck, replica, "say hello", coding_agent=agent.id)["error"] is None
    chat = chat_of(deck, replica, agent.id)["id"]
    path = f"/v1/replica/{replica}/chats/{chat}/slash-commands"
    offered = [one["command"] for one in deck.get(path)["commands"]]
    assert "/plan" in offered and len(offered) > 3
    if agent is OPENCODE:
        assert "/greet" in offered
        assert turn(deck, replica, "/greet Bert")["stopReason"] == "end_turn"
        assert texts(deck, replica, chat).endswith("hello Bert")


@pytest.mark.long
def test_the_models_that_it_announces_are_offered(
    deck: Installation, replica: str, agent: RealAgent
) -> None:
    assert turn(deck, replica, "say hello", coding_agent=agent.id)["error"] is None
    offered = deck.get(f"/v1/agents/{agent.id}/models")["models"]
    if not agent.announces_models:
        assert not offered
        return
    assert {one["id"] for one in offered} >= set(agent.models)
    assert all(one["displayName"] for one in offered)


@pytest.mark.long
def test_agents_and_models_are_switched_in_mid_chat(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    first = deck.send(replica, "say one")
    assert ended(deck, replica, first)["error"] is None
    assert agent.models[0].rpartition("/")[2] in model_of(asked_of(model, "say one"))
    other = deck.send(replica, block("echo two > two"), coding_agent="builtin")
    assert other["chat_id"] != first["chat_id"]
    assert ended(deck, replica, other)["stopReason"] == "end_turn"
    back = deck.send(replica, "say three", coding_agent=agent.id, model=agent.models[1])
    assert back["chat_id"] == first["chat_id"]
    assert ended(deck, replica, back)["stopReason"] == "end_turn"
    assert agent.models[1].rpartition("/")[2] in model_of(asked_of(model, "say three"))
    if agent.refuses_models:
        refused = turn(deck, replica, "say four", coding_agent=agent.id, model="stub/none")
        assert "does not offer the model stub/none" in refused["error"]
    assert turn(deck, replica, "say five", chat_id=first["chat_id"])["error"] is None
    assert agent.models[1].rpartition("/")[2] in model_of(asked_of(model, "say five"))


@pytest.mark.long
def test_chats_of_different_agents_run_at_once(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    names = (agent.id, "codex")
    sent = [
        deck.send(
            replica, f"shell echo {name} > by-{name}\nwait both\nsay {name}", coding_agent=name
        )
        for name in names
    ]
    mine = {message["chat_id"] for message in sent}

    def both_wait() -> bool:
        for chat in mine:
            served.answer_all(deck, replica, chat)
        return model.model.has_waited("both", 2)

    until(both_wait, "both agents", seconds=100)
    assert all(c["processing"] for c in deck.replica(replica)["chats"] if c["id"] in mine)
    model.release("both")
    for name, message in zip(names, sent, strict=True):
        assert ended(deck, replica, message)["stopReason"] == "end_turn"
        assert texts(deck, replica, message["chat_id"]).endswith(name)
        assert deck.run(replica, f"cat by-{name}")["output"] == f"{name}\n"


@pytest.mark.long
def test_an_interrupt_leaves_nothing_of_the_shell(
    deck: Installation, replica: str, agent: RealAgent
) -> None:
    child = "python3 -c 'import time; time.sleep(1000)'"
    sent = deck.send(replica, f"shell echo $$ > shell; {child}", coding_agent=agent.id)

    def started() -> bool:
        served.answer_all(deck, replica, sent["chat_id"])
        return bool(deck.run(replica, "cat shell")["output"].strip())

    until(started, "the shell", seconds=100)
    deck.post(f"/v1/replica/{replica}/chats/{sent['chat_id']}/interrupt")
    assert ended(deck, replica, sent)["stopReason"] == "cancelled"
    assert deck.run(replica, "kill -0 $(cat shell)")["exit_code"] != 0
    after = turn(deck, replica, "say usable", coding_agent=agent.id)
    assert (after["stopReason"], after["error"]) == ("end_turn", None)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_killed_agent_and_a_killed_engine_take_the_session_up_again(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    follower = Follower(deck, replica, deck.replica(replica)["log_index"])
    told = "remember the word walnut\nsay remembered"
    assert turn(deck, replica, told, coding_agent=agent.id)["error"] is None
    chat = chat_of(deck, replica, agent.id)["id"]
    remembered = texts(deck, replica, chat).count("remembered")
    killed_agent, killed_engine = "killed by signal 9", "engine was restarted"
    for name, kill, error in (
        (
            "agent",
            lambda: [os.kill(pid, signal.SIGKILL) for pid in agents(deck, replica, agent)],
            killed_agent,
        ),
        ("engine", lambda: os.kill(deck.engine(replica), signal.SIGKILL), killed_engine),
    ):
        cut = deck.send(replica, f"say before\nwait {name}\nsay never", chat_id=chat)
        model.waits(name)
        old = agents(deck, replica, agent)
        assert old
        kill()
        result = ended(deck, replica, cut)
        assert result["stopReason"] == "failed" and error in result["error"]
        model.release(name)
        back = f"say back after {name}"
        assert turn(deck, replica, back, chat_id=chat)["error"] is None
        until(lambda old=old: not any(map(runs, old)), "the end of the old agent")
        assert "walnut" in json.dumps(asked_of(model, back).body)
    said = texts(deck, replica, chat)
    assert said.count("remembered") == remembered and said.endswith("back after engine")
    newest = deck.replica(replica)["log_index"]
    until(lambda: follower.indices and follower.indices[-1] >= newest, "the newest event")
    follower.end()
    assert len(set(follower.indices)) == len(follower.indices)


@pytest.mark.long
def test_a_question_of_its_own_is_answered(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    if not agent.asks_questions:
        return
    words = "ask Which colour? | red | blue\nsay asked"
    sent = deck.send(replica, words, coding_agent=agent.id)
    (asked,) = until(lambda: awaited(deck, replica), "a question", seconds=100)
    assert asked["title"] == "Which colour?"
    blue = next(one["optionId"] for one in asked["options"] if one["name"] == "blue")
    answer: dict[str, Any] = {"requestId": asked["requestId"], "optionId": blue}
    deck.post(f"/v1/replica/{replica}/chats/{sent['chat_id']}/respond", answer)
    assert ended(deck, replica, sent)["stopReason"] == "end_turn"
    messages = asked_of(model, "Which colour?").body["messages"]
    parts = [p for one in messages if isinstance(one["content"], list) for p in one["content"]]
    assert any(p["type"] == "tool_result" and "blue" in json.dumps(p) for p in parts)


@pytest.mark.long
def test_a_fork_goes_on_with_the_conversation(
    deck: Installation, replica: str, agent: RealAgent, model: ModelThread
) -> None:
    chat = chat_of(deck, replica, agent.id)["id"]
    assert turn(deck, replica, "say of pears", chat_id=chat)["error"] is None
    fork = deck.post(f"/v1/replica/{replica}/fork", {}, 201)["replica"]["id"]
    deck.reach(fork, "active")
    assert turn(deck, fork, "say of plums")["error"] is None
    if not agent.forks:
        assert "say of pears" in deck.run(fork, "cat transcript-of-*.md")["output"]
        return
    assert "say of pears" in json.dumps(asked_of(model, "say of plums").body)
    assert turn(deck, replica, "say of cherries", chat_id=chat)["error"] is None
    told = json.dumps(asked_of(model, "say of cherries").body)
    assert "say of pears" in told and "say of plums" not in told
    deck.delete(fork)
