"""Gathers what the store tells, so that the screen is brought up to date once a frame."""

from dataclasses import dataclass, field
from uuid import UUID

from quarterdeck.store.changes import (
    AutomationsChanged,
    Change,
    ChatChanged,
    ConnectionChanged,
    ListChanged,
    ReplicaChanged,
    ReplicaGone,
    TranscriptChanged,
)


@dataclass
class Frame:
    """What has changed since the last frame, as far as the screen shows it."""

    listing: bool = False
    connection: bool = False
    replica: bool = False
    folds: list[TranscriptChanged] = field(default_factory=list[TranscriptChanged])
    gone: list[ReplicaGone] = field(default_factory=list[ReplicaGone])

    def add(self, change: Change, shown: UUID | None) -> bool:
        """Takes a change in; False when nothing of it can be seen. `shown` is the replica shown."""
        match change:
            case ListChanged() | AutomationsChanged():
                self.listing = True
            case ConnectionChanged():
                self.connection = True
            case ReplicaGone():
                self.gone.append(change)
            case TranscriptChanged() if change.replica_id == shown:
                self.folds.append(change)
            case ReplicaChanged() | ChatChanged() if change.replica_id == shown:
                self.replica = True
            case _:
                return False
        return True
