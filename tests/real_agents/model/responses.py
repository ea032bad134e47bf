"""The Responses dialect, `POST /v1/responses`: what codex speaks."""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from tests.real_agents.model.dialect import USAGE, Body
from tests.real_agents.model.script import CALLS, Entry, Step

GOAL = "goal_objective"
"""Name of a result that no call asked for: codex tells the model its goal so, once."""
_CONTINUES = '<codex_internal_context source="goal">'
_RESULTS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output")


class Responses:
    """Implements `Dialect`."""

    def takes(self, path: str) -> bool:
        return path.endswith("/responses")

    def entries(self, body: Body) -> Sequence[Entry]:
        goal = ""
        found: list[Entry | None] = []
        for item in body.get("input") or []:
            if item.get("name") == GOAL:
                goal = str(item.get("output"))
            found.append(_entry(item, goal))
        return [entry for entry in found if entry]

    def is_call(self, body: Body, step: Step) -> bool:
        return step.kind in CALLS or (step.kind == "plan" and "update_plan" in _tools(body))

    def reply(self, body: Body) -> "ResponsesReply":
        return ResponsesReply(_tools(body))

    def answer(self, path: str, body: Body) -> Body | None:
        return None

    def failure(self, status: int) -> Body:
        return {"error": {"message": f"told to fail with {status}", "type": "told"}}


class ResponsesReply:
    """One answer's events."""

    def __init__(self, tools: set[str]) -> None:
        self._tools = tools
        self._id = f"resp_{uuid4().hex}"
        self._places = count()

    def opening(self) -> Iterator[str]:
        yield _event("response.created", response={"id": self._id})

    def step(self, step: Step) -> Iterator[str]:
        match step.kind:
            case "say":
                yield from self._message([step.text])
            case "stream":
                yield from self._message([f"{number} " for number in range(int(step.text))])
            case "think":
                yield from self._thought(step.text)
            case "plan" if "update_plan" not in self._tools:
                steps = "\n".join(f"- {one}" for one in _split(step.text, ";"))
                yield from self._message([f"<proposed_plan>\n{steps}\n</proposed_plan>"])
            case _:
                yield self._call(*_called(step, self._tools))

    def closing(self) -> Iterator[str]:
        usage = {
            "input_tokens": USAGE["input"],
            "input_tokens_details": {"cached_tokens": USAGE["cached"]},
            "output_tokens": USAGE["output"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": USAGE["input"] + USAGE["output"],
        }
        yield _event("response.completed", response={"id": self._id, "usage": usage})

    def _message(self, pieces: Sequence[str]) -> Iterator[str]:
        at, id = next(self._places), f"msg_{uuid4().hex}"
        item: Body = {"type": "message", "role": "assistant", "id": id, "content": []}
        yield _event("response.output_item.added", output_index=at, item=item)
        for piece in pieces:
            place = {"output_index": at, "content_index": 0, "item_id": id}
            yield _event("response.output_text.delta", delta=piece, **place)
        whole = [{"type": "output_text", "text": "".join(pieces)}]
        yield _event("response.output_item.done", output_index=at, item={**item, "content": whole})

    def _thought(self, text: str) -> Iterator[str]:
        at, id = next(self._places), f"rs_{uuid4().hex}"
        item: Body = {"type": "reasoning", "id": id, "summary": []}
        yield _event("response.output_item.added", output_index=at, item=item)
        place = {"output_index": at, "summary_index": 0, "item_id": id}
        yield _event("response.reasoning_summary_part.added", **place)
        yield _event("response.reasoning_summary_text.delta", delta=text, **place)
        whole = [{"type": "summary_text", "text": text}]
        yield _event("response.output_item.done", output_index=at, item={**item, "summary": whole})

    def _call(self, name: str, arguments: Any, namespace: str | None = None) -> str:
        item = {
            "type": "function_call",
            "id": f"fc_{uuid4().hex}",
            "call_id": f"call_{uuid4().hex}",
            "name": name,
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            **({"namespace": namespace} if namespace else {}),
        }
        at = next(self._places)
        return _event("response.output_item.done", output_index=at, item=item)


def _called(step: Step, tools: set[str]) -> tuple[Any, ...]:
    """Name, arguments and namespace of the tool that does a step."""
    match step.kind:
        case "shell" if "exec_command" in tools:
            return "exec_command", {"cmd": step.text}
        case "shell":
            return "shell", {"command": ["bash", "-lc", step.text]}
        case "mcp":
            server, tool, arguments = (*step.text.split(" ", 2), "{}")[:3]
            return tool, arguments, f"mcp__{server}"
        case "tool":
            name, arguments = (*step.text.split(" ", 1), "{}")[:2]
            return name, arguments
        case "ask":
            return "request_user_input", {"questions": [_question(step.text)]}
        case "goal":
            return "update_goal", {"status": step.text}
        case "plan":
            plan = [{"step": one, "status": "pending"} for one in _split(step.text, ";")]
            return "update_plan", {"plan": plan}
        case _:
            raise ValueError(step.kind)


def _question(text: str) -> Body:
    question, *options = _split(text, "|")
    return {
        "id": "q1",
        "header": "Question",
        "question": question,
        "options": [{"label": one, "description": one} for one in options],
    }


def _split(text: str, sign: str) -> list[str]:
    return [part.strip() for part in text.split(sign) if part.strip()]


def _entry(item: Body, goal: str) -> Entry | None:
    match item:
        case {"type": "message", "role": "user", "content": list(parts)}:
            text = "\n".join(part.get("text", "") for part in parts)
            # Each turn towards a goal begins so; what is to be done stands in the goal.
            return Entry(goal) if goal and text.startswith(_CONTINUES) else Entry(text)
        case {"type": kind} if kind in _RESULTS and item.get("name") != GOAL:
            return Entry(json.dumps(item.get("output")), result=True)
        case _:
            return None


def _tools(body: Body) -> set[str]:
    return {tool.get("name") or tool.get("type", "") for tool in body.get("tools") or []}


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
