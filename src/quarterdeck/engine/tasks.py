"""The owner of tasks that live as long as the engine or a part of it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")


class TaskOwner:
    """Starts tasks, logs failures, and cancels all at `close`."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, _Result], name: str) -> "asyncio.Task[_Result]":
        """Run a coroutine as a task of this owner."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait(self, seconds: float) -> None:
        """Give the running tasks some time to end."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)

    async def close(self) -> None:
        """Cancel every task and wait for its end."""
        while self._running:
            running = list(self._running)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._running.difference_update(running)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the task %s failed", task.get_name(), exc_info=error)
