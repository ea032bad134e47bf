"""The services that the cockpit shows at once: one list of the replicas of all of them.

    AppState of each service (own connection, tasks and back-off) -> Services.changed, Services.ordered()

A replica is shown, commanded and followed by the `AppState` of its own service, which knows no other.
"""

import contextlib
from collections import ChainMap
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from quarterdeck.store.app_state import AppState
from quarterdeck.store.list_view import Grouping, Names
from quarterdeck.store.replica_list import ReplicaFilter
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import (
    Change,
    ConnectionChanged,
    ListChanged,
    Signal,
    Unsubscribe,
)
from quarterdeck.store.status import WAITS, ConnectionState


class Services:
    """The service in use, those shown beside it, and how the list of their replicas is arranged."""

    def __init__(self, current: AppState) -> None:
        self.current = current
        """The service in use: of new replicas, of pages and settings."""
        self.stores: list[AppState] = []
        """Those of all services that are shown, the one in use first."""
        self.changed: Signal[Change] = Signal()
        """Every change of every service."""
        self.list_view = current.disk.list_view()
        self._filter = ReplicaFilter()
        self._watching: list[Unsubscribe] = []
        self.add(current)

    def add(self, store: AppState) -> None:
        """Show another service; the caller runs its store."""
        self.stores.append(store)
        self._watching.append(store.changed.watch(self.changed.publish))
        store.want_names(self._needs_names)
        self._publish_all()

    def remove(self, store: AppState) -> None:
        """Show a service no longer; the caller has stopped its store."""
        at = self.stores.index(store)
        del self.stores[at]
        self._watching.pop(at)()
        self._publish_all()

    def _publish_all(self) -> None:
        self.changed.publish(ListChanged())
        self.changed.publish(ConnectionChanged())

    @property
    def several(self) -> bool:
        """Whether more than one service is shown."""
        return len(self.stores) > 1

    @property
    def connections(self) -> list[ConnectionState]:
        """The states of the connections."""
        return [store.connection for store in self.stores]

    @property
    def listed(self) -> bool:
        """Whether all lists have been read that can be."""
        return all(store.listed or store.connection.problem for store in self.stores) and any(
            store.listed for store in self.stores
        )

    # replicas

    def all(self) -> Iterator[ReplicaState]:
        """Yield the replicas of all services; one that two profiles show, once."""
        if not self.several:
            yield from self.current.replicas.values()
            return
        known: set[UUID] = set()
        for store in self.stores:
            yield from (state for id, state in store.replicas.items() if id not in known)
            known |= store.replicas.keys()

    def repeated(self, store: AppState) -> int:
        """Return how many replicas of a service are already shown as replicas of another service."""
        before = self.stores[: self.stores.index(store)]
        return sum(any(id in one.replicas for one in before) for id in store.replicas)

    def get(self, replica_id: UUID | None) -> ReplicaState | None:
        """Return a replica, if it is known."""
        return self.of(replica_id).replicas.get(replica_id) if replica_id else None

    def of(self, replica_id: UUID | None) -> AppState:
        """Return the store of a replica's service; of one that is not known, that of the service in use."""
        return next((one for one in self.stores if replica_id in one.replicas), self.current)

    def by_store(self, states: Iterable[ReplicaState]) -> list[tuple[AppState, list[ReplicaState]]]:
        """Return replicas by the store of their service."""
        found: dict[AppState, list[ReplicaState]] = {}
        for state in states:
            found.setdefault(self.of(state.id), []).append(state)
        return list(found.items())

    # the list

    @property
    def environment_names(self) -> Names:
        """The names of environments that are known."""
        return ChainMap(*(store.environment_names for store in self.stores))

    def ordered(self) -> list[ReplicaState]:
        """Return replicas in the order of the list: unless it is arranged, those that need the person first."""
        return self.list_view.ordered(self.all())

    def filtered(self, states: Iterable[ReplicaState]) -> list[ReplicaState]:
        """Return the states that the list shows."""
        names = self.environment_names
        return [state for state in states if self._filter.shows(state, names)]

    def next_waiting(self, current: ReplicaState | None = None) -> ReplicaState | None:
        """Return the replica after this one, in the order of the list, that needs the person."""
        states = self.ordered()
        after = states.index(current) + 1 if current in states else 0
        waiting = (one for one in states[after:] + states[:after] if one.attention in WAITS)
        return next((one for one in waiting if one is not current), None)

    def filter_by(self, wanted: ReplicaFilter) -> None:
        """Filter the list."""
        self._filter = wanted
        self._want_names()
        self.changed.publish(ListChanged())

    def arrange(self, **changes: Any) -> None:
        """Arrange the list otherwise, by fields of `ListView`, and keep that."""
        self.list_view = self.list_view.model_copy(update=changes)
        with contextlib.suppress(OSError):
            self.current.disk.save_list_view(self.list_view)
        self._want_names()
        self.changed.publish(ListChanged())

    def pin(self, replica_ids: set[UUID]) -> None:
        """Pin replicas; if all of them are pinned, unpin them."""
        pinned = set(self.list_view.pinned)
        if all(store.listed for store in self.stores):
            pinned &= {state.id for state in self.all()}
        kept = pinned - replica_ids if replica_ids <= pinned else pinned | replica_ids
        self.arrange(pinned=sorted(kept))

    @property
    def _needs_names(self) -> bool:
        return self._filter.needs_names or self.list_view.group is Grouping.ENVIRONMENT

    def _want_names(self) -> None:
        for store in self.stores:
            store.want_names(self._needs_names)

    # what the person looks at

    @property
    def on_screen(self) -> UUID | None:
        """The replica that is shown."""
        return next((one.on_screen for one in self.stores if one.on_screen), None)

    def look_at(self, replica_id: UUID | None) -> None:
        """Follow the replica that is on the screen now; it is not marked as seen by that."""
        shown = self.of(replica_id)
        for store in self.stores:
            store.look_at(replica_id if store is shown else None)

    def mark_shown_as_seen(self) -> None:
        """Mark the replica on the screen as seen, now that the person sees the screen again."""
        for store in self.stores:
            store.mark_shown_as_seen()

    # connections

    @property
    def online(self) -> bool:
        """Whether any service has answered the last request."""
        return any(store.online for store in self.stores)

    def poke(self) -> None:
        """Check all connections and lists again at once."""
        for store in self.stores:
            store.lookout.poke()

    def reconnect_now(self) -> None:
        """Try all connections again at once, without waiting for the next try."""
        for store in self.stores:
            store.reconnect_now()
