"""Notifications of the store: which part of the state changed."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from quarterdeck.transcript.fold import BlockChanges as TranscriptFold


@dataclass(frozen=True)
class ListChanged:
    """Replicas were added, removed, or reordered."""


@dataclass(frozen=True)
class ReplicaChanged:
    """A replica's record, state, or repositories changed."""

    replica_id: UUID


@dataclass(frozen=True)
class ReplicaGone:
    """A replica was deleted; `elsewhere` when this cockpit did not delete it."""

    replica_id: UUID
    name: str
    elsewhere: bool


@dataclass(frozen=True)
class ChatChange:
    """A chat's record, queue or unsent messages changed."""

    replica_id: UUID
    chat_id: UUID


@dataclass(frozen=True)
class TranscriptChanged:
    """Blocks of a loaded transcript changed; `fold` is None when it was loaded again."""

    replica_id: UUID
    chat_id: UUID
    fold: TranscriptFold | None


@dataclass(frozen=True)
class AutomationsChanged:
    """An automation or one of its runs changed; without an id, any of them."""

    automation_id: UUID | None = None


@dataclass(frozen=True)
class ConnectionChanged:
    """The connection to the service is in another phase."""


@dataclass(frozen=True)
class Noticed:
    """A message to show once."""

    severity: Literal["information", "warning", "error"]
    title: str
    text: str
    replica_id: UUID | None = None


Change = (
    ListChanged
    | ReplicaChanged
    | ReplicaGone
    | ChatChange
    | TranscriptChanged
    | AutomationsChanged
    | ConnectionChanged
    | Noticed
)
