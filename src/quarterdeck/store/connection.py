"""The state of the line to the service."""

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where the connection is."""

    CONNECTING = "connecting"
    ONLINE = "online"
    RECONNECTING = "reconnecting"
    REFUSED = "refused"


@dataclass
class ConnectionState:
    """`retry_at` is a monotonic time in seconds; `problem` says in a sentence what is wrong."""

    endpoint: str
    phase: Phase = Phase.CONNECTING
    latency_ms: float | None = None
    problem: str | None = None
    lost_at: float | None = None
    retry_at: float | None = None
