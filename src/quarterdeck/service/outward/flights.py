"""Calls under way to the outside, each known by what it is about, and the wait for the next."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime


class Flights:
    """The tasks of calls. Who has it ends it with `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._called = asyncio.Event()

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, about: str) -> bool:
        return about in self._tasks

    def get(self, about: str) -> "asyncio.Task[None] | None":
        """The call about this that is under way."""
        return self._tasks.get(about)

    def begin(self, about: str, call: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Makes a call; its end is a reason to look for the next."""
        task = self._tasks[about] = asyncio.create_task(call, name=self._name)
        task.add_done_callback(lambda _: self._landed(about))
        return task

    def _landed(self, about: str) -> None:
        self._tasks.pop(about, None)
        self._called.set()

    def nudge(self) -> None:
        """There may be something to call about."""
        self._called.set()

    def look(self) -> None:
        """What is stored is looked at now: what is told from here on is news."""
        self._called.clear()

    async def wait(self, now: datetime, soonest: str | None, longest: float) -> None:
        """Until there is news, a moment has come, or `longest` seconds have passed."""
        delay = longest
        if soonest is not None:
            due = (datetime.fromisoformat(soonest) - now).total_seconds()
            delay = min(delay, max(due, 0) + 0.001)
        try:
            async with asyncio.timeout(delay):
                await self._called.wait()
        except TimeoutError:
            return

    async def landed(self) -> None:
        """Until one of those under way has ended."""
        await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Breaks off all calls."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
