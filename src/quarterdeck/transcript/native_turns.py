"""Turns of an agent's native transcript (`agentAspTranscript`, INTERFACE 5), read as events.

Only prose is read: everything else of a turn is named in one line.
"""

from collections.abc import Sequence
from typing import Any

from quarterdeck.transcript.blocks import MessageBlock, ThoughtBlock
from quarterdeck.transcript.clean import clean, one_line
from quarterdeck.transcript.steps import Called, Noted, Prompted, Said, Step
from quarterdeck.wire.history import AgentEvent

_STATUS = {"inProgress": "in_progress", "completed": "completed", "failed": "failed"}


def read(event: AgentEvent) -> Sequence[Step] | None:
    """The steps of an event of type `turn-item`; None for any other."""
    if event.type != "turn-item":
        return None
    return (_item(event.payload),)


def _item(item: dict[str, Any]) -> Step:
    name = str(item.get("id") or "")
    text = item.get("text")
    match item.get("type"), text:
        case "userMessage", str():
            return Prompted(clean(text), name or None)
        case "agentMessage", str():
            return Said(MessageBlock, text, name or None)
        case "reasoning", str():
            return Said(ThoughtBlock, text, name or None)
        case "commandExecution", _:
            return _command(item, name)
        case kind, _:
            return Noted(one_line(str(kind)))


def _command(item: dict[str, Any], name: str) -> Called:
    code = item.get("exitCode")
    return Called(
        tool_id=name,
        opens=True,
        title=one_line(str(item.get("command") or "")) or None,
        kind="execute",
        status=_STATUS.get(str(item.get("status"))),
        output=clean(str(item.get("aggregatedOutput") or "")) or None,
        exit_code=code if isinstance(code, int) else None,
    )
