"""The Messages dialect, `POST /v1/messages`: what claude speaks."""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from tests.real_agents.model import calls
from tests.real_agents.model.dialect import USAGE, Body
from tests.real_agents.model.script import Entry, Step

_PLANNERS = ("TodoWrite",)


class Anthropic:
    """Implements `Dialect`."""

    def takes(self, path: str) -> bool:
        return path.endswith(("/messages", "/messages/count_tokens", "/v1/models"))

    def entries(self, body: Body) -> Sequence[Entry]:
        if not _tools(body):
            return ()  # a title or a verdict is asked for
        return [found for one in body.get("messages") or [] for found in _entries(one)]

    def is_call(self, body: Body, step: Step) -> bool:
        return calls.is_call(step, _tools(body), _PLANNERS)

    def reply(self, body: Body) -> "AnthropicReply":
        return AnthropicReply(_tools(body), body.get("model", "told"))

    def answer(self, path: str, body: Body) -> Body | None:
        """The whole answer of a request that is not streamed; a verdict on a command is "harmless"."""
        if path.endswith("/count_tokens"):
            return {"input_tokens": USAGE["input"]}
        if path.endswith("/models"):
            return {"data": [], "has_more": False}
        if body.get("stream"):
            return None
        judges = "<severity>" in json.dumps(body.get("messages"))
        text = {"type": "text", "text": "<severity>0</severity>" if judges else "Done."}
        return {**_message(body.get("model", "told")), "content": [text], "stop_reason": "end_turn"}

    def failure(self, status: int) -> Body:
        told = {"type": _KINDS.get(status, "api_error"), "message": f"told to fail with {status}"}
        return {"type": "error", "error": told}


_KINDS = {401: "authentication_error", 429: "rate_limit_error"}


class AnthropicReply:
    """One answer's events."""

    def __init__(self, tools: set[str], model: str) -> None:
        self._tools = tools
        self._model = model
        self._places = count()
        self._stop = "end_turn"

    def opening(self) -> Iterator[str]:
        yield _event("message_start", message=_message(self._model))

    def step(self, step: Step) -> Iterator[str]:
        match step.kind:
            case "say":
                yield from self._text([step.text])
            case "stream":
                yield from self._text([f"{number} " for number in range(int(step.text))])
            case "think":
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": step.text},
                    {"type": "signature_delta", "signature": "c2lnbmVk"},
                ]
                yield from self._block(block, deltas)
            case "plan" if not calls.first(self._tools, *_PLANNERS):
                yield from self._text([calls.written_plan(step.text)])
            case _:
                self._stop = "tool_use"
                name, arguments = _called(step, self._tools)
                text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                block = {
                    "type": "tool_use",
                    "id": f"toolu_{uuid4().hex}",
                    "name": name,
                    "input": {},
                }
                yield from self._block(block, [{"type": "input_json_delta", "partial_json": text}])

    def closing(self) -> Iterator[str]:
        delta = {"stop_reason": self._stop, "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": USAGE["output"]})
        yield _event("message_stop")

    def _text(self, pieces: Sequence[str]) -> Iterator[str]:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        yield from self._block({"type": "text", "text": ""}, deltas)

    def _block(self, block: Body, deltas: Sequence[Body]) -> Iterator[str]:
        at = next(self._places)
        yield _event("content_block_start", index=at, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=at, delta=delta)
        yield _event("content_block_stop", index=at)


def _called(step: Step, tools: set[str]) -> tuple[str, Any]:
    """Name and arguments of the tool that does a step."""
    match step.kind:
        case "shell":
            return "Bash", {"command": step.text, "description": "What the test wants"}
        case "mcp":
            return calls.of_server(step.text, tools)
        case "tool":
            return calls.named(step.text)
        case "ask":
            return "AskUserQuestion", {"questions": [calls.question(step.text)]}
        case "plan":
            steps = calls.parts(step.text, ";")
            todos = [{"content": o, "status": "pending", "activeForm": o} for o in steps]
            return "TodoWrite", {"todos": todos}
        case _:
            raise ValueError(step.kind)


def _entries(message: Body) -> Iterator[Entry]:
    """A user's message holds results of tools, texts, or both."""
    if message.get("role") != "user":
        return
    content = message.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
        if part.get("type") == "tool_result":
            yield Entry(json.dumps(part.get("content")), result=True)
        elif part.get("type") == "text":
            yield Entry(part.get("text") or "")


def _tools(body: Body) -> set[str]:
    return {tool.get("name", "") for tool in body.get("tools") or []}


def _message(model: str) -> Body:
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": USAGE["input"] - USAGE["cached"],
            "cache_read_input_tokens": USAGE["cached"],
            "cache_creation_input_tokens": 0,
            "output_tokens": USAGE["output"],
        },
    }


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
