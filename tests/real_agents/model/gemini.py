"""The dialect of `POST /v1beta/models/M:streamGenerateContent`: what gemini speaks."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.real_agents.model import calls
from tests.real_agents.model.dialect import USAGE, Body
from tests.real_agents.model.script import Entry, Step

_PLANNERS = ("write_todos",)


class Gemini:
    """Implements `Dialect`."""

    def takes(self, path: str) -> bool:
        return path.endswith((":streamGenerateContent", ":generateContent", ":countTokens"))

    def entries(self, body: Body) -> Sequence[Entry]:
        if not _tools(body):
            return ()  # a title or a choice of the model is asked for
        return [found for one in body.get("contents") or [] for found in _entries(one)]

    def is_call(self, body: Body, step: Step) -> bool:
        return calls.is_call(step, _tools(body), _PLANNERS)

    def reply(self, body: Body) -> "GeminiReply":
        return GeminiReply(_tools(body))

    def answer(self, path: str, body: Body) -> Body | None:
        if path.endswith(":countTokens"):
            return {"totalTokens": USAGE["input"]}
        return _chunk([{"text": "Done."}], "STOP") if path.endswith(":generateContent") else None

    def failure(self, status: int) -> Body:
        told = {"code": status, "message": f"told to fail with {status}", "status": "TOLD"}
        return {"error": told}


class GeminiReply:
    """One answer's chunks."""

    def __init__(self, tools: set[str]) -> None:
        self._tools = tools

    def opening(self) -> Iterator[str]:
        yield from ()

    def step(self, step: Step) -> Iterator[str]:
        match step.kind:
            case "say":
                yield _line({"text": step.text})
            case "stream":
                for number in range(int(step.text)):
                    yield _line({"text": f"{number} "})
            case "think":
                yield _line({"text": step.text, "thought": True})
            case "plan" if not calls.first(self._tools, *_PLANNERS):
                yield _line({"text": calls.written_plan(step.text)})
            case _:
                name, arguments = _called(step, self._tools)
                filled = json.loads(arguments) if isinstance(arguments, str) else arguments
                yield _line({"functionCall": {"name": name, "args": filled}})

    def closing(self) -> Iterator[str]:
        # Without a text the agent takes the answer for broken and asks again.
        yield f"data: {json.dumps(_chunk([{'text': ''}], 'STOP'))}\n\n"


def _called(step: Step, tools: set[str]) -> tuple[str, Any]:
    """Name and arguments of the tool that does a step."""
    match step.kind:
        case "shell":
            return "run_shell_command", {"command": step.text, "description": "As told"}
        case "mcp":
            return calls.of_server(step.text, tools)
        case "tool":
            return calls.named(step.text)
        case "ask":
            return "ask_user", {"questions": [{**calls.question(step.text), "type": "choice"}]}
        case "plan":
            todos = [{"description": o, "status": "pending"} for o in calls.parts(step.text, ";")]
            return "write_todos", {"todos": todos}
        case _:
            raise ValueError(step.kind)


def _entries(content: Body) -> Iterator[Entry]:
    if content.get("role") != "user":
        return
    for part in content.get("parts") or []:
        if "functionResponse" in part:
            yield Entry(json.dumps(part["functionResponse"]), result=True)
        elif part.get("text"):
            yield Entry(part["text"])


def _tools(body: Body) -> set[str]:
    told = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations", ())]
    return {one.get("name", "") for one in told}


def _line(part: Body) -> str:
    return f"data: {json.dumps(_chunk([part]))}\n\n"


def _chunk(parts: Sequence[Body], finish: str | None = None) -> Body:
    candidate = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    ended = {"finishReason": finish} if finish else {}
    usage = {
        "promptTokenCount": USAGE["input"],
        "cachedContentTokenCount": USAGE["cached"],
        "candidatesTokenCount": USAGE["output"],
        "totalTokenCount": USAGE["input"] + USAGE["output"],
    }
    return {"candidates": [{**candidate, **ended}], "usageMetadata": usage}
