"""What goes wrong with codex: its model, its process, its key; and that the chat goes on."""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.port import (
    AgentDiedError,
    AgentUnavailableError,
    Prompt,
    StopReason,
)
from quarterdeck.agents.processes import _marked
from quarterdeck.wire.history import AgentEvent
from tests.real_agents.codex.place import Place
from tests.support.trees import files_under

KEY = "sk-test-0123456789-secret"


def prompt(text: str, **more: Any) -> Prompt:
    return Prompt("m", text, **more)


def runs(event: AgentEvent) -> bool:
    return event.payload.get("sessionUpdate") == "tool_call"


@pytest.mark.long
@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("fail 401", "401 Unauthorized.*Check its key"),
        ("fail 429", "429 Too Many Requests.*Wait a while"),
        ("fail 500", "high demand.*Try again later"),
        ("say x\ncut", "disconnected before completion"),
        ("garbage", "disconnected before completion"),
    ],
)
async def test_an_error_of_the_model_ends_the_turn_and_not_the_chat(
    place: Place, failure: str, told: str
) -> None:
    session = await place.open()
    outcome = await session.prompt(prompt(failure))
    assert outcome.stop_reason == StopReason.FAILED
    assert outcome.error is not None
    assert re.search(told, outcome.error), outcome.error
    assert outcome.error.startswith("Codex reported an error: ")
    assert (await session.prompt(prompt("say again"))).stop_reason == StopReason.END_TURN
    assert place.heard.text().endswith("again")


@pytest.mark.long
async def test_an_interrupt_stops_the_answer(place: Place) -> None:
    session = await place.open()
    turn = asyncio.create_task(session.prompt(prompt("say begun\nwait gate\nsay never")))
    await place.model.waits("gate")
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    place.model.release("gate")
    assert (await session.prompt(prompt("say next"))).stop_reason == StopReason.END_TURN
    assert "never" not in place.heard.text()


@pytest.mark.long
async def test_an_interrupt_stops_commands_and_what_they_started(place: Place) -> None:
    session = await place.open()
    mark = session._link._process._tree._mark  # type: ignore[union-attr]
    text = "shell setsid sleep 1000 & echo $$ > pid; exec sleep 1000\nsay after"
    turn = asyncio.create_task(session.prompt(prompt(text)))
    await place.heard.until(runs)
    async with asyncio.timeout(60):
        while not (place.directory / "pid").exists():  # noqa: ASYNC110 (another process writes it)
            await asyncio.sleep(0.01)
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    ends = [
        one.payload
        for one in place.heard.events
        if one.payload.get("sessionUpdate") == "tool_call_update"
    ]
    assert ends[-1]["status"] == "failed"
    assert _marked(mark, b"CODEX_TOOL_CALL_ID=") == []
    assert (await session.prompt(prompt("say next"))).stop_reason == StopReason.END_TURN


@pytest.mark.long
async def test_an_interrupt_calls_off_what_was_asked(place: Place) -> None:
    place.ask_always()
    session = await place.open()
    turn = asyncio.create_task(session.prompt(prompt("shell touch a")))
    request = await place.heard.until(lambda event: event.type == "acp-permission_request")
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    assert not (place.directory / "a").exists()
    outcome = await place.heard.until(lambda event: event.type == "acp-permission_outcome")
    assert outcome.payload["outcome"] == {"outcome": "cancelled"}
    assert not await session.respond(request.payload["requestId"], "accept", None)


@pytest.mark.long
async def test_killed_in_mid_turn_it_goes_on_with_its_thread(place: Place) -> None:
    session = await place.open()
    await session.prompt(prompt("say remember the number 4711"))
    thread = session.id
    turn = asyncio.create_task(session.prompt(prompt("shell sleep 1000")))
    await place.heard.until(runs)
    os.kill(place.pid(session), signal.SIGKILL)
    with pytest.raises(AgentDiedError, match="killed by signal 9"):
        await turn
    assert (await session.prompt(prompt("say back"))).stop_reason == StopReason.END_TURN
    assert session.id == thread
    assert "4711" in json.dumps(place.model.requests[-1].body["input"])
    assert place.heard.text().endswith("back")


@pytest.mark.long
async def test_another_process_takes_the_thread_up(place: Place) -> None:
    first = await place.open()
    await first.prompt(prompt("say remember the number 4711"))
    await first.close()
    second = await place.open(session_id=first.id)
    await second.prompt(prompt("say again"))
    assert second.id == first.id
    assert "4711" in json.dumps(place.model.requests[-1].body["input"])
    assert place.heard.text().endswith("again")


@pytest.mark.long
async def test_a_thread_that_is_gone_starts_afresh_and_says_so(place: Place) -> None:
    gone = "01a20041-333b-78c0-8bdb-eb6ab23a6d16"
    session = await place.open(session_id=gone)
    assert session.id != gone
    await session.prompt(prompt("say x"))
    assert "could not be reopened" in place.heard.text()


