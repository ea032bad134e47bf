"""Items of a codex turn as tool calls of the Agent Client Protocol.

`rawOutput` of a finished call is codex's own item, so nothing of it is lost.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from quarterdeck.agents.objects import as_list, as_object
from quarterdeck.agents.output import KEPT
from quarterdeck.agents.port import Prompt
from quarterdeck.wire.chats import Base64Source, Image

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def diff_parts(change: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one change of a file as a call's contents; codex sends new and deleted files whole."""
    path, text = str(change.get("path", "")), str(change.get("diff", ""))
    match as_object(change.get("kind")).get("type"):
        case "add":
            yield _diff(path, None, text)
        case "delete":
            yield _diff(path, text, "")
        case _:
            for old, new in _hunks(text):
                yield _diff(path, old, new)


def first_line(change: dict[str, Any]) -> int | None:
    """Return the line of the new file where the change starts."""
    lines = (_HUNK.match(line) for line in str(change.get("diff", "")).splitlines())
    return next((int(match[1]) for match in lines if match), None)


def _diff(path: str, old: str | None, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def _hunks(text: str) -> Iterator[tuple[str, str]]:
    old: list[str] = []
    new: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.startswith("@@"):
            if old or new:
                yield "".join(old), "".join(new)
            old, new, inside = [], [], True
        elif inside and line[:1] in " -+":
            if line[0] != "+":
                old.append(line[1:])
            if line[0] != "-":
                new.append(line[1:])
    if old or new:
        yield "".join(old), "".join(new)


Item = dict[str, Any]
Update = dict[str, Any]

TALK = frozenset({"userMessage", "agentMessage", "reasoning", "plan"})
"""Items that are not calls: the user's messages, and text sent in chunks."""
MODEL_ONLY = frozenset({"userMessage", "functionCallOutput", "hookPrompt"})
"""Items for the model, not for the user."""

_SHELLS = ("bash", "sh", "zsh", "dash")
_STATUS = {
    "inProgress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "declined": "failed",
    "interrupted": "failed",
}


def started(item: Item) -> Update:
    """Return the update for a call that starts."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": item["id"],
        "status": "in_progress",
        **described(item),
    }


def ended(item: Item, shown: bool) -> Update:
    """Return the update for a call that ended; with `shown`, parts of its output were shown before."""
    raw_output = dict(item)
    content = _content(item)
    output = item.get("aggregatedOutput")
    if isinstance(output, str):
        raw_output["aggregatedOutput"] = output = tail_of(output)
        if shown:
            content = [text_part(output)]
    return {
        **_update(item),
        "status": _STATUS.get(str(item.get("status")), "completed"),
        **({"content": content} if content else {}),
        "rawOutput": raw_output,
    }


def progressed(item_id: str, content: list[dict[str, Any]]) -> Update:
    """Return the update with a call's output so far."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": item_id, "content": content}


def cut_off(item_id: str) -> Update:
    """Return the update for a call whose end will not be reported."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": item_id, "status": "failed"}


def text_part(text: str) -> dict[str, Any]:
    """Return a text as a part of a call's content."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def described(item: Item) -> dict[str, Any]:
    """Return title, kind, input and files of a call."""
    describe = _DESCRIPTIONS.get(str(item.get("type")), _other)
    return describe(item)


def command_of(item: Item) -> str:
    """Return the command as a person would write it: without the shell that codex wraps around it."""
    command = str(item.get("command") or "")
    try:
        arguments = shlex.split(command)
    except ValueError:
        return command
    match arguments:
        case [shell, "-lc" | "-c", inner] if shell.rpartition("/")[2] in _SHELLS:
            return inner
        case _:
            return command


def tail_of(output: str) -> str:
    """Return the end of an output, up to the length that is kept."""
    if len(output) <= KEPT:
        return output
    return f"[{len(output) - KEPT:,} characters of earlier output left out]\n{output[-KEPT:]}"


def changes_of(item: Item) -> list[Item]:
    """Return the changed files of an item."""
    return [as_object(change) for change in as_list(item.get("changes"))]


def edited_files(item: Item) -> list[str]:
    """Return the files that changes create or update; none when a file is deleted or moved as well."""
    kinds = [as_object(change.get("kind")) for change in changes_of(item)]
    plain = all(
        kind.get("type") in ("add", "update") and not kind.get("move_path") for kind in kinds
    )
    return [str(change.get("path", "")) for change in changes_of(item)] if plain else []


def patch_content(changes: list[Item]) -> list[dict[str, Any]]:
    """Return the differences of changed files as a call's content."""
    return [part for change in changes for part in diff_parts(change)]


def _update(item: Item) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": item["id"], **described(item)}


def _content(item: Item) -> list[dict[str, Any]]:
    match item.get("type"):
        case "fileChange":
            return patch_content(changes_of(item))
        case "mcpToolCall" | "dynamicToolCall":
            return _tool_content(item)
        case _:
            return []


def _tool_content(item: Item) -> list[dict[str, Any]]:
    if error := as_object(item.get("error")).get("message"):
        return [text_part(str(error))]
    result = as_object(item.get("result"))
    parts = as_list(result.get("content") or item.get("contentItems"))
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
    names = ", ".join(str(change.get("path", "")) for change in changes)
    lines = [(str(change.get("path", "")), first_line(change)) for change in changes]
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
    label = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind)
    tool = item.get("tool")
    title = label.capitalize() + (f": {tool}" if isinstance(tool, str) else "")
    arguments = item.get("arguments") or item.get("prompt")
    return {"title": title, "kind": "other", **({"rawInput": arguments} if arguments else {})}


_DESCRIPTIONS: dict[str, Callable[[Item], dict[str, Any]]] = {
    "commandExecution": _command,
    "fileChange": _files,
    "mcpToolCall": _mcp,
    "webSearch": _search,
    "imageView": _image,
}


def input_of(prompt: Prompt) -> list[dict[str, Any]]:
    """Return the text, then the images."""
    text = [_text(prompt.text)] if prompt.text or not prompt.images else []
    return [*text, *({"type": "image", "url": _url(image)} for image in prompt.images)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "text_elements": []}


def _url(image: Image) -> str:
    source = image.source
    if isinstance(source, Base64Source):
        return f"data:{source.media_type};base64,{source.data}"
    return source.url
