"""Read events of the Agent Client Protocol as steps of a transcript.

The records are the parts of its updates that a transcript shows.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from quarterdeck.transcript.blocks import (
    DiffPart,
    EchoBlock,
    Location,
    MessageBlock,
    Part,
    PlanEntry,
    PlanState,
    QuestionOption,
    TerminalPart,
    TextPart,
    ThoughtBlock,
)
from quarterdeck.transcript.images import image_words
from quarterdeck.transcript.steps import (
    NoteAdded,
    OwnTurnBegan,
    PlanUpdate,
    PromptSent,
    QuestionAsked,
    QuestionResolved,
    Step,
    TextChunk,
    ToolCallUpdate,
    TurnEnded,
)
from quarterdeck.transcript.text import clean, clean_output, money, one_line
from quarterdeck.wire.history import (
    AgentEvent,
    AgentEventType,
    GitOperationPayload,
    NoticePayload,
    OwnTurnStarted,
    PolicyAnswerPayload,
    TurnResult,
    UserMessage,
)


class AcpRecord(BaseModel):
    """Tolerant: an agent may send unknown fields, and be newer than this."""

    model_config = ConfigDict(
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )


class Content(AcpRecord):
    """A content block: text, or something that can only be named."""

    type: str = "text"
    text: str | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None
    data: str | None = None
    resource: dict[str, Any] | None = None


class MessageChunk(AcpRecord):
    """A piece of a message."""

    content: Content
    message_id: str | None = None


class ToolContent(AcpRecord):
    """One item of a tool call's content."""

    type: str
    content: Content | None = None
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    terminal_id: str | None = None


class ToolLocation(AcpRecord):
    """A file, and perhaps a line of it."""

    path: str
    line: int | None = None