@pytest.mark.long
async def test_a_key_reaches_the_model_and_nothing_else(place: Place) -> None:
    place.configure(f'openai_base_url = "{place.model.url}/v1"\nmodel = "gpt-5.5"\n')
    session = await place.open(key=KEY)
    outcome = await session.prompt(prompt("shell echo key=$OPENAI_API_KEY; env\nsay done"))
    assert outcome.stop_reason == StopReason.END_TURN, outcome.error
    asked = [one for one in place.model.requests if one.path.endswith("/responses")]
    assert asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps([event.payload for event in place.heard.events])
    await session.close()
    assert not [path for path, content in files_under(place.home) if KEY.encode() in content]


async def test_without_a_key_or_log_in_it_says_what_to_do(place: Place) -> None:
    place.configure(f'openai_base_url = "{place.model.url}/v1"\n')
    with pytest.raises(AgentUnavailableError, match=r"no key: set the variable OPENAI_API_KEY"):
        await place.open()


@pytest.mark.long
async def test_a_log_in_of_the_persons_own_is_left_alone(place: Place) -> None:
    place.configure(f'openai_base_url = "{place.model.url}/v1"\nmodel = "gpt-5.5"\n')
    login = place.home / ".codex" / "auth.json"
    login.write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-own"}))
    session = await place.open(key=KEY)
    await session.prompt(prompt("say hello"))
    asked = [one for one in place.model.requests if one.path.endswith("/responses")]
    assert asked[0].headers["authorization"] == "Bearer sk-own"


@pytest.mark.long
async def test_a_wrong_configuration_is_told(place: Place) -> None:
    place.configure("model = [broken")
    with pytest.raises(AgentUnavailableError, match=r"config.toml"):
        await place.open()


async def test_it_is_not_installed(place: Place) -> None:
    place.environment["PATH"] = "/nowhere"
    with pytest.raises(AgentUnavailableError, match="not installed: codex is not on the PATH"):
        await place.open()


@pytest.fixture
def impostor(place: Place, tmp_path: Path) -> Any:
    """Puts a program in codex's place that does what a test says."""

    def install(body: str) -> None:
        programs = tmp_path / "programs"
        programs.mkdir()
        script = programs / "codex"
        script.write_text(f"#!{sys.executable}\nimport json, sys, time\n{body}")
        script.chmod(0o755)
        place.environment["PATH"] = f"{programs}:{place.environment['PATH']}"

    return install


@pytest.mark.long
async def test_garbage_in_place_of_the_protocol_is_quoted(place: Place, impostor: Any) -> None:
    impostor("print('what is this?'); sys.exit(3)")
    with pytest.raises(AgentUnavailableError, match=r"(?s)exit status 3.*what is this\?"):
        await place.open()


@pytest.mark.long
async def test_a_request_that_nobody_knows_is_answered_with_an_error(
    place: Place, impostor: Any
) -> None:
    impostor(
        """
def send(**message): print(json.dumps(message), flush=True)
def answer(result): send(id=json.loads(sys.stdin.readline())["id"], result=result)
def skip(): return json.loads(sys.stdin.readline())
answer({}); skip()
answer({"requiresOpenaiAuth": False}); answer({"config": {}})
answer({"thread": {"id": "t"}, "model": "m"}); answer({"goal": None})
answer({"data": []}); answer({"data": []})
asked = skip()
send(id=asked["id"], result={"turn": {"id": "u"}})
send(id="x", method="vendor/ask", params={})
reply = skip()
send(method="item/agentMessage/delta", params={"threadId": "t", "itemId": "i", "delta": json.dumps(reply)})
send(method="vendor/news", params={"threadId": "t"})
send(method="item/completed", params={"threadId": "t", "item": {"type": "hologram", "id": "h"}})
send(method="turn/completed", params={"threadId": "t", "turn": {"id": "u", "status": "completed"}})
time.sleep(60)
"""
    )
    session = await place.open()
    outcome = await session.prompt(prompt("hello"))
    assert outcome.stop_reason == StopReason.END_TURN
    reply = json.loads(place.heard.text())
    assert reply["id"] == "x" and reply["error"]["code"] == -32601
    [call] = place.heard.payloads("tool_call")
    assert call["title"] == "Hologram"


HANGING = """
def send(**message): print(json.dumps(message), flush=True)
def skip(): return json.loads(sys.stdin.readline())
def answer(result): send(id=skip()["id"], result=result)
answer({}); skip()
answer({"requiresOpenaiAuth": False}); answer({"config": {}})
answer({"thread": {"id": "t"}, "model": "m"}); answer({"goal": None})
answer({"data": []}); answer({"data": []})
send(id=skip()["id"], result={"turn": {"id": "u"}})
send(method="item/agentMessage/delta", params={"threadId": "t", "itemId": "i", "delta": "x"})
time.sleep(1000)
"""


@pytest.mark.long
async def test_one_in_which_nothing_happens_is_given_up(place: Place, impostor: Any) -> None:
    impostor(HANGING)
    session = await place.open(timeouts={"silence": 0.2})
    with pytest.raises(AgentDiedError, match=r"Codex did nothing for 0\.2 seconds"):
        await session.prompt(prompt("hello"))


@pytest.mark.long
async def test_one_that_hangs_is_killed_by_an_interrupt(place: Place, impostor: Any) -> None:
    impostor(HANGING)
    session = await place.open(timeouts={"cancel": 0.2})
    turn = asyncio.create_task(session.prompt(prompt("hello")))
    await place.heard.until(lambda event: True)
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
