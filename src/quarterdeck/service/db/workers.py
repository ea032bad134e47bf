"""The threads that talk to the database, and the queues that feed them."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from quarterdeck.service.db.faults import Outage, as_storage_error, spoils_transaction
from quarterdeck.service.errors import DatabaseClosedError

T = TypeVar("T")

GROUP_LIMIT = 256
"""Maximum number of writes in one commit."""


@dataclass
class Job:
    """One function to run, and the future of its result."""

    fn: Callable[[Connection], Any]
    future: asyncio.Future[Any]
    after: Callable[[Any], None] | None
    ended: Callable[[BaseException | None], None]
    result: Any = None
    error: BaseException | None = None

    def finish(self) -> None:
        """Set the result, on the event loop."""
        self.ended(self.error)
        if self.error is None and self.after is not None:
            self.after(self.result)
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class JobQueue:
    """Jobs from the event loop to threads."""

    def __init__(self, outage: Outage) -> None:
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._outage = outage
        self._closed = False

    async def put(self, fn: Callable[[Connection], T], after: Callable[[T], None] | None) -> T:
        """Submit a function, and wait for its result.

        Raises:
            DatabaseClosedError: `close` was called.
            DatabaseLostError: the server is unreachable, and was tried just before.
        """
        if self._closed:
            raise DatabaseClosedError("The database is closed.")
        ended = partial(self._outage.ended, self._outage.admit())
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(Job(fn, future, after, ended))
        return await future

    def close(self, readers: int = 1) -> None:
        """End each of the queue's threads after the earlier jobs."""
        if not self._closed:
            self._closed = True
            for _ in range(readers):
                self._queue.put(None)

    def take(self) -> Job | None:
        """Wait for one job; None at the end."""
        return self._queue.get()

    def take_group(self) -> list[Job | None]:
        """Wait for one job and return it with all others that wait."""
        group = [self._queue.get()]
        try:
            while len(group) < GROUP_LIMIT and group[-1] is not None:
                group.append(self._queue.get_nowait())
        except Empty:
            pass
        return group


def answer(jobs: list[Job]) -> None:
    """Finish jobs on their event loop, in order, with one wake-up."""
    if not jobs:
        return
    loop = jobs[0].future.get_loop()

    def finish() -> None:
        for job in jobs:
            job.finish()

    if not loop.is_closed():
        loop.call_soon_threadsafe(finish)


class DatabaseWorker(threading.Thread):
    """A thread with its own connection."""

    def __init__(self, name: str, engine: Engine, queue: JobQueue) -> None:
        super().__init__(name=name, daemon=True)
        self._engine = engine
        self._queue = queue

    def run(self) -> None:
        """Work until the queue ends."""
        connection: Connection | None = None
        try:
            while jobs := self._next():
                connection = connection or self._connect(jobs)
                if connection is not None:
                    self._work(connection, jobs)
                    answer(jobs)
        finally:
            if connection is not None:
                connection.close()

    def _next(self) -> list[Job]:
        job = self._queue.take()
        return [] if job is None else [job]

    def _connect(self, jobs: list[Job]) -> Connection | None:
        try:
            return self._engine.connect()
        except DBAPIError as e:
            fault = as_storage_error(e)
            for job in jobs:
                job.error = fault
            answer(jobs)
            return None

    def _work(self, connection: Connection, jobs: list[Job]) -> None:
        raise NotImplementedError


class ReadWorker(DatabaseWorker):
    """Runs one job at a time, each in a transaction that is rolled back."""

    def __init__(self, engine: Engine, queue: JobQueue) -> None:
        super().__init__("database-reader", engine, queue)

    def _work(self, connection: Connection, jobs: list[Job]) -> None:
        for job in jobs:
            run_alone(connection, job)


class Writer(DatabaseWorker):
    """Runs all waiting jobs as one transaction; the only thread that writes."""

    def __init__(self, engine: Engine, queue: JobQueue) -> None:
        super().__init__("database-writer", engine, queue)
        self._ended = False

    def _next(self) -> list[Job]:
        if self._ended:
            return []
        group = self._queue.take_group()
        self._ended = group[-1] is None
        return [job for job in group if job is not None]

    def _work(self, connection: Connection, jobs: list[Job]) -> None:
        if len(jobs) == 1 or not _run_group(connection, jobs):
            for job in jobs:
                run_alone(connection, job)


def run_alone(connection: Connection, job: Job) -> None:
    """Run a job in its own transaction; a second time when a connection had been lost."""
    if not _attempt(connection, job):
        _attempt(connection, job)


def _attempt(connection: Connection, job: Job) -> bool:
    """Return False when the connection was lost before the commit.

    The connection is reopened automatically when it is used again.
    """
    job.error = None
    committing = False
    try:
        with connection.begin():
            job.result = job.fn(connection)
            committing = True
    except DBAPIError as e:
        job.error = as_storage_error(e)
        return committing or not e.connection_invalidated
    except BaseException as e:  # noqa: BLE001 - it belongs to who asked
        job.error = e
    return True


def _run_group(connection: Connection, jobs: list[Job]) -> bool:
    """Run jobs in one transaction; False when it failed and nothing was committed."""
    committing = False
    try:
        with connection.begin():
            for job in jobs:
                _run_in_savepoint(connection, job)
            committing = True
    except DBAPIError as e:
        if not (committing and e.connection_invalidated):
            return False
        # They may have been committed: to run them again could do everything twice.
        for job in jobs:
            job.error = job.error or as_storage_error(e)
    return True


def _run_in_savepoint(connection: Connection, job: Job) -> None:
    job.error = None
    try:
        with connection.begin_nested():
            job.result = job.fn(connection)
    except DBAPIError as e:
        if spoils_transaction(e):
            raise
        job.error = as_storage_error(e)
    except BaseException as e:  # noqa: BLE001 - it belongs to who asked
        job.error = e
