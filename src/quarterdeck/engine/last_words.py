"""The text that a chat shows as its last message."""

from quarterdeck.wire.history import AgentEvent, AgentEventType

SHOWN_CHARACTERS = 500


class LastWords:
    """Follows a turn's events and keeps the beginning of the agent's newest message."""

    def __init__(self, user_text: str) -> None:
        self._text = user_text
        self._speaking = False

    @property
    def text(self) -> str:
        return self._text[:SHOWN_CHARACTERS].strip()

    def hear(self, event: AgentEvent) -> None:
        if event.type != AgentEventType.SESSION_UPDATE:
            return
        text = spoken(event)
        if text is None:
            self._speaking = False
        elif not self._speaking:
            self._text, self._speaking = text, True
        elif len(self._text) < SHOWN_CHARACTERS:
            self._text += text


def spoken(event: AgentEvent) -> str | None:
    """What an event adds to the agent's message; None when it is something else."""
    match event.payload:
        case {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": str(text)},
        }:
            return text
        case _:
            return None
