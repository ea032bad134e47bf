"""A small language to write chats in."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quarterdeck.wire.history import AgentEvent

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Chat:
    """Events in order, one second apart."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    def add(self, type_: str, /, **payload: Any) -> "Chat":
        at = START + timedelta(seconds=len(self.events))
        self.events.append(AgentEvent(timestamp=at, type=type_, payload=payload))
        return self

    def update(self, kind: str, /, **payload: Any) -> "Chat":
        return self.add("acp-session_update", sessionUpdate=kind, **payload)

    def user(self, text: str, message_id: str = "m", **more: Any) -> "Chat":
        return self.add("user-message", messageId=message_id, text=text, **more)

    def _chunk(self, kind: str, text: str, message_id: str | None) -> "Chat":
        extra = {"messageId": message_id} if message_id else {}
        return self.update(kind, content={"type": "text", "text": text}, **extra)

    def say(self, text: str, message_id: str | None = None) -> "Chat":
        return self._chunk("agent_message_chunk", text, message_id)

    def think(self, text: str, message_id: str | None = None) -> "Chat":
        return self._chunk("agent_thought_chunk", text, message_id)

    def echo(self, text: str, message_id: str | None = None) -> "Chat":
        return self._chunk("user_message_chunk", text, message_id)

    def call(self, tool_id: str, **fields: Any) -> "Chat":
        return self.update("tool_call", toolCallId=tool_id, **fields)

    def told(self, tool_id: str, **fields: Any) -> "Chat":
        return self.update("tool_call_update", toolCallId=tool_id, **fields)

    def plan(self, *entries: tuple[str, str]) -> "Chat":
        steps = [{"content": text, "status": state, "priority": "high"} for text, state in entries]
        return self.update("plan", entries=steps)

    def ask(self, request_id: str, tool_id: str, **call: Any) -> "Chat":
        options = [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        ]
        return self.add(
            "acp-permission_request",
            requestId=request_id,
            toolCall={"toolCallId": tool_id, **call},
            options=options,
        )

    def answer(self, request_id: str, option: str) -> "Chat":
        outcome = {"outcome": "selected", "optionId": option}
        return self.add("acp-permission_outcome", requestId=request_id, outcome=outcome)

    def end(self, reason: str = "end_turn", error: str | None = None) -> "Chat":
        return self.add("turn-result", messageId="m", stopReason=reason, error=error)


@pytest.fixture
def chat() -> Chat:
    return Chat()


@pytest.fixture
def new_chat() -> Callable[[], Chat]:
    return Chat
