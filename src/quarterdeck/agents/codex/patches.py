"""Unified diffs as the protocol's diffs, hunk by hunk."""

import re
from collections.abc import Iterator
from typing import Any

from quarterdeck.agents.objects import as_object

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def diff_parts(change: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One change of a file as contents of a tool call: codex tells new and deleted files whole."""
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
    """Where in the new file the change begins."""
    lines = (_HUNK.match(line) for line in str(change.get("diff", "")).splitlines())
    return next((int(found[1]) for found in lines if found), None)


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
