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
    """`problem` says in a sentence what is wrong; `retry_in` are seconds from one try to the next."""

    endpoint: str
    phase: Phase = Phase.CONNECTING
    latency_ms: float | None = None
    problem: str | None = None
    retry_in: float | None = None
