"""Codex's items as the tool calls of the Agent Client Protocol.

`rawOutput` of a finished call is codex's own item, so nothing that it told is lost.
"""

import shlex
from collections.abc import Callable
from typing import Any, cast

from quarterdeck.agents.codex.patches import diff_parts, first_line
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.output import KEPT

Item = dict[str, Any]
Update = dict[str, Any]

TALK = frozenset({"userMessage", "agentMessage", "reasoning", "plan"})
"""Items that are no calls: the person's own words, and what is told in chunks."""
UNTOLD = frozenset({"userMessage", "functionCallOutput", "hookPrompt"})
"""What codex tells the model, not the person."""

_SHELLS = ("bash", "sh", "zsh", "dash")
_STATUS = {
    "inProgress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "declined": "failed",
    "interrupted": "failed",
}


def started(item: Item) -> Update:
    """A call begins."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": item["id"],
        "status": "in_progress",
        **described(item),
    }


def ended(item: Item, shown: bool) -> Update:
    """A call is over; with `shown`, parts of its output were shown while it ran."""
    told = dict(item)
    content = _content(item)
    output = item.get("aggregatedOutput")
    if isinstance(output, str):
        told["aggregatedOutput"] = output = kept(output)
        if shown:
            content = [text_part(output)]
    return {
        **_update(item),
        "status": _STATUS.get(str(item.get("status")), "completed"),
        **({"content": content} if content else {}),
        "rawOutput": told,
    }


def progressed(item_id: str, content: list[dict[str, Any]]) -> Update:
    """A call shows what it has done so far."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": item_id, "content": content}


def cut_off(item_id: str) -> Update:
    """A call that nobody will tell the end of."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": item_id, "status": "failed"}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def described(item: Item) -> dict[str, Any]:
    """Title, kind and input of a call, and the files it is about."""
    describe = _DESCRIPTIONS.get(str(item.get("type")), _other)
    return describe(item)


def command_of(item: Item) -> str:
    """The command as a person would write it: without the shell that codex puts around."""
    command = str(item.get("command") or "")
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    match words:
        case [shell, "-lc" | "-c", inner] if shell.rpartition("/")[2] in _SHELLS:
            return inner
        case _:
            return command


def kept(output: str) -> str:
    """The end of an output, as long as outputs are kept."""
    if len(output) <= KEPT:
        return output
    return f"[{len(output) - KEPT:,} characters of earlier output left out]\n{output[-KEPT:]}"


def changes_of(item: Item) -> list[Item]:
    """The changed files of an item."""
    return [as_object(one) for one in cast("list[object]", item.get("changes") or [])]


def patch_content(changes: list[Item]) -> list[dict[str, Any]]:
    return [part for change in changes for part in diff_parts(change)]


def _update(item: Item) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": item["id"], **described(item)}


def _content(item: Item) -> list[dict[str, Any]]:
    match item.get("type"):
        case "fileChange":
            return patch_content(changes_of(item))
        case "mcpToolCall" | "dynamicToolCall":
            return _told_by_tool(item)
        case _:
            return []


def _told_by_tool(item: Item) -> list[dict[str, Any]]:
    if error := as_object(item.get("error")).get("message"):
        return [text_part(str(error))]
    result = as_object(item.get("result"))
    parts = cast("list[object]", result.get("content") or item.get("contentItems") or [])
    texts = [as_object(part).get("text") for part in parts]
    return [text_part(text) for text in texts if isinstance(text, str)]


def _command(item: Item) -> dict[str, Any]:
    command = command_of(item)
    return {
        "title": command,
        "kind": "execute",
        "rawInput": {"command": command, "cwd": item.get("cwd")},
    }


def _files(item: Item) -> dict[str, Any]:
    changes = changes_of(item)
    names = ", ".join(str(one.get("path", "")) for one in changes)
    lines = [(str(one.get("path", "")), first_line(one)) for one in changes]
    return {
        "title": f"Edit {names}" if names else "Edit files",
        "kind": "edit",
        "locations": [{"path": path, **({"line": line} if line else {})} for path, line in lines],
    }


def _mcp(item: Item) -> dict[str, Any]:
    return {
        "title": f"{item.get('server')}: {item.get('tool')}",
        "kind": "other",
        "rawInput": item.get("arguments"),
    }


def _search(item: Item) -> dict[str, Any]:
    query = item.get("query") or as_object(item.get("action")).get("url")
    return {"title": f"Search the web: {query}" if query else "Search the web", "kind": "fetch"}


def _image(item: Item) -> dict[str, Any]:
    path = str(item.get("path", ""))
    return {"title": f"Look at {path}", "kind": "read", "locations": [{"path": path}]}


def _other(item: Item) -> dict[str, Any]:
    kind = str(item.get("type"))
    words = "".join(f" {one.lower()}" if one.isupper() else one for one in kind)
    tool = item.get("tool")
    title = words.capitalize() + (f": {tool}" if isinstance(tool, str) else "")
    asked = item.get("arguments") or item.get("prompt")
    return {"title": title, "kind": "other", **({"rawInput": asked} if asked else {})}


_DESCRIPTIONS: dict[str, Callable[[Item], dict[str, Any]]] = {
    "commandExecution": _command,
    "fileChange": _files,
    "mcpToolCall": _mcp,
    "webSearch": _search,
    "imageView": _image,
}
