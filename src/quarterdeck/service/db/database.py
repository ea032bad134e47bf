"""The database: one writer thread with group commit, and reader threads.

`write` and `read` take a function of a SQLAlchemy connection and run it in a thread of the
database's own. Writes that wait at the same time are committed together, each inside its own
savepoint, and answered after the commit: durable when the caller continues.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from quarterdeck.local.files import PRIVATE
from quarterdeck.service.db.decoding import is_undecodable, read_leniently
from quarterdeck.service.db.faults import (
    Outage,
    as_storage_error,
    spoils_transaction,
)
from quarterdeck.service.db.tables import metadata
from quarterdeck.service.errors import DatabaseClosedError, NewerDatabaseError, StorageError

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
    """Run a job in its own transaction.

    A second time when a connection had been lost, or a text of a damaged file is not UTF-8.
    """
    if not _attempt(connection, job):
        _attempt(connection, job)


def _attempt(connection: Connection, job: Job) -> bool:
    """Return False when it is to be run again.

    The connection was lost before the commit, and is reopened automatically when it is used again;
    or it reads texts that are not UTF-8 from now on.
    """
    job.error = None
    committing = False
    try:
        with connection.begin():
            job.result = job.fn(connection)
            committing = True
    except DBAPIError as e:
        if is_undecodable(e) and read_leniently(connection):
            return False
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


REVISIONS: Sequence[str] = (
    "0.1.0",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
)
"""All revisions, oldest first."""

HEAD = REVISIONS[-1]

_marks = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def prepare(engine: Engine) -> None:
    """Create the tables, or migrate those of an older version; one process at a time.

    Raises:
        NewerDatabaseError: a newer version of the program wrote the database.
        StorageError: it cannot be opened, is not a database, or belongs to another program.
    """
    try:
        with engine.connect() as connection, connection.begin():
            bring_up_to_date(connection)
    except DBAPIError as e:
        raise as_storage_error(e) from e


def bring_up_to_date(connection: Connection) -> None:
    """Create or migrate the schema within a running transaction of a writing connection.

    An empty database is created from `tables` directly and marked with the newest revision;
    migrations (and Alembic, which takes 0.3 s to import) are needed only for one that an older
    version wrote. A test checks that both give the same schema.
    """
    match stored_revision(connection):
        case None:
            _create(connection)
        case revision if revision == HEAD:
            return
        case revision if revision in REVISIONS:
            from quarterdeck.service.db.migrations import upgrade  # slow to import, rarely needed

            upgrade(connection)
        case revision:
            raise NewerDatabaseError(
                f"The database has revision {revision}, and this version of quarterdeck knows revisions "
                f"up to {HEAD}: a newer version wrote it, or one from before the first release. Install "
                "the version that wrote it, or choose another database."
            )


def stored_revision(connection: Connection) -> str | None:
    """Return the revision that a database has, None when it has none.

    Raises:
        StorageError: it has several.
    """
    if not inspect(connection).has_table(_marks.name):
        return None
    found = connection.execute(select(_marks.c.version_num)).scalars().all()
    if len(found) > 1:
        raise StorageError(
            f"The database has several revisions ({', '.join(map(str, found))}), so it is not known which "
            f"tables it has. Restore a backup, or leave only the right one in its table {_marks.name}."
        )
    return found[0] if found else None


def _create(connection: Connection) -> None:
    if inspect(connection).get_table_names():
        raise StorageError("The database holds tables of another program; choose another one.")
    metadata.create_all(connection, checkfirst=False)
    _marks.create(connection)
    connection.execute(insert(_marks).values(version_num=HEAD))


BUSY_SECONDS = 5.0
CACHE_KIB = 4096


def _sqlite_writing(url: URL) -> Engine:
    """Return an engine whose transactions are the only writers from their first moment."""
    return _sqlite_engine(url, "BEGIN IMMEDIATE", {})


def _sqlite_reading(url: URL) -> Engine:
    """Return an engine whose statements cannot write."""
    return _sqlite_engine(url, "BEGIN", {"query_only": "ON"})


def _sqlite_engine(url: URL, begin: str, pragmas: dict[str, str]) -> Engine:
    # Each thread keeps its own connection; there is nothing to pool. Errors are logged, without values.
    engine = create_engine(
        url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS}, hide_parameters=True
    )
    # synchronous=FULL: with NORMAL a power loss can lose acknowledged commits of a WAL database.
    settings = {
        "journal_mode": "WAL",
        "synchronous": "FULL",
        "foreign_keys": "ON",
        "cache_size": f"-{CACHE_KIB}",
        **pragmas,
    }

    def on_connect(raw: sqlite3.Connection, _: Any) -> None:
        # The driver's own BEGIN is deferred and comes late; transactions are started below instead.
        raw.isolation_level = None
        if raw.execute("PRAGMA page_count").fetchone() == (0,):  # a later one would be a write
            raw.execute("PRAGMA auto_vacuum=INCREMENTAL").close()
        for name, value in settings.items():
            raw.execute(f"PRAGMA {name}={value}").close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


GIVEN_BACK = 1_024
"""Pages of 4 KiB that are given back at once."""


def give_back(connection: Connection) -> bool:
    """Return unused pages of a SQLite file to the disk; False when it has no more, or cannot do so.

    A file of an earlier version keeps them for later rows.
    """
    if connection.dialect.name != SQLITE:
        return False
    count = "PRAGMA freelist_count"
    unused = connection.exec_driver_sql(count).scalar_one()
    with closing(connection.connection.cursor()) as cursor:
        for _ in range(min(unused, GIVEN_BACK)):
            # Python 3.11 ends the statement after its first page, whatever number it names.
            cursor.execute("PRAGMA incremental_vacuum(1)")
    return 0 < connection.exec_driver_sql(count).scalar_one() < unused


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


def _make_private(text: str) -> None:
    """Let only the owner read the files of a SQLite database. New ones take the mode of the first."""
    url = parse_url(text)
    if url.get_backend_name() != SQLITE or not url.database:
        return
    flags = (
        os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    )  # a pipe would wait for a writer
    # A file that cannot be opened is reported when the database is.
    with suppress(OSError):
        os.close(os.open(url.database, flags, PRIVATE))
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            os.chmod(url.database + suffix, PRIVATE)  # noqa: PTH101


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
        return _sqlite_writing(url)
    return _postgresql().writing(url, home_id)


def reading_engine(text: str) -> Engine:
    """Return the engine for reader threads: a statement that writes fails.

    Raises:
        StorageError: the URL cannot be used.
    """
    url = parse_url(text)
    if url.get_backend_name() == SQLITE:
        return _sqlite_reading(url)
    return _postgresql().reading(url)


def _postgresql() -> ModuleType:
    if find_spec("psycopg") is None:
        raise StorageError(
            "PostgreSQL needs a driver that is not installed. "
            "Install it with: pip install 'quarterdeck[postgresql]'"
        )
    return import_module("quarterdeck.service.db.postgresql")  # rarely needed


def take_home_lock(connection: Connection, home_id: str) -> bool:
    """Take the lock of another service's home until the end of the transaction.

    False while that service is connected to the database, and always without a server.
    """
    if connection.dialect.name == SQLITE:
        return False
    return bool(_postgresql().take_home_lock(connection, home_id))


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
        await asyncio.to_thread(_make_private, url)
        database = cls(url, home_id)
        for worker in database._workers:
            worker.start()
        try:
            # On the writer's own connection: it keeps its lock from now on.
            await database.write(bring_up_to_date)
        except BaseException:
            await database.close()
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
