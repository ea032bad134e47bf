"""The protocol's update objects that the built-in agent sends."""

from typing import Any

from quarterdeck.agents.builtin.blocks import Block
from quarterdeck.agents.builtin.runner import Ran

Update = dict[str, Any]


def user_message(text: str) -> Update:
    """What the person said, for a reload."""
    return {"sessionUpdate": "user_message_chunk", "content": _text(text)}


def agent_message(text: str) -> Update:
    """What the agent says."""
    return {"sessionUpdate": "agent_message_chunk", "content": _text(text)}


def plan(blocks: list[Block]) -> Update:
    """One entry a block."""
    entries = [
        {"content": block.title, "priority": "medium", "status": "pending"} for block in blocks
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def announced(call_id: str, block: Block) -> Update:
    """A block is about to run."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": block.title,
        "kind": "execute",
        "status": "pending",
        "rawInput": {"command": block.script, "shell": block.shell},
    }


def started(call_id: str) -> Update:
    """A block runs."""
    return _progress(call_id, {"status": "in_progress"})


def printed(call_id: str, text: str) -> Update:
    """What the running block printed so far."""
    return _progress(call_id, {"content": _output(text)})


def ended(call_id: str, ran: Ran, text: str) -> Update:
    """A block ended; `text` is what it printed."""
    result: dict[str, Any] = {"exitCode": ran.exit_code, "durationMs": ran.duration_ms}
    if ran.truncated:
        result["truncated"] = True
    fields: dict[str, Any] = {
        "status": "completed" if ran.exit_code == 0 else "failed",
        "rawOutput": result,
    }
    return _progress(call_id, {**fields, "content": _output(text)} if text else fields)


def _progress(call_id: str, fields: dict[str, Any]) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def _output(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": _text(text)}]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
