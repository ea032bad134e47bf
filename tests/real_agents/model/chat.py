"""The chat completions dialect, `POST .../chat/completions`: what opencode and copilot speak."""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from tests.real_agents.model import calls
from tests.real_agents.model.dialect import USAGE, Body
from tests.real_agents.model.script import Entry, Step

_PLANNERS = ("todowrite",)
_MODEL = "told"


class Chat:
    """Implements `Dialect`."""

    def takes(self, path: str) -> bool:
        return path.endswith(("/chat/completions", "/models"))

    def entries(self, body: Body) -> Sequence[Entry]:
        if not _tools(body):
            return ()  # a title or a summary is asked for
        return [found for one in body.get("messages") or [] if (found := _entry(one))]

    def is_call(self, body: Body, step: Step) -> bool:
        return calls.is_call(step, _tools(body), _PLANNERS)

    def reply(self, body: Body) -> "ChatReply":
        return ChatReply(_tools(body))

    def answer(self, path: str, body: Body) -> Body | None:
        if path.endswith("/models"):
            return {"object": "list", "data": [{"id": _MODEL, "object": "model"}]}
        if body.get("stream"):
            return None
        message = {"role": "assistant", "content": "Done."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {**_head("chat.completion"), "choices": [choice], "usage": _USAGE}

    def failure(self, status: int) -> Body:
        return {"error": {"message": f"told to fail with {status}", "type": "told"}}


class ChatReply:
    """One answer's chunks."""

    def __init__(self, tools: dict[str, Body]) -> None:
        self._tools = tools
        self._finish = "stop"

    def opening(self) -> Iterator[str]:
        yield _chunk({"role": "assistant", "content": ""})

    def step(self, step: Step) -> Iterator[str]:
        match step.kind:
            case "say":
                yield _chunk({"content": step.text})
            case "stream":
                for number in range(int(step.text)):
                    yield _chunk({"content": f"{number} "})
            case "think":
                yield _chunk({"reasoning_content": step.text})
            case "plan" if not calls.first(self._tools, *_PLANNERS):
                yield _chunk({"content": calls.written_plan(step.text)})
            case _:
                self._finish = "tool_calls"
                name, arguments = _called(step, self._tools)
                text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                call = {
                    "index": 0,
                    "id": f"call_{uuid4().hex}",
                    "type": "function",
                    "function": {"name": name, "arguments": text},
                }
                yield _chunk({"tool_calls": [call]})

    def closing(self) -> Iterator[str]:
        yield _chunk({}, self._finish)
        yield f"data: {json.dumps({**_head(_CHUNK), 'choices': [], 'usage': _USAGE})}\n\n"
        yield "data: [DONE]\n\n"


_CHUNK = "chat.completion.chunk"
_USAGE = {
    "prompt_tokens": USAGE["input"],
    "prompt_tokens_details": {"cached_tokens": USAGE["cached"]},
    "completion_tokens": USAGE["output"],
    "total_tokens": USAGE["input"] + USAGE["output"],
}


def _called(step: Step, tools: dict[str, Body]) -> tuple[str, Any]:
    """Name and arguments of the tool that does a step."""
    match step.kind:
        case "shell":
            shell = calls.first(tools, "bash", "run_shell_command") or "bash"
            told = {"command": step.text, "description": "What the test wants"}
            known = _parameters(tools.get(shell, {})) or told
            return shell, {name: told[name] for name in told if name in known}
        case "mcp":
            return calls.of_server(step.text, tools)
        case "tool":
            return calls.named(step.text)
        case "ask" if "question" in tools:
            return "question", {"questions": [calls.question(step.text)]}
        case "ask":
            asked, *options = calls.parts(step.text, "|")
            return "ask_user", {"question": asked, "choices": options}
        case "plan":
            steps = calls.parts(step.text, ";")
            todos = [{"content": o, "status": "pending", "priority": "medium"} for o in steps]
            return "todowrite", {"todos": todos}
        case _:
            raise ValueError(step.kind)


def _entry(message: Body) -> Entry | None:
    match message:
        case {"role": "user", "content": str(text)}:
            return Entry(text)
        case {"role": "user", "content": list(parts)}:
            return Entry("\n".join(part.get("text") or "" for part in parts))
        case {"role": "tool"}:
            return Entry(json.dumps(message.get("content")), result=True)
        case _:
            return None


def _tools(body: Body) -> dict[str, Body]:
    told = [tool.get("function") or tool for tool in body.get("tools") or []]
    return {tool.get("name", ""): tool for tool in told}


def _parameters(tool: Body) -> Body:
    """What a tool takes, where it says so."""
    return tool.get("parameters", {}).get("properties", {})


def _head(kind: str) -> Body:
    return {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": 1, "model": _MODEL}


def _chunk(delta: Body, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**_head(_CHUNK), 'choices': [choice]})}\n\n"
