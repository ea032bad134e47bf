"""Notices: that a replica which the person does not look at asks, failed or has finished.

One notice for each replica and state, until the person has seen it; only events cause one.
"""

from typing import NamedTuple
from uuid import UUID

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.status import Attention
from quarterdeck.transcript.text import name_line

LONGEST = 120
"""Characters of a notice."""

SENTENCES = {
    Attention.ASKS: "asks you something",
    Attention.PLAN: "has a plan for you to review",
    Attention.FAILED: "failed",
    Attention.DONE_UNSEEN: "has finished",
}


class AttentionNotice(NamedTuple):
    """A notification for the user."""

    replica_id: UUID
    text: str
    attention: Attention = Attention.DONE_UNSEEN


class _Seen(NamedTuple):
    attention: Attention
    detailed: bool


class NoticeWatch:
    """Detects news in the states of replicas."""

    def __init__(self) -> None:
        self._before: dict[UUID, _Seen] = {}
        self._notified: dict[UUID, Attention] = {}

    def look(self, states: list[ReplicaState], shown: UUID | None) -> list[AttentionNotice]:
        """Return the new notices. `shown` is the replica that the user sees."""
        found = [notice for state in states if (notice := self._new(state, shown)) is not None]
        self._before = {state.id: _Seen(state.attention, state.detailed) for state in states}
        self._notified = {
            key: value for key, value in self._notified.items() if key in self._before
        }
        return found

    def _new(self, state: ReplicaState, shown: UUID | None) -> AttentionNotice | None:
        before, now = self._before.get(state.id), state.attention
        if state.id == shown:
            self._notified.pop(state.id, None)
            return None
        # A first look, or a more detailed one, finds states that are not new.
        if before is None or before.detailed != state.detailed or before.attention == now:
            return None
        if now not in SENTENCES or self._notified.get(state.id) == now:
            return None
        self._notified[state.id] = now
        text = f"{name_line(state.full_name)[:LONGEST]} {SENTENCES[now]}"
        return AttentionNotice(state.id, text, now)
