"""SQLAlchemy engines: the only place that knows which database it is."""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool

BUSY_SECONDS = 5.0
CACHE_KIB = 4096


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def writing_engine(url: str) -> Engine:
    """For the writer thread and for migrations."""
    return _engine(url, "BEGIN IMMEDIATE", {})


def reading_engine(url: str) -> Engine:
    """For reader threads: a statement that writes fails."""
    return _engine(url, "BEGIN", {"query_only": "ON"})


def _engine(url: str, begin: str, pragmas: dict[str, str]) -> Engine:
    # Each thread keeps its own connection; there is nothing to pool.
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, poolclass=NullPool)
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
    _prepare_sqlite(engine, begin, pragmas)
    return engine


def _prepare_sqlite(engine: Engine, begin: str, pragmas: dict[str, str]) -> None:
    # synchronous=FULL: with NORMAL a power loss takes acknowledged commits of a WAL database.
    settings = {
        "journal_mode": "WAL",
        "synchronous": "FULL",
        "foreign_keys": "ON",
        "cache_size": f"-{CACHE_KIB}",
        **pragmas,
    }

    def on_connect(raw: sqlite3.Connection, _: Any) -> None:
        # The driver's own BEGIN is deferred and comes late; transactions are begun below instead.
        raw.isolation_level = None
        for name, value in settings.items():
            raw.execute(f"PRAGMA {name}={value}").close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
