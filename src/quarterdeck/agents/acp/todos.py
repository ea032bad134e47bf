"""Plans of agents that keep them with a tool and do not tell them as plans."""

from typing import Any, cast

from quarterdeck.agents.objects import as_object


class Todos:
    """Finds the plan in the calls of one tool."""

    def __init__(self, tool: str | None) -> None:
        self._tool = tool
        self._calls: set[str] = set()

    def plan(self, update: dict[str, Any]) -> dict[str, Any] | None:
        """The plan that an update tells, as an update of its own."""
        call = update.get("toolCallId")
        if self._tool is None or not isinstance(call, str):
            return None
        if update.get("sessionUpdate") == "tool_call" and update.get("title") == self._tool:
            self._calls.add(call)
        todos = as_object(update.get("rawInput")).get("todos")
        if call not in self._calls or not isinstance(todos, list):
            return None
        self._calls.discard(call)
        entries = [_entry(as_object(todo)) for todo in cast("list[object]", todos)]
        return {"sessionUpdate": "plan", "entries": entries}


def _entry(todo: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": str(todo.get("content", "")),
        "status": str(todo.get("status", "pending")),
        "priority": str(todo.get("priority", "medium")),
    }
