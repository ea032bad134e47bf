"""The parts of the Agent Client Protocol's updates that a transcript shows."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class AcpRecord(BaseModel):
    """Tolerant: an agent may send unknown fields, and be newer than this."""

    model_config = ConfigDict(
        extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Content(AcpRecord):
    """A content block: text, or something that can only be named."""

    type: str = "text"
    text: str | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None
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
