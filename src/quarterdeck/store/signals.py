"""Notifications of the store: signals, and which part of the state changed; tasks with an owner."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

from quarterdeck.transcript.fold import BlockChanges as TranscriptFold

T = TypeVar("T")

Unsubscribe = Callable[[], None]


class Signal(Generic[T]):
    """Publishes values to its watchers. Callbacks run at once and must be quick."""

    def __init__(self) -> None:
        self._watchers: list[Callable[[T], None]] = []

    def watch(self, callback: Callable[[T], None]) -> Unsubscribe:
        """Call `callback` with every later value, until the returned function is called."""
        self._watchers.append(callback)

        def stop() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return stop

    def publish(self, value: T) -> None:
        """Call all watchers; one that is removed meanwhile is still called once."""
        for callback in tuple(self._watchers):
            callback(value)


class KeyedTasks:
    """Runs coroutines by key, at most one each, inside one task group.

    An unexpected exception ends the group and so the owner's `async with`: nothing is swallowed.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._running: dict[object, asyncio.Task[None]] = {}

    async def __aenter__(self) -> "KeyedTasks":
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        for task in self._running.values():
            task.cancel()
        await self._group.__aexit__(*exception)

    def start(self, key: object, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work` unless the key is busy; then it is dropped and False returned."""
        if key in self._running and not self._running[key].done():
            work.close()
            return False
        task = self._group.create_task(work)
        self._running[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))
        return True

    def _forget(self, key: object, task: asyncio.Task[None]) -> None:
        if self._running.get(key) is task:
            del self._running[key]

    def stop(self, key: object) -> None:
        """Cancel the work of a key, if any."""
        task = self._running.pop(key, None)
        if task is not None:
            task.cancel()

    def busy(self, key: object) -> bool:
        """Return whether work of this key is running."""
        return key in self._running

    def keys(self) -> list[object]:
        """Return the keys that are busy."""
        return list(self._running)


@dataclass(frozen=True)
class ListChanged:
    """Replicas were added, removed, or reordered."""


class ReplicaChanged(NamedTuple):
    """A replica's record, state, or repositories changed."""

    replica_id: UUID


class ReplicaGone(NamedTuple):
    """A replica was deleted; `elsewhere` when this cockpit did not delete it."""

    replica_id: UUID
    name: str
    elsewhere: bool


class ChatChange(NamedTuple):
    """A chat's record, queue or unsent messages changed."""

    replica_id: UUID
    chat_id: UUID


class TranscriptChanged(NamedTuple):
    """Blocks of a loaded transcript changed; `fold` is None when it was loaded again."""

    replica_id: UUID
    chat_id: UUID
    fold: TranscriptFold | None


class AutomationsChanged(NamedTuple):
    """An automation or one of its runs changed; without an id, any of them."""

    automation_id: UUID | None = None


@dataclass(frozen=True)
class ConnectionChanged:
    """The connection to the service is in another phase."""


class Noticed(NamedTuple):
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
