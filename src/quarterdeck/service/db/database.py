"""The database.

The database: one writer thread with group commit, and reader threads.

`write` and `read` take a function of a SQLAlchemy connection and run it in a thread of the
database's own. Writes that wait at the same time are committed together, each inside its own
savepoint, and answered after the commit: durable when the caller continues.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from quarterdeck.service.db import sqlite
from quarterdeck.service.db.faults import Outage
from quarterdeck.service.db.schema import bring_up_to_date
from quarterdeck.service.db.workers import DatabaseWorker, JobQueue, ReadWorker, Writer
from quarterdeck.service.errors import StorageError

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
_NAMES = {
    "sqlite": SQLITE,
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def sqlite_url(path: Path) -> str:
    """Return the URL of a SQLite file."""
    return URL.create(SQLITE, database=str(path)).render_as_string(hide_password=False)


def parse_url(text: str) -> URL:
    """Return a database's URL with its driver. As text it shows no password.

    Raises:
        StorageError: it is not a URL, or names another kind of database.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the text may contain a password: it is not repeated
        raise StorageError(
            "The database's URL cannot be read. Give postgresql://USER@HOST/NAME; characters of a "
            "password that mean something in a URL are written as %XX."
        ) from None
    if url.drivername not in _NAMES or not url.database:
        raise StorageError(
            "The database's URL must name a PostgreSQL database (postgresql://USER@HOST/NAME) or a "
            "SQLite file (sqlite:///PATH)."
        )
    return url.set(drivername=_NAMES[url.drivername])


def writing_engine(text: str, home_id: str | None = None) -> Engine:
    """Return the engine for the writer thread of a home's service, and for migrations.

    Raises:
        StorageError: the URL cannot be used.
    """
    url = parse_url(text)
    if url.get_backend_name() == SQLITE:
        return sqlite.writing(url)
    return _postgresql().writing(url, home_id)


def reading_engine(text: str) -> Engine:
    """Return the engine for reader threads: a statement that writes fails.

    Raises:
        StorageError: the URL cannot be used.
    """
    url = parse_url(text)
    if url.get_backend_name() == SQLITE:
        return sqlite.reading(url)
    return _postgresql().reading(url)


def _postgresql() -> ModuleType:
    if find_spec("psycopg") is None:
        raise StorageError(
            "PostgreSQL needs a driver that is not installed. "
            "Install it with: pip install 'quarterdeck[postgresql]'"
        )
    return import_module("quarterdeck.service.db.postgresql")  # rarely needed


T = TypeVar("T")

READERS = 2


class Database:
    """An open database. Created by `open`, closed by `close`."""

    def __init__(self, url: str, home_id: str | None = None, readers: int = READERS) -> None:
        """Use `open`; this opens nothing."""
        self.url = url
        self._engines: list[Engine] = [writing_engine(url, home_id), reading_engine(url)]
        writing, reading = self._engines
        self._outage = Outage()
        self._writes, self._reads = JobQueue(self._outage), JobQueue(self._outage)
        self._workers: list[DatabaseWorker] = [Writer(writing, self._writes)]
        self._workers += [ReadWorker(reading, self._reads) for _ in range(readers)]

    @property
    def lost(self) -> bool:
        """Whether the last attempt could not reach the database's server."""
        return self._outage.lost

    @property
    def shared(self) -> bool:
        """Whether other services may use it."""
        return parse_url(self.url).get_backend_name() != SQLITE

    @classmethod
    async def open(cls, url: str, home_id: str | None = None) -> "Database":
        """Open a database, bring its schema up to date and start the threads.

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
            # On the writer's own connection: it keeps its lock from now on.
            await database.write(bring_up_to_date)
        except BaseException as e:
            await database.close()
            if isinstance(e, StorageError) and e.reason:
                raise type(e)(e.for_operator()) from e
            raise
        return database

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn` in a reader thread, inside one snapshot. It must not write.

        Raises:
            StorageError: the database cannot be read.
            Exception: any exception of `fn`.
        """
        return await self._reads.put(fn, None)

    async def write(
        self, fn: Callable[[Connection], T], after: Callable[[T], None] | None = None
    ) -> T:
        """Run `fn` in the writer thread, and return its result once it is durable.

        `fn` may run twice when a group fails, so it has no effect but on the connection. When it
        raises, only its own writes are undone. `after` is called on the event loop with the result,
        in the order of the commits, even when the caller was cancelled in the meantime.

        Raises:
            DatabaseFullError, DatabaseLockedError, StorageError: nothing was kept.
            Exception: any exception of `fn`; SQLAlchemy's IntegrityError for a constraint.
        """
        return await self._writes.put(fn, after)

    async def close(self) -> None:
        """Finish the requested work, then end the threads. Safe to call twice."""
        self._writes.close()
        self._reads.close(len(self._workers) - 1)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for worker in self._workers:
            worker.join()
        for engine in self._engines:
            engine.dispose()
