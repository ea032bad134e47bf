"""States that the status line shows: of the connection, and of replicas in the order of the list."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum

from quarterdeck.wire.states import WorkspaceStatus


class ConnectionPhase(StrEnum):
    """The phase of the connection."""

    CONNECTING = "connecting"
    ONLINE = "online"
    RECONNECTING = "reconnecting"
    STOPPED = "stopped"
    """The user stopped the service; it starts again only on request."""
    REFUSED = "refused"


@dataclass
class ConnectionState:
    """`problem` is a sentence; `retry_in` is the seconds between two tries.

    `down_since` is when the connection was lost, if there was one. `name` is what the service is called
    where several are shown. `needs_login`: it is refused for want of a valid key.
    """

    endpoint: str
    name: str = ""
    phase: ConnectionPhase = ConnectionPhase.CONNECTING
    latency_ms: float | None = None
    problem: str | None = None
    retry_in: float | None = None
    needs_login: bool = False
    down_since: datetime | None = None


class Attention(IntEnum):
    """States of a row, the most pressing first."""

    ASKS = 0
    PLAN = 1
    FAILED = 2
    DONE_UNSEEN = 3
    WORKING = 4
    PREPARING = 5
    IDLE = 6
    SLEEPING = 7
    ARCHIVED = 8


WORDS = {
    Attention.ASKS: "asking",
    Attention.PLAN: "plan",
    Attention.FAILED: "failed",
    Attention.DONE_UNSEEN: "done",
    Attention.WORKING: "working",
    Attention.PREPARING: "preparing",
    Attention.IDLE: "idle",
    Attention.SLEEPING: "sleeping",
    Attention.ARCHIVED: "archived",
}
"""Names of states on the screen and in the filter of the list."""

NEEDS_YOU = {Attention.ASKS, Attention.PLAN, Attention.FAILED}
"""States in which nothing continues before the person acts."""

WAITS = NEEDS_YOU | {Attention.DONE_UNSEEN}
"""States that the jump key visits: nothing continues, or there is a new result."""

_QUIET = {
    WorkspaceStatus.PREPARING: Attention.PREPARING,
    WorkspaceStatus.SLEEPING: Attention.SLEEPING,
    WorkspaceStatus.ARCHIVED: Attention.ARCHIVED,
}


def attention_of(
    status: str, *, asks: bool, plans: bool, works: bool, unseen: bool, failed: bool
) -> Attention:
    """Return the state of a row from the replica's status and what its chats are doing.

    A failed turn is shown until the next one runs, so that nobody loses it by looking. A replica that
    sleeps or is archived keeps its unseen results visible. A plan of an archived one is not shown any
    more.
    """
    if status == WorkspaceStatus.ERROR:
        return Attention.FAILED
    if asks:
        return Attention.ASKS
    if plans and status != WorkspaceStatus.ARCHIVED:
        return Attention.PLAN
    if failed and (unseen or not (works or status in _QUIET)):
        return Attention.FAILED
    if works:
        return Attention.WORKING
    if unseen:
        return Attention.DONE_UNSEEN
    try:
        return _QUIET.get(WorkspaceStatus(status), Attention.IDLE)
    except ValueError:
        return Attention.IDLE


def threads_words(unresolved: int | None) -> str:
    """Return how many threads of a pull request's reviews are unresolved; empty when there are none."""
    plural = "" if unresolved == 1 else "s"
    return f"{unresolved} unresolved thread{plural}" if unresolved else ""
