"""SQLAlchemy engines: which database a URL names."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from sqlalchemy import Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from quarterdeck.service.db import sqlite
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
    """The URL of a SQLite file."""
    return URL.create(SQLITE, database=str(path)).render_as_string(hide_password=False)


def parse_url(text: str) -> URL:
    """A database's URL with its driver. As text it shows no password.

    Raises:
        StorageError: it is no URL, or names another kind of database.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the text may hold a password: it is not repeated
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
    """For the writer thread of a home's service, and for migrations.

    Raises:
        StorageError: the URL cannot be used.
    """
    url = parse_url(text)
    if url.get_backend_name() == SQLITE:
        return sqlite.writing(url)
    return _postgresql().writing(url, home_id)


def reading_engine(text: str) -> Engine:
    """For reader threads: a statement that writes fails.

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
    return import_module("quarterdeck.service.db.postgresql")  # needed by few
