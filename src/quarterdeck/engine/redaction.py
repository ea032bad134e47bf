"""Remove the keys of agents from what is recorded, also from text that is streamed in pieces."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from quarterdeck.wire.history import STATE_UPDATES, AgentEvent, AgentEventType

STARS = b"********"
SHORTEST = 8
"""Anything shorter is not a key, and may occur in any text."""
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=(.+)", re.DOTALL)


class Redactor:
    """Removes keys from JSON. `credentials` may change: keys can be given to a running engine."""

    def __init__(self, credentials: Mapping[str, str]) -> None:
        self._credentials = credentials
        self._credentials_seen: tuple[str, ...] = ()
        self._keys: list[bytes] = []

    def __call__(self, content: bytes) -> bytes:
        current = tuple(self._credentials.values())
        if current != self._credentials_seen:
            self._credentials_seen = current
            self._keys = sorted(map(_as_json, current), key=len, reverse=True)
        for key in self._keys:
            if len(key) >= SHORTEST and key in content:
                content = content.replace(key, STARS)
        return content


def _as_json(credential: str) -> bytes:
    """Return a credential's key as it is inside a JSON text."""
    return to_json(_key_in(credential))[1:-1]


def _key_in(credential: str) -> str:
    """Return the key; a credential may be `VARIABLE=key`."""
    named = _NAMED.fullmatch(credential)
    return named[1] if named else credential


_PIECES = ("agent_message_chunk", "agent_thought_chunk")


class StreamRedactor:
    """Removes keys from a chat's streamed text; the end of a piece waits while it may start a key."""

    def __init__(self, credentials: Mapping[str, str]) -> None:
        self._credentials = credentials
        self._held: AgentEvent | None = None

    def take(self, event: AgentEvent) -> list[AgentEvent]:
        """Return the events to record now."""
        if (
            event.type == AgentEventType.SESSION_UPDATE
            and event.payload.get("sessionUpdate") in STATE_UPDATES
        ):
            return [event]
        text = _piece_of(event)
        if text is None:
            return [*self.flush(), event]
        before: list[AgentEvent] = []
        if self._held is not None:
            if _stream_of(self._held) == _stream_of(event):
                text = (_piece_of(self._held) or "") + text
                self._held = None
            else:
                before = self.flush()
        keys = self._keys()
        for key in keys:
            text = text.replace(key, STARS.decode())
        tail = max((_overlap(text, key) for key in keys), default=0)
        if not tail:
            return [*before, _with_text(event, text)]
        self._held = _with_text(event, text[-tail:])
        return [*before, _with_text(event, text[:-tail])] if text[:-tail] else before

    def flush(self) -> list[AgentEvent]:
        """Return what waits, at the end of a text."""
        held, self._held = self._held, None
        return [] if held is None else [held]

    def _keys(self) -> list[str]:
        keys = map(_key_in, self._credentials.values())
        return sorted((key for key in keys if len(key) >= SHORTEST), key=len, reverse=True)


def _piece_of(event: AgentEvent) -> str | None:
    """Return the text of a streamed piece; None for any other event."""
    match event.payload:
        case {"sessionUpdate": str(kind), "content": {"type": "text", "text": str(text)}}:
            return text if kind in _PIECES else None
        case _:
            return None


def _stream_of(event: AgentEvent) -> tuple[Any, Any]:
    return event.payload.get("sessionUpdate"), event.payload.get("messageId")


def _with_text(event: AgentEvent, text: str) -> AgentEvent:
    if text == event.payload["content"]["text"]:
        return event
    content = {**event.payload["content"], "text": text}
    return event.model_copy(update={"payload": {**event.payload, "content": content}})


def _overlap(text: str, key: str) -> int:
    """Return the length of the longest end of the text that is a start of the key."""
    longest = min(len(text), len(key) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(key[:size])), 0)
