"""The model server does what it is told, so that what agents do with it can be believed."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.real_agents.model.responses import Responses
from tests.real_agents.model.script import SILENT, Entry, Step, next_steps, read_script
from tests.real_agents.model.server import Model
from tests.support.waiting import WAIT_SECONDS


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with Model.running(Responses()) as running:
        yield running


def _kinds(entries: list[Entry]) -> list[str]:
    return [step.kind for step in next_steps(entries, lambda step: step.kind == "shell")]


def test_a_script_stands_between_other_words() -> None:
    text = (
        "Please do this.\nsay hello there\n  shell ls -l | wc\ngarbage\nsay\ncut it out\n2+: goal x"
    )
    assert read_script(text) == [
        Step("say", "hello there"),
        Step("shell", "ls -l | wc"),
        Step("garbage"),
        Step("goal", "x", 2, True),
    ]


def test_each_result_of_a_tool_leads_one_call_further() -> None:
    user, result = Entry("say a\nshell x\nsay b\nshell y"), Entry("out", result=True)
    assert _kinds([user]) == ["say", "shell"]
    assert _kinds([user, result]) == ["say", "shell"]
    assert next_steps([user, result, result], lambda step: step.kind == "shell") == SILENT
    assert next_steps([Entry("no steps here")], lambda step: False) == SILENT


def test_the_newest_script_counts_and_other_texts_do_not_hide_it() -> None:
    result = Entry("out", result=True)
    entries = [Entry("shell x"), result, Entry("shell y\nthink a"), Entry("# context")]
    assert _kinds(entries) == ["shell"]
    assert _kinds([*entries, result]) == ["think"]


def test_steps_may_wait_for_a_later_telling() -> None:
    told = Entry("1: say a\n2: think b\n2+: garbage")
    assert [_kinds([told] * times) for times in (1, 2, 3)] == [
        ["say"],
        ["think", "garbage"],
        ["garbage"],
    ]


def _asking(text: str, *tools: str) -> dict[str, Any]:
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"input": [message], "tools": [{"name": name} for name in tools]}


async def _ask(model: Model, text: str, *tools: str) -> tuple[int, str]:
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as client:
        answer = await client.post(f"{model.url}/v1/responses", json=_asking(text, *tools))
        return answer.status_code, answer.text


def _events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]


async def test_an_answer_streams_and_ends_with_its_usage(model: Model) -> None:
    status, text = await _ask(model, "stream 3\nshell echo x", "exec_command")
    events = _events(text)
    assert status == 200
    deltas = [one["delta"] for one in events if one["type"] == "response.output_text.delta"]
    assert deltas == ["0 ", "1 ", "2 "]
    call = next(one["item"] for one in events if one.get("item", {}).get("name"))
    assert (call["name"], json.loads(call["arguments"])) == ("exec_command", {"cmd": "echo x"})
    assert events[-1]["response"]["usage"]["total_tokens"] == 110
    assert model.requests[0].path == "/v1/responses"


async def test_it_fails_when_told_to(model: Model) -> None:
    assert (await _ask(model, "fail 429"))[0] == 429
    with pytest.raises(httpx.RemoteProtocolError):
        await _ask(model, "say x\ncut")
    assert "{not json" in (await _ask(model, "garbage"))[1]


async def test_an_answer_waits_for_its_release(model: Model) -> None:
    asking = asyncio.create_task(_ask(model, "wait here\nsay done"))
    await model.waits("here")
    assert not asking.done()
    model.release("here")
    assert "done" in (await asking)[1]


def test_each_turn_towards_a_goal_is_told_that_goal() -> None:
    def goal(text: str) -> dict[str, Any]:
        return {"type": "function_call_output", "name": "goal_objective", "output": text}

    going_on = _asking('<codex_internal_context source="goal">')["input"]
    told = [goal("say a"), *going_on, *going_on, goal("say b"), *going_on]
    texts = [entry.text for entry in Responses().entries({"input": told})]
    assert texts == ["say a", "say a", "say b"]
