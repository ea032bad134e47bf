"""Tool calls of the Agent Client Protocol, with the habits of the agents that send them."""

import shlex
from collections.abc import Iterable
from typing import Any

from quarterdeck.transcript import acp_shapes as shapes
from quarterdeck.transcript.blocks import DiffPart, Location, Part, TerminalPart, TextPart
from quarterdeck.transcript.clean import clean, clean_output, one_line
from quarterdeck.transcript.steps import Called

_EXIT_KEYS = ("exitCode", "exit_code", "exit", "returncode")
_OUTPUT_KEYS = (
    "output",
    "aggregatedOutput",
    "aggregated_output",
    "formatted_output",
    "stdout",
    "content",
    "text",
)
_LONGEST_COMMAND = 8_000
"""Characters of a command that a question shows."""
_NESTED = ("metadata", "result", "exitStatus")


def called(call: shapes.ToolCall, *, opens: bool = False) -> Called:
    """What an update tells about its call."""
    return Called(
        tool_id=call.tool_call_id,
        opens=opens,
        title=one_line(call.title) if call.title else None,
        kind=one_line(call.kind) if call.kind else None,
        status=call.status,
        parts=None if call.content is None else tuple(_parts(call.content)),
        locations=None
        if call.locations is None
        else tuple(Location(one_line(place.path), place.line) for place in call.locations),
        command=_command(call.raw_input),
        raw_input=call.raw_input,
        output=_output(call.raw_output),
        exit_code=_exit_code(call.raw_output),
    )


def _parts(items: Iterable[shapes.ToolContent]) -> Iterable[Part]:
    for item in items:
        match item.type:
            case "diff":
                old = None if item.old_text is None else clean(item.old_text)
                yield DiffPart(one_line(item.path or ""), old, clean(item.new_text or ""))
            case "terminal":
                yield TerminalPart(one_line(item.terminal_id or ""))
            case _ if item.content is not None:
                yield TextPart(clean_output(content_text(item.content)))
            case _:
                yield TextPart(f"[{one_line(item.type)}]")


def content_text(content: shapes.Content) -> str:
    """A content block as text, not yet cleaned; what is no text is named."""
    if content.text is not None:
        return content.text
    resource = content.resource or {}
    if isinstance(text := resource.get("text"), str):
        return text
    name = content.name or content.uri or resource.get("uri") or content.mime_type or ""
    return f"[{content.type}{': ' if name else ''}{name}]"


def untold_command(raw: Any, title: str | None) -> str | None:
    """What a call would run, line by line, where its title does not say it."""
    fields = _fields(raw)
    command = fields.get("command") if fields else None
    match command:
        case str():
            told = command
        case list():
            words: list[Any] = command  # pyright: ignore[reportUnknownVariableType]
            told = shlex.join(str(word) for word in words)
        case _:
            return None
    if any(words in (title or "") for words in (one_line(told), _command(raw) or "")):
        return None
    return _ends(clean(told).strip("\n"))


def _ends(text: str) -> str:
    """Both ends of a text that is too long to be read: what it is, and what comes last."""
    left_out = len(text) - _LONGEST_COMMAND
    if left_out <= 0:
        return text
    half = _LONGEST_COMMAND // 2
    return f"{text[:half]}\n\u2026 {left_out:,} more characters\n{text[-half:]}"


def _fields(raw: Any) -> dict[str, Any] | None:
    return raw if isinstance(raw, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _command(raw: Any) -> str | None:
    fields = _fields(raw)
    command = fields.get("command") or fields.get("cmd") if fields else None
    match command:
        case str():
            return one_line(command) or None
        case list():
            words: list[Any] = command  # pyright: ignore[reportUnknownVariableType]
            return one_line(" ".join(str(word) for word in words)) or None
        case _:
            return None


def _exit_code(raw: Any) -> int | None:
    fields = _fields(raw)
    if fields is None:
        return None
    for key in _EXIT_KEYS:
        if isinstance(code := fields.get(key), int) and not isinstance(code, bool):
            return code
    nested = (_exit_code(fields.get(key)) for key in _NESTED)
    return next((code for code in nested if code is not None), None)


def _output(raw: Any) -> str | None:
    if isinstance(raw, str):
        return clean_output(raw) or None
    fields = _fields(raw)
    if fields is None:
        return None
    texts = [fields.get(key) for key in _OUTPUT_KEYS]
    text = next((text for text in texts if isinstance(text, str) and text), None)
    stderr = fields.get("stderr")
    if isinstance(stderr, str) and stderr:
        text = f"{text}\n{stderr}" if text else stderr
    return clean_output(text) if text else None
