"""The Agent Client Protocol as this product's own service records it (INTERFACE 5)."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from quarterdeck.transcript import acp_shapes as shapes
from quarterdeck.transcript.acp_tools import called, content_text, untold_command
from quarterdeck.transcript.blocks import (
    EchoBlock,
    MessageBlock,
    Option,
    PlanEntry,
    PlanState,
    ThoughtBlock,
)
from quarterdeck.transcript.clean import clean, one_line
from quarterdeck.transcript.steps import Asked, Ended, Planned, Prompted, Said, Settled, Step
from quarterdeck.wire.history import AgentEvent, AgentEventType, TurnResult, UserMessage

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
"""State of the session, shown elsewhere; not part of the talk."""

_SPEAKERS = {
    "agent_message_chunk": MessageBlock,
    "agent_thought_chunk": ThoughtBlock,
    "user_message_chunk": EchoBlock,
}


def read(event: AgentEvent) -> Sequence[Step] | None:
    """The steps of an event; None when it is not of this dialect or not of the expected shape."""
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
        chunk = shapes.Chunk.model_validate(payload)
        return (Said(speaker, content_text(chunk.content), chunk.message_id),)
    match kind:
        case "tool_call":
            return (called(shapes.ToolCall.model_validate(payload), opens=True),)
        case "tool_call_update":
            return (called(shapes.ToolCall.model_validate(payload)),)
        case "plan":
            return (_plan(shapes.Plan.model_validate(payload)),)
        case _:
            return () if kind in _SILENT else None


def _plan(plan: shapes.Plan) -> Planned:
    return Planned(
        tuple(PlanEntry(one_line(s.content), _state(s.status), s.priority) for s in plan.entries)
    )


def _state(status: str) -> PlanState:
    try:
        return PlanState(status)
    except ValueError:
        return PlanState.PENDING


def _request(payload: Payload) -> Sequence[Step]:
    request = shapes.PermissionRequest.model_validate(payload)
    call = called(request.tool_call) if request.tool_call else None
    told = request.title or (request.tool_call.title if request.tool_call else None)
    title = one_line(told) if told else (call.command if call else None)
    asked = Asked(
        request_id=request.request_id,
        title=title,
        tool_id=call.tool_id if call else None,
        options=tuple(
            Option(o.option_id, one_line(o.name) or one_line(o.option_id), o.kind)
            for o in request.options
        ),
        takes_text=request.accepts_text,
        secret=request.secret,
        command=untold_command(call.raw_input, title) if call else None,
    )
    return (call, asked) if call else (asked,)


def _outcome(payload: Payload) -> Sequence[Step]:
    outcome = shapes.PermissionOutcome.model_validate(payload)
    match outcome.outcome:
        case str() as word:
            return (Settled(outcome.request_id, one_line(word), outcome.option_id),)
        case shapes.Outcome() as told:
            text = None if told.text is None else one_line(told.text)
            return (Settled(outcome.request_id, one_line(told.outcome), told.option_id, text),)


def _prompted(payload: Payload) -> Sequence[Step]:
    message = UserMessage.model_validate(payload)
    step = Prompted(
        text=clean(message.text),
        message_id=message.message_id,
        images=tuple(_image_name(image) for image in message.images or ()),
        uploads=tuple(one_line(name) for name in message.uploads or ()),
        plan_mode=message.plan_mode,
        goal_mode=message.goal_mode,
    )
    return (step,)


def _image_name(image: Payload) -> str:
    source = image.get("source")
    if not isinstance(source, dict):
        return "image"
    known: Payload = source  # pyright: ignore[reportUnknownVariableType]
    return one_line(str(known.get("url") or known.get("media_type") or "image"))


def _ended(payload: Payload) -> Sequence[Step]:
    result = TurnResult.model_validate(payload)
    return (Ended(one_line(result.stop_reason), clean(result.error) if result.error else None),)


_READERS: dict[str, Callable[[Payload], Sequence[Step] | None]] = {
    AgentEventType.SESSION_UPDATE: _update,
    AgentEventType.PERMISSION_REQUEST: _request,
    AgentEventType.PERMISSION_OUTCOME: _outcome,
    AgentEventType.USER_MESSAGE: _prompted,
    AgentEventType.TURN_RESULT: _ended,
}
