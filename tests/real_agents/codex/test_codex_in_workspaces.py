"""Codex as people have it: through the service, an engine and a sandbox."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.real_agents import served
from tests.real_agents.codex.place import configuration, programs
from tests.real_agents.model import thread
from tests.real_agents.model.responses import Responses
from tests.real_agents.model.thread import ModelThread
from tests.support.installation import Installation, command_of, runs
from tests.support.waiting import until
from tests.system.conftest import installed

KEY = "sk-key-for-the-tests"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelThread]:
    with thread.running(Responses()) as running:
        yield running


@pytest.fixture(autouse=True)
def forgotten(model: ModelThread) -> None:
    """A test that is run again uses the same names."""
    model.forget()


@pytest.fixture(scope="module")
def deck(model: ModelThread, require_tool: Callable[[str], str]) -> Iterator[Installation]:
    """An installation whose environment gives codex its model, a key and its program."""
    require_tool("bwrap")
    with installed() as made:
        made.variables["PATH"] = f"{programs()}:{os.environ['PATH']}"
        made.start()
        configuration = f'openai_base_url = "{model.url}/v1"\nmodel = "gpt-5.5"\n'
        file = {"name": "codex", "path": "~/.codex/config.toml", "content": configuration}
        made.post("/v1/environments/global/files", file, 201)
        path = {"key": "PATH", "value": f"{programs()}:{SYSTEM_PATH}"}
        made.post("/v1/environments/global/variables", path, 201)
        made.post("/v1/codex/user/credentials", {"api_key": KEY})
        yield made


def replica(deck: Installation, wait: bool = True) -> str:
    return deck.create(coding_agent="codex", wait=wait)


def chat_of(deck: Installation, id: str) -> str:
    return until(lambda: (deck.replica(id)["chats"] or [None])[0], "a chat")["id"]


def texts(deck: Installation, id: str) -> str:
    chunks = [
        event["payload"]["content"]["text"]
        for event in deck.history(id)
        if event["payload"].get("sessionUpdate") == "agent_message_chunk"
    ]
    return "".join(chunks)


def goal(deck: Installation, id: str, **change: Any) -> dict[str, Any]:
    path = f"/v1/replica/{id}/chats/{chat_of(deck, id)}/goal"
    answer = deck.ask("PATCH", path, change)
    assert answer.status_code == 200, answer.text
    return answer.json()["goal"]


def goal_now(deck: Installation, id: str) -> dict[str, Any]:
    """The goal in the newest record of the chat that the engine journaled."""
    goals = [
        event["payload"]["chat"]["goal"]
        for event in deck.journal(id)
        if event["type"] == "chat.updated"
    ]
    return (goals and goals[-1]) or {}


def reach_goal(deck: Installation, id: str, status: str) -> dict[str, Any]:
    def there() -> dict[str, Any] | None:
        found = goal_now(deck, id)
        return found if found.get("status") == status else None

    return until(there, f"a goal that is {status}")


def accepted(deck: Installation, id: str, message_id: str) -> bool:
    """Whether the engine has a message."""
    told = [e["payload"] for e in deck.journal(id) if e["type"] == "chat.turn.accepted"]
    return any(one["messageId"] == message_id for one in told)


def agents(deck: Installation, id: str) -> list[int]:
    return [pid for pid in deck.processes(id) if "app-server" in command_of(pid)]


@pytest.fixture(scope="module")
def shared(deck: Installation) -> str:
    """A replica for tests that leave nothing under way in it."""
    return replica(deck)


@pytest.mark.long
def test_commands_of_a_plan_turn_read_and_do_not_write(deck: Installation, shared: str) -> None:
    id = shared
    deck.run(id, "echo legible > /workspace/readable")
    for text, planning in (("cat readable; touch planned; true", True), ("touch built", False)):
        result = deck.turn(id, f"shell cd /workspace; {text}\nsay ok", plan_mode=planning)
        assert (result["stopReason"], result["error"]) == ("end_turn", None)
    listed = deck.run(id, "ls /workspace")["output"].split()
    assert "planned" not in listed and "built" in listed
    assert "legible" in json.dumps(deck.history(id)), "the command ran"


def test_a_turn_changes_a_file_and_the_key_stays_with_codex(
    deck: Installation, shared: str
) -> None:
    id = shared
    result = deck.turn(id, "shell echo hello > /workspace/a; env\nsay written")
    assert (result["stopReason"], result["error"]) == ("end_turn", None)
    assert deck.run(id, "cat /workspace/a")["output"] == "hello\n"
    assert texts(deck, id).endswith("written")
    assert KEY not in json.dumps(deck.history(id)) + deck.log.read_text()
    assert KEY not in (deck.place(id) / "state" / "journal.jsonl").read_text()


@pytest.mark.long
def test_instructions_a_skill_and_a_tool_server_reach_it(
    deck: Installation, model: ModelThread
) -> None:
    files = {".codex/config.toml": configuration(model.url)}
    id = deck.create(served.equipped(deck, str(programs()), files, {}), coding_agent="codex")
    result = served.turn(deck, id, 'mcp notes add {"text": "remember"}\nsay noted')
    assert (result["stopReason"], result["error"]) == ("end_turn", None)
    assert deck.run(id, f"cat {served.NOTES}")["output"] == "remember\n"
    told = json.dumps(served.asked_of(model, "mcp notes add").body)
    assert served.INSTRUCTIONS in told
    assert served.SKILL in told and served.SKILL_TOLD in told
    deck.delete(id)


@pytest.mark.long
def test_what_codex_asks_is_answered_through_the_service(deck: Installation) -> None:
    id = replica(deck)
    rules = 'prefix_rule(pattern=[\\"touch\\"], decision=\\"prompt\\")'
    deck.run(id, f'mkdir -p ~/.codex/rules; echo "{rules}" > ~/.codex/rules/default.rules')
    sent = deck.send(id, "shell touch /workspace/b\nsay after")
    chat = sent["chat_id"]
    until(lambda: deck.replica(id)["chats"][0]["awaiting_input"], "a question")
    request = next(e["payload"] for e in deck.history(id) if e["type"] == "acp-permission_request")
    answer = {"requestId": request["requestId"], "optionId": "accept"}
    deck.post(f"/v1/replica/{id}/chats/{chat}/respond", answer)
    assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    assert deck.run(id, "ls /workspace/b")["exit_code"] == 0
    deck.delete(id)


@pytest.mark.long
def test_a_goal_is_worked_on_until_it_is_complete(deck: Installation) -> None:
    id = replica(deck)
    sent = deck.send(id, "1: say one\n2: say two\n3: goal complete", goal_mode=True)
    deck.result(id, sent["message_id"])
    done = reach_goal(deck, id, "complete")
    assert done["tokensUsed"] >= 140
    said = [e["payload"] for e in deck.history(id) if e["type"] == "user-message"]
    assert len(said) == 3 and all(one["goalMode"] for one in said)
    assert said[1]["text"].startswith("Go on towards the goal.") and "GOAL:" not in said[1]["text"]
    assert texts(deck, id).startswith("onetwo")
    deck.delete(id)


@pytest.mark.long
def test_a_goal_is_set_paused_resumed_and_limited_by_hand(
    deck: Installation, model: ModelThread
) -> None:
    id = replica(deck)
    deck.turn(id, "say hello")
    objective = "1: wait hand-1\n2: wait hand-2\n3: say three"
    assert goal(deck, id, objective=objective, token_budget=100_000)["status"] == "active"
    model.waits("hand-1")
    assert goal(deck, id, status="paused")["status"] == "paused"
    model.release("hand-1")
    until(lambda: not deck.replica(id)["chats"][0]["processing"], "the end of the turn")
    assert goal_now(deck, id)["status"] == "paused"
    assert goal(deck, id, status="active")["status"] == "active"
    model.waits("hand-2")
    deck.post(f"/v1/replica/{id}/chats/{chat_of(deck, id)}/interrupt")
    assert reach_goal(deck, id, "paused")["objective"] == objective
    model.release("hand-2")
    goal(deck, id, status="active", token_budget=300)
    limited = reach_goal(deck, id, "budget_limited")
    assert limited["tokensUsed"] >= 300
    deck.delete(id)


@pytest.mark.long
@pytest.mark.parametrize("of_goal", [True, False], ids=["a goal's turn", "an ordinary turn"])
def test_interrupting_pauses_a_goal_that_was_set_during_the_turn(
    deck: Installation, model: ModelThread, of_goal: bool
) -> None:
    id = replica(deck)
    gate = f"during-{of_goal}"
    deck.send(id, f"wait {gate}\nsay one", goal_mode=of_goal)
    model.waits(gate)
    assert goal(deck, id, objective="say never")["status"] == "active"
    deck.post(f"/v1/replica/{id}/chats/{chat_of(deck, id)}/interrupt")
    assert goal_now(deck, id)["status"] == "paused"
    model.release(gate)
    assert deck.turn(id, "say after")["stopReason"] == "end_turn"
    assert goal_now(deck, id)["status"] == "paused"
    assert texts(deck, id) == "after", "a paused goal went on"
    deck.delete(id)


@pytest.mark.long
def test_a_message_goes_before_the_next_turn_towards_the_goal(
    deck: Installation, model: ModelThread
) -> None:
    id = replica(deck)
    deck.send(id, "1: wait first\n1: say one\n2+: say two\n2+: goal complete", goal_mode=True)
    model.waits("first")
    queued = deck.send(id, "say me first")
    assert queued["status"] == "queued"
    until(lambda: accepted(deck, id, queued["message_id"]), "the message in the engine")
    model.release("first")
    reach_goal(deck, id, "complete")
    assert deck.said(id)[1] == "say me first"
    deck.delete(id)


@pytest.mark.long
def test_a_killed_engine_takes_the_thread_up_again(
    deck: Installation, shared: str, model: ModelThread
) -> None:
    id = shared
    deck.turn(id, "say remember 4711")
    cut = deck.send(id, "wait engine\nsay never")
    model.waits("engine")
    old = agents(deck, id)
    os.kill(deck.engine(id), signal.SIGKILL)
    result = deck.result(id, cut["message_id"])
    assert result["stopReason"] == "failed" and "restarted" in result["error"]
    model.release("engine")
    assert deck.turn(id, "say back")["stopReason"] == "end_turn"
    until(lambda: not any(map(runs, old)), "the end of the old codex")
    assert "4711" in json.dumps(served.asked_of(model, "say back").body["input"])


@pytest.mark.long
def test_a_goal_survives_a_killed_agent_and_a_killed_engine(
    deck: Installation, model: ModelThread
) -> None:
    id = replica(deck)
    objective = "1: say one\n2: wait agent\n3: wait engine-2\n4: say four\n4: goal complete"
    deck.send(id, objective, goal_mode=True)
    model.waits("agent")
    for pid in agents(deck, id):
        os.kill(pid, signal.SIGKILL)
    model.waits("engine-2")
    model.release("agent")
    os.kill(deck.engine(id), signal.SIGKILL)
    done = reach_goal(deck, id, "complete")
    model.release("engine-2")
    assert done["tokensUsed"] > 0
    ends = [end["stopReason"] for ends in deck.results(id).values() for end in ends]
    assert ends.count("failed") == 2 and ends[-1] == "end_turn"
    deck.delete(id)


@pytest.mark.long
def test_a_paused_goal_rests_when_the_engine_was_killed(
    deck: Installation, model: ModelThread
) -> None:
    id = replica(deck)
    deck.send(id, "1: wait rest\n2: say two", goal_mode=True)
    model.waits("rest")
    deck.post(f"/v1/replica/{id}/chats/{chat_of(deck, id)}/interrupt")
    reach_goal(deck, id, "paused")
    model.release("rest")
    os.kill(deck.engine(id), signal.SIGKILL)
    assert deck.turn(id, "say awake")["stopReason"] == "end_turn"
    assert goal_now(deck, id)["status"] == "paused"
    assert texts(deck, id).endswith("awake")
    deck.delete(id)


@pytest.mark.long
def test_turns_at_once_in_four_workspaces(deck: Installation, model: ModelThread) -> None:
    ids = [replica(deck, wait=False) for _ in range(4)]
    script = "shell echo {} > /workspace/me\nwait all\nsay {}"
    sent = {id: deck.send(id, script.format(id, id)) for id in ids}
    model.waits("all", 4)
    model.release("all")
    for id, message in sent.items():
        assert deck.result(id, message["message_id"])["stopReason"] == "end_turn"
        assert texts(deck, id).endswith(id)
        assert deck.run(id, "cat /workspace/me")["output"].strip() == id
    for id in ids:
        deck.delete(id)


@pytest.mark.long
def test_a_fork_goes_on_with_the_conversation(
    deck: Installation, shared: str, model: ModelThread
) -> None:
    id = shared
    deck.turn(id, "say of pears")
    fork = deck.post(f"/v1/replica/{id}/fork", {}, 201)["replica"]["id"]
    deck.reach(fork, "active")
    assert deck.turn(fork, "say of plums")["error"] is None
    told = json.dumps(served.asked_of(model, "say of plums").body)
    assert "say of pears" in told
    assert deck.turn(id, "say of cherries")["error"] is None
    told = json.dumps(served.asked_of(model, "say of cherries").body)
    assert "say of pears" in told and "say of plums" not in told
    deck.delete(fork)
