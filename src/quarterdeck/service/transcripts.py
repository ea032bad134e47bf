"""The native transcript of codex's chats, made from the stored events (docs/interface.md 5).

Nothing is stored for it: a finished call carries codex's own item, and everything else that codex
reports follows from the events. The id of a turn is that of its message.
"""

from datetime import datetime
from typing import Any, cast

from quarterdeck.wire.base import iso_text
from quarterdeck.wire.history import AgentEventType

NATIVE_AGENT = "codex"
"""The agent with a native transcript."""

Item = dict[str, Any]

_STATUS = {"cancelled": "interrupted", "failed": "failed"}
_CALL_STATUS = {"completed": "completed", "failed": "failed"}
_KINDS = {"execute": "commandExecution", "edit": "fileChange", "fetch": "webSearch"}


class TurnFold:
    """One turn, built from its events in order."""

    def __init__(self) -> None:
        self._id = ""
        self._items: dict[str, Item] = {}
        self._status = "inProgress"
        self._error: Item | None = None
        self._started: object = None
        self._completed: object = None

    def add(self, event: Item) -> None:
        """Add the next event."""
        payload = _object(event.get("payload"))
        match event.get("type"):
            case AgentEventType.USER_MESSAGE:
                self._start_turn(payload, event.get("timestamp"))
            case AgentEventType.TURN_RESULT:
                self._end(payload, event.get("timestamp"))
            case AgentEventType.SESSION_UPDATE:
                self._update(payload)
            case _:
                return

    def turn(self) -> Item:
        """Return the turn as far as it is known."""
        return {
            "id": self._id,
            "items": list(self._items.values()),
            "status": self._status,
            **({"error": self._error} if self._error else {}),
            **({"startedAt": self._started} if self._started else {}),
            **({"completedAt": self._completed} if self._completed else {}),
        }

    def _start_turn(self, payload: Item, at: object) -> None:
        self._id, self._started = str(payload.get("messageId")), _wire_time(at)
        content: list[Item] = [{"type": "text", "text": payload.get("text", "")}]
        for image in _objects(payload.get("images")):
            content.append({"type": "image", "url": _object(image.get("source")).get("url")})
        self._items[self._id] = {"type": "userMessage", "id": self._id, "content": content}

    def _end(self, payload: Item, at: object) -> None:
        reason, self._completed = str(payload.get("stopReason")), _wire_time(at)
        self._status = _STATUS.get(reason, "completed")
        if payload.get("error"):
            self._error = {"message": payload["error"]}

    def _update(self, payload: Item) -> None:
        match payload.get("sessionUpdate"):
            case "agent_message_chunk":
                self._add_text(payload)
            case "agent_thought_chunk":
                self._thought(payload)
            case "tool_call" | "tool_call_update":
                self._called(payload)
            case _:
                return

    def _add_text(self, payload: Item) -> None:
        kind = "plan" if _object(payload.get("_meta")).get("item") == "plan" else "agentMessage"
        item = self._item(payload.get("messageId"), {"type": kind, "text": ""})
        item["text"] += _text(payload)

    def _thought(self, payload: Item) -> None:
        """Note that the parts of a thought are named after it: `ID.NUMBER`."""
        name = payload.get("messageId")
        id, _, part = name.partition(".") if isinstance(name, str) else (None, "", "")
        item = self._item(id, {"type": "reasoning", "summary": [], "content": []})
        texts: list[str] = item["content" if part.startswith("raw") else "summary"]
        number = int(part.rpartition(".")[2]) if part.rpartition(".")[2].isdecimal() else 0
        texts += [""] * (min(number, len(texts)) + 1 - len(texts))
        texts[min(number, len(texts) - 1)] += _text(payload)

    def _called(self, payload: Item) -> None:
        id = str(payload.get("toolCallId"))
        native = _object(payload.get("rawOutput"))
        if isinstance(native.get("type"), str):
            self._items[id] = native
            return
        kind = _KINDS.get(str(payload.get("kind")), "mcpToolCall")
        item = self._item(id, {"type": kind, "status": "inProgress"})
        if status := _CALL_STATUS.get(str(payload.get("status"))):
            item["status"] = status
        arguments = _object(payload.get("rawInput"))
        match item["type"]:
            case "commandExecution":
                item |= {name: arguments[name] for name in ("command", "cwd") if name in arguments}
                item |= {name: item.get(name) for name in ("exitCode", "durationMs")}
                item["aggregatedOutput"] = _shown(payload) or item.get("aggregatedOutput")
            case "fileChange":
                paths = [place.get("path") for place in _objects(payload.get("locations"))]
                item["changes"] = [{"path": path} for path in paths] or item.get("changes", [])
            case "webSearch":
                item["query"] = payload.get("title") or item.get("query")
            case _:
                item["tool"] = payload.get("title") or item.get("tool")
                item["arguments"] = payload.get("rawInput") or item.get("arguments")

    def _item(self, id: object, new: Item) -> Item:
        """Return the item with an id; a part without one belongs to the item before it."""
        name = id if isinstance(id, str) else f"{self._id}.{len(self._items)}"
        if name not in self._items:
            self._items[name] = {"type": new.pop("type"), "id": name, **new}
        return self._items[name]


def _text(payload: Item) -> str:
    return str(_object(payload.get("content")).get("text") or "")


def _shown(payload: Item) -> str:
    parts = _objects(payload.get("content"))
    return "".join(str(_object(part.get("content")).get("text") or "") for part in parts)


def _object(value: object) -> Item:
    return cast("Item", value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[Item]:
    return [_object(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _wire_time(timestamp: object) -> str | None:
    """Return the time of an event as ISO 8601 text (docs/interface.md 11), or None."""
    try:
        return iso_text(datetime.fromisoformat(str(timestamp)))
    except ValueError:
        return None
