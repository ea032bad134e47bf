"""Background work with one owner, who cancels it and hears of its failure."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Tasks:
    """Runs coroutines by key, at most one each, inside one task group.

    An unexpected exception ends the group and so the owner's `async with`: nothing is swallowed.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._running: dict[object, asyncio.Task[None]] = {}

    async def __aenter__(self) -> "Tasks":
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        for task in self._running.values():
            task.cancel()
        await self._group.__aexit__(*exception)

    def start(self, key: object, work: Coroutine[Any, Any, None]) -> bool:
        """Runs `work` unless the key is busy; then it is dropped and False returned."""
        if key in self._running:
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
        """Cancels the work of a key, if any."""
        task = self._running.pop(key, None)
        if task is not None:
            task.cancel()

    def busy(self, key: object) -> bool:
        """Whether work of this key is running."""
        return key in self._running

    def keys(self) -> list[object]:
        """Keys that are busy."""
        return list(self._running)
