"""Threads for work that may hang, such as a question to a name server that never answers."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class SharedThreads:
    """Runs work in a bounded number of threads, of which each group gets at most a share.

    Work that is given up keeps its thread until it ends: threads cannot be stopped. So one group whose
    work hangs delays no other. The process does not wait for these threads at its end.
    """

    def __init__(self, name: str, threads: int, share: int) -> None:
        """`share` is how many of the threads one group may have. For one event loop."""
        self._name = name
        self._share = share
        self._free = asyncio.Semaphore(threads)
        self._shares: dict[str, asyncio.Semaphore] = {}
        self._users: Counter[str] = Counter()
        """How many calls of each group wait or run; groups without any are forgotten."""

    async def run(
        self, group: str, work: Callable[..., T], *arguments: Any, seconds: float | None = None
    ) -> T:
        """Return the result of work, once a thread is free for it.

        Raises:
            TimeoutError: it takes longer than some seconds. The wait for a thread does not count.
            OSError: no thread can be started.
        """
        share = self._shares.setdefault(group, asyncio.Semaphore(self._share))
        self._users[group] += 1
        try:
            await share.acquire()
        except BaseException:
            self._leave(group)
            raise
        try:
            await self._free.acquire()
        except BaseException:
            share.release()
            self._leave(group)
            raise
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def end(value: Any, error: BaseException | None) -> None:
            self._free.release()
            share.release()
            self._leave(group)
            if result.done():
                return  # nobody waits for it any more
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)

        def run() -> None:
            value, error = None, None
            try:
                value = work(*arguments)
            except BaseException as e:  # noqa: BLE001 - raised where the work is waited for
                error = e
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(partial(end, value, error))

        try:
            Thread(target=run, name=self._name, daemon=True).start()
        except RuntimeError as e:
            end(None, OSError(str(e)))
        async with asyncio.timeout(seconds):
            return await result

    def _leave(self, group: str) -> None:
        self._users[group] -= 1
        if not self._users[group]:
            del self._users[group], self._shares[group]
