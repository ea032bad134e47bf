"""The dialects of providers other than the first, as their agents' libraries read them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.real_agents.model.anthropic import Anthropic
from tests.real_agents.model.chat import Chat
from tests.real_agents.model.gemini import Gemini
from tests.real_agents.model.server import Model
from tests.support.waiting import WAIT_SECONDS

Body = dict[str, Any]


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with Model.running(Chat(), Anthropic(), Gemini()) as running:
        yield running


async def _ask(model: Model, path: str, body: Body) -> list[Body]:
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as client:
        answer = await client.post(f"{model.url}{path}", json=body)
    lines = [line[5:].strip() for line in answer.text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"] or [answer.json()]


CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
GENERATE = "/v1beta/models/m:streamGenerateContent"


def _chat(*messages: Body, tools: tuple[str, ...] = ("bash", "notes_add")) -> Body:
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return {"stream": True, "messages": list(messages), "tools": offered}


def _deltas(chunks: list[Body]) -> list[Body]:
    return [one["choices"][0]["delta"] for one in chunks if one["choices"]]


async def test_chat_completions_say_call_and_go_on(model: Model) -> None:
    told = {"role": "user", "content": [{"type": "text", "text": "stream 2\nshell ls\nsay end"}]}
    chunks = await _ask(model, CHAT, _chat(told))
    assert [one["content"] for one in _deltas(chunks) if one.get("content")] == ["0 ", "1 "]
    (call,) = (one for delta in _deltas(chunks) for one in delta.get("tool_calls", ()))
    assert call["function"]["name"] == "bash"
    assert json.loads(call["function"]["arguments"])["command"] == "ls"
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["total_tokens"] == 110
    result = {"role": "tool", "tool_call_id": call["id"], "content": "files"}
    after = await _ask(model, CHAT, _chat(told, {"role": "assistant"}, result))
    assert [one["content"] for one in _deltas(after) if one.get("content")] == ["end"]


async def test_chat_completions_find_the_tool_of_a_server(model: Model) -> None:
    told = {"role": "user", "content": 'mcp notes add {"text": "x"}'}
    (call,) = (
        one
        for delta in _deltas(await _ask(model, CHAT, _chat(told)))
        for one in delta.get("tool_calls", ())
    )
    assert call["function"] == {"name": "notes_add", "arguments": '{"text": "x"}'}


async def test_a_title_is_plain_text_whatever_the_script(model: Model) -> None:
    told = {"role": "user", "content": "fail 500\nshell ls"}
    chunks = await _ask(model, CHAT, _chat(told, tools=()))
    assert _deltas(chunks)[1] == {"content": "Done."}
    (whole,) = await _ask(model, CHAT, {"messages": [told]})
    assert whole["choices"][0]["message"]["content"] == "Done."


async def test_messages_say_call_and_go_on(model: Model) -> None:
    told = {"role": "user", "content": [{"type": "text", "text": "think hm\nshell ls\nsay end"}]}
    body = {"stream": True, "messages": [told], "tools": [{"name": "Bash"}], "model": "m"}
    events = await _ask(model, MESSAGES, body)
    blocks = [one["content_block"] for one in events if one["type"] == "content_block_start"]
    assert [one["type"] for one in blocks] == ["thinking", "tool_use"]
    assert blocks[1]["name"] == "Bash"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}
    body["messages"] = [told, {"role": "assistant", "content": []}, result]
    texts = [
        one["delta"]["text"]
        for one in await _ask(model, MESSAGES, body)
        if one["type"] == "content_block_delta"
    ]
    assert texts == ["end"]
    assert await _ask(model, f"{MESSAGES}/count_tokens", body) == [{"input_tokens": 100}]


async def test_generated_content_says_calls_and_goes_on(model: Model) -> None:
    told = {"role": "user", "parts": [{"text": "think hm\nshell ls\nsay end"}]}
    tools = [{"functionDeclarations": [{"name": "run_shell_command"}]}]
    chunks = await _ask(model, GENERATE, {"contents": [told], "tools": tools})
    parts = [one["candidates"][0]["content"]["parts"][0] for one in chunks]
    assert parts[0] == {"text": "hm", "thought": True}
    assert parts[1]["functionCall"]["name"] == "run_shell_command"
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    result = {"role": "user", "parts": [{"functionResponse": {"name": "run_shell_command"}}]}
    contents = [told, {"role": "model", "parts": []}, result]
    after = await _ask(model, GENERATE, {"contents": contents, "tools": tools})
    assert after[0]["candidates"][0]["content"]["parts"] == [{"text": "end"}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, _chat({"role": "user", "content": "fail 429"})),
        (
            MESSAGES,
            {"messages": [{"role": "user", "content": "fail 429"}], "tools": [{"name": "B"}]}
            | {"stream": True},
        ),
        (
            GENERATE,
            {"contents": [{"role": "user", "parts": [{"text": "fail 429"}]}]}
            | {"tools": [{"functionDeclarations": [{"name": "r"}]}]},
        ),
    ],
)
async def test_each_fails_when_told_to(model: Model, path: str, body: Body) -> None:
    (told,) = await _ask(model, path, body)
    assert told["error"]["message"] == "told to fail with 429"