class ToolCall(AcpRecord):
    """`tool_call`, `tool_call_update`, and the call inside a permission request."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[ToolContent] | None = None
    locations: list[ToolLocation] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class PlanStep(AcpRecord):
    """An entry of a plan."""

    content: str
    status: str = "pending"
    priority: str = "medium"


class Plan(AcpRecord):
    """`plan`: the whole list each time."""

    entries: list[PlanStep]


class PermissionOptionRecord(AcpRecord):
    """One answer offered."""

    option_id: str
    name: str = ""
    kind: str = ""


class PermissionRequestRecord(AcpRecord):
    """`acp-permission_request`."""

    request_id: str
    tool_call: ToolCall | None = None
    title: str | None = None
    options: list[PermissionOptionRecord] = []
    accepts_text: bool = False
    secret: bool = False


class PermissionDecision(AcpRecord):
    """How a permission request ended. `text`: the answer, if written instead of chosen."""

    outcome: str
    option_id: str | None = None
    text: str | None = None


class PermissionOutcome(AcpRecord):
    """`acp-permission_outcome`; a bare outcome word is accepted too."""

    request_id: str
    outcome: PermissionDecision | str
    option_id: str | None = None


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


def _tool_call_update(call: ToolCall, *, opens: bool = False) -> ToolCallUpdate:
    """Return the step for an update of a tool call."""
    exit_code = _exit_code((call.meta or {}).get("terminal_exit"))
    return ToolCallUpdate(
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
        exit_code=_exit_code(call.raw_output) if exit_code is None else exit_code,
    )


def _parts(items: Iterable[ToolContent]) -> Iterable[Part]:
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


def content_text(content: Content) -> str:
    """Return a content block as text, not yet cleaned; other content by its name."""
    if content.text is not None:
        return content.text
    resource = content.resource or {}
    if isinstance(text := resource.get("text"), str):
        return text
    name = content.name or content.uri or resource.get("uri") or content.mime_type or ""
    if content.type == "image" and content.data:
        name = image_words(str(name), content.data)
    return f"[{content.type}{': ' if name else ''}{name}]"


def _command_beyond_title(raw: Any, title: str | None) -> str | None:
    """Return the command of a call, line by line; None where its title contains it."""
    fields = _fields(raw)
    command = fields.get("command") if fields else None
    match command:
        case str():
            text = command
        case list():
            arguments: list[Any] = command  # pyright: ignore[reportUnknownVariableType]
            text = shlex.join(str(word) for word in arguments)
        case _:
            return None
    if any(shown in (title or "") for shown in (one_line(text), _command(raw) or "")):
        return None
    return _ends(clean(text).strip("\n"))


def _ends(text: str) -> str:
    """Return a text, shortened in the middle when it is too long to read."""
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
            arguments: list[Any] = command  # pyright: ignore[reportUnknownVariableType]
            return one_line(" ".join(str(word) for word in arguments)) or None
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


Payload = dict[str, Any]

_SILENT = frozenset(
    {
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "usage_update",
        "session_info_update",
    }
)
"""State of the session, shown elsewhere; not part of the transcript."""

_SPEAKERS = {
    "agent_message_chunk": MessageBlock,
    "agent_thought_chunk": ThoughtBlock,
    "user_message_chunk": EchoBlock,
}


def read(event: AgentEvent) -> Sequence[Step] | None:
    """Return the steps of an event; None when it is not of this dialect or not of the expected shape."""
    reader = _READERS.get(event.type)
    if reader is None:
        return None
    try:
        return reader(event.payload)
    except ValidationError:
        return None


def _update(payload: Payload) -> Sequence[Step] | None:
    kind = payload.get("sessionUpdate")
    if not isinstance(kind, str):
        return None
    if speaker := _SPEAKERS.get(kind):
        chunk = MessageChunk.model_validate(payload)
        return (TextChunk(speaker, content_text(chunk.content), chunk.message_id),)
    match kind:
        case "tool_call":
            return (_tool_call_update(ToolCall.model_validate(payload), opens=True),)
        case "tool_call_update":
            return (_tool_call_update(ToolCall.model_validate(payload)),)
        case "plan":
            return (_plan(Plan.model_validate(payload)),)
        case _:
            return () if kind in _SILENT else None


def _plan(plan: Plan) -> PlanUpdate:
    return PlanUpdate(
        tuple(PlanEntry(one_line(s.content), _state(s.status), s.priority) for s in plan.entries)
    )


def _state(status: str) -> PlanState:
    try:
        return PlanState(status)
    except ValueError:
        return PlanState.PENDING


def _permission_request(payload: Payload) -> Sequence[Step]:
    request = PermissionRequestRecord.model_validate(payload)
    call = _tool_call_update(request.tool_call) if request.tool_call else None
    raw_title = request.title or (request.tool_call.title if request.tool_call else None)
    title = one_line(raw_title) if raw_title else (call.command if call else None)
    question = QuestionAsked(
        request_id=request.request_id,
        title=title,
        tool_id=call.tool_id if call else None,
        options=tuple(
            QuestionOption(o.option_id, one_line(o.name) or one_line(o.option_id), o.kind)
            for o in request.options
        ),
        takes_text=request.accepts_text,
        secret=request.secret,
        command=_command_beyond_title(call.raw_input, title) if call else None,
        patterns=_suggested(request.tool_call) if request.tool_call else (),
    )
    return (call, question) if call else (question,)


def _suggested(call: ToolCall) -> tuple[str, ...]:
    """Return patterns of rules that would allow the command of a call."""
    from quarterdeck.command_rules import command_in, runs_command_alone, suggest

    fields = _fields(call.raw_input)
    if fields is None or not runs_command_alone(call.kind, fields):
        return ()
    return suggest(command_in(fields) or "")


def _permission_outcome(payload: Payload) -> Sequence[Step]:
    outcome = PermissionOutcome.model_validate(payload)
    match outcome.outcome:
        case str() as word:
            return (QuestionResolved(outcome.request_id, one_line(word), outcome.option_id),)
        case PermissionDecision() as decision:
            text = None if decision.text is None else one_line(decision.text)
            return (
                QuestionResolved(
                    outcome.request_id, one_line(decision.outcome), decision.option_id, text
                ),
            )


def _user_message(payload: Payload) -> Sequence[Step]:
    message = UserMessage.model_validate(payload)
    step = PromptSent(
        text=clean(message.text),
        message_id=message.message_id,
        images=tuple(_image_name(image) for image in message.images or ()),
        uploads=tuple(one_line(name) for name in message.uploads or ()),
        plan_mode=message.plan_mode,
        goal_mode=message.goal_mode,
        steered=message.steered,
    )
    return (step,)


def _image_name(image: Payload) -> str:
    source = image.get("source")
    if not isinstance(source, dict):
        return "image"
    known: Payload = source  # pyright: ignore[reportUnknownVariableType]
    name = one_line(str(known.get("url") or known.get("media_type") or "image"))
    data = known.get("data")
    return image_words(name, data) if isinstance(data, str) and data else name


def _turn_started(payload: Payload) -> Sequence[Step]:
    return (OwnTurnBegan(OwnTurnStarted.model_validate(payload).message_id),)


def _turn_result(payload: Payload) -> Sequence[Step]:
    result = TurnResult.model_validate(payload)
    tokens = (result.usage or {}).get("totalTokens")
    step = TurnEnded(
        one_line(result.stop_reason),
        clean(result.error) if result.error else None,
        model=one_line(result.model) if result.model else None,
        seconds=None if result.duration_ms is None else result.duration_ms / 1000,
        tokens=tokens if isinstance(tokens, int) and tokens > 0 else None,
        cost=money(result.cost.amount, result.cost.currency) if result.cost else None,
    )
    return (step,)


def _notice(payload: Payload) -> Sequence[Step]:
    return (NoteAdded(one_line(NoticePayload.model_validate(payload).text)),)


def _policy_answer(payload: Payload) -> Sequence[Step]:
    answer = PolicyAnswerPayload.model_validate(payload)
    note = NoteAdded(one_line(answer.text))
    if not answer.tool_call.get("toolCallId"):
        return (note,)
    return (_tool_call_update(ToolCall.model_validate(answer.tool_call)), note)


def _git_operation(payload: Payload) -> Sequence[Step]:
    return (NoteAdded(one_line(GitOperationPayload.model_validate(payload).text)),)


_READERS: dict[str, Callable[[Payload], Sequence[Step] | None]] = {
    AgentEventType.SESSION_UPDATE: _update,
    AgentEventType.PERMISSION_REQUEST: _permission_request,
    AgentEventType.PERMISSION_OUTCOME: _permission_outcome,
    AgentEventType.POLICY_ANSWER: _policy_answer,
    AgentEventType.USER_MESSAGE: _user_message,
    AgentEventType.TURN_STARTED: _turn_started,
    AgentEventType.TURN_RESULT: _turn_result,
    AgentEventType.NOTICE: _notice,
    AgentEventType.GIT_OPERATION: _git_operation,
}
