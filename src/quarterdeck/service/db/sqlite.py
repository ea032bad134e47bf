"""SQLite: a file, one program at a time."""

import sqlite3
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

BUSY_SECONDS = 5.0
CACHE_KIB = 4096


def writing(url: URL) -> Engine:
    """Return an engine whose transactions are the only writers from their first moment."""
    return _engine(url, "BEGIN IMMEDIATE", {})


def reading(url: URL) -> Engine:
    """Return an engine whose statements cannot write."""
    return _engine(url, "BEGIN", {"query_only": "ON"})


def _engine(url: URL, begin: str, pragmas: dict[str, str]) -> Engine:
    # Each thread keeps its own connection; there is nothing to pool.
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
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
        for name, value in settings.items():
            raw.execute(f"PRAGMA {name}={value}").close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine
