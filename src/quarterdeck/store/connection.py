"""The state of the connection to the service."""

from dataclasses import dataclass
from enum import StrEnum


class ConnectionPhase(StrEnum):
    """The phase of the connection."""

    CONNECTING = "connecting"
    ONLINE = "online"
    RECONNECTING = "reconnecting"
    REFUSED = "refused"


@dataclass
class ConnectionState:
    """`problem` is a sentence; `retry_in` is the seconds between two tries."""

    endpoint: str
    phase: ConnectionPhase = ConnectionPhase.CONNECTING
    latency_ms: float | None = None
    problem: str | None = None
    retry_in: float | None = None
