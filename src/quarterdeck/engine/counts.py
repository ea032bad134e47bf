"""What the engine reports of itself."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from quarterdeck.engine.drafts import Draft, event
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.events import EngineStatus, EngineStatusChanged, EventType


@dataclass
class Counts:
    """Uptime, activity, and which counts were told last."""

    repos_total: int
    listeners: Callable[[], int]

    def __post_init__(self) -> None:
        self._started = monotonic()
        self._told = (0, 0)
        self._active_at = monotonic()

    def touch(self) -> None:
        """Somebody or something used the workspace now. Cheap, may be called often."""
        self._active_at = monotonic()

    @property
    def last_activity_at(self) -> datetime:
        return datetime.fromtimestamp(
            utc_now().timestamp() - (monotonic() - self._active_at), tz=utc_now().tzinfo
        )

    def status(self, chats_total: int, chats_processing: int) -> EngineStatus:
        return EngineStatus(
            uptime_seconds=int(monotonic() - self._started),
            active_sse_clients=self.listeners(),
            chats_total=chats_total,
            chats_processing=chats_processing,
            repos_total=self.repos_total,
        )

    def news(self, chats_total: int, chats_processing: int) -> list[Draft]:
        """An `engine.status.changed` entry when the chats' counts are others than told last."""
        if self._told == (chats_total, chats_processing):
            return []
        self._told = (chats_total, chats_processing)
        changed = EngineStatusChanged(status=self.status(chats_total, chats_processing))
        return [event(EventType.ENGINE_STATUS_CHANGED, changed.model_dump(exclude_none=True))]
