"""How long the drivers wait."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long a driver waits for an agent, in seconds."""

    start: float = 60.0
    """For the handshake and for the session together."""
    choose: float = 20.0
    """For a change of mode, model or goal."""
    cancel: float = 5.0
    """From a cancel to the end of the turn; then everything of the agent is killed."""
    silence: float = 1800.0
    """Of an agent in mid-turn that runs no tool and asks nothing: it hangs, and is killed."""
    leave: float = 1.0
    """From the end of its input, or a SIGTERM, to the agent's end; then SIGKILL."""
