"""The database: one writer thread with group commit, and reader threads.

`write` and `read` take a function of a SQLAlchemy connection and run it in a thread of the
database's own. Writes that wait at the same time are committed together, each inside its own
savepoint, and answered after the commit: durable when the caller goes on.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine

from quarterdeck.service.db.engines import SQLITE, parse_url, reading_engine, writing_engine
from quarterdeck.service.db.schema import bring_up_to_date
from quarterdeck.service.db.workers import JobQueue, Reader, Worker, Writer

T = TypeVar("T")

READERS = 2


class Database:
    """An open database. Made by `open`, ended by `close`."""

    def __init__(self, url: str, home_id: str | None = None, readers: int = READERS) -> None:
        """Use `open`; this opens nothing."""
        self.url = url
        self._engines: list[Engine] = [writing_engine(url, home_id), reading_engine(url)]
        writing, reading = self._engines
        self._writes, self._reads = JobQueue(), JobQueue()
        self._workers: list[Worker] = [Writer(writing, self._writes)]
        self._workers += [Reader(reading, self._reads) for _ in range(readers)]

    @property
    def shared(self) -> bool:
        """Whether other services may use it as well."""
        return parse_url(self.url).get_backend_name() != SQLITE

    @classmethod
    async def open(cls, url: str, home_id: str | None = None) -> "Database":
        """Opens a database, brings its schema up to date and starts the threads.

        On a server it is open once at a time for each home.

        Raises:
            NewerDatabaseError: a newer version of the program wrote it.
            DatabaseLockedError: a service of the same home, or of a copy of it, uses it.
            StorageError: it cannot be opened.
        """
        database = cls(url, home_id)
        for worker in database._workers:
            worker.start()
        try:
            # By the writer's own connection: what it holds, it holds from now on.
            await database.write(bring_up_to_date)
        except BaseException:
            await database.close()
            raise
        return database

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Runs `fn` in a reader thread, inside one snapshot. It must not write.

        Raises:
            StorageError: the database cannot be read.
            Exception: whatever `fn` raised.
        """
        return await self._reads.put(fn, None)

    async def write(
        self, fn: Callable[[Connection], T], after: Callable[[T], None] | None = None
    ) -> T:
        """Runs `fn` in the writer thread, and returns its result once it is durable.

        `fn` may run twice when a group fails, so it has no effect but on the connection. When it
        raises, what it wrote is undone and nothing else is. `after` is called on the event loop
        with the result, in the order of the commits, even when the caller was cancelled meanwhile.

        Raises:
            DatabaseFullError, DatabaseLockedError, StorageError: nothing was kept.
            Exception: whatever `fn` raised; SQLAlchemy's IntegrityError for a constraint.
        """
        return await self._writes.put(fn, after)

    async def close(self) -> None:
        """Finishes what was asked, then ends the threads. Safe to call twice."""
        self._writes.close()
        self._reads.close(len(self._workers) - 1)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for worker in self._workers:
            worker.join()
        for engine in self._engines:
            engine.dispose()
