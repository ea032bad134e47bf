"""What the built-in agent reads of a client's requests."""

from typing import Any

from quarterdeck.agents.acp.shapes import Shape


class NewSession(Shape):
    """`session/new`: where to work."""

    cwd: str


class SessionCall(Shape):
    """Names the session of a call."""

    session_id: str


class LoadSession(SessionCall, NewSession):
    """`session/load`."""


class SetMode(SessionCall):
    """`session/set_mode`."""

    mode_id: str


class PromptSession(SessionCall):
    """`session/prompt`."""

    prompt: list[dict[str, Any]] = []

    @property
    def text(self) -> str:
        """The text of the message; it holds nothing else, since nothing else is offered."""
        return "\n".join(str(part.get("text", "")) for part in self.prompt)
