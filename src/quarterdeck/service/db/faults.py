"""Database errors, told apart by what a person can do about them."""

import sqlite3

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from quarterdeck.service.errors import (
    DatabaseFullError,
    DatabaseLockedError,
    DatabaseLostError,
    DatabaseReadOnlyError,
    StorageError,
)

_FULL = {sqlite3.SQLITE_FULL}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_READ_ONLY = {sqlite3.SQLITE_READONLY}
_PG_FULL = "53100"
_PG_LOCKED = {"55P03", "40P01", "40001"}
_PG_READ_ONLY = "25006"


def as_storage_error(error: DBAPIError) -> Exception:
    """The typed error; a violated constraint stays as it is."""
    if isinstance(error, IntegrityError):
        return error
    fault = _typed(error)
    fault.__cause__ = error
    return fault


def spoils_transaction(error: DBAPIError) -> bool:
    """Whether the whole transaction may be gone, not only the statement.

    SQLite undoes the transaction by itself when the disk is full or a page cannot be read.
    """
    return isinstance(error, OperationalError)


def _typed(error: DBAPIError) -> StorageError:
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    state = _state_of(error)
    if code in _FULL or state == _PG_FULL:
        return DatabaseFullError(
            "The disk of the service's database is full; nothing was changed. Make room."
        )
    if code in _LOCKED or state in _PG_LOCKED:
        return DatabaseLockedError(_held(error))
    if code in _READ_ONLY or state == _PG_READ_ONLY:
        return DatabaseReadOnlyError("The service's database can only be read, not written.")
    if error.connection_invalidated:
        return DatabaseLostError("The connection to the service's database was lost.")
    return StorageError(f"The service's database failed: {_first_line(error)}")


def _state_of(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _held(error: DBAPIError) -> str:
    if _state_of(error) in _PG_LOCKED and error.statement is None:  # while it connected
        return (
            "Another service of this home, or of a copy of it, uses the database. Stop that one; "
            "a service of its own needs a home of its own (QUARTERDECK_HOME)."
        )
    return "The service's database is held by another program; nothing was changed. Try again."


def _first_line(error: DBAPIError) -> str:
    """What the driver says; the lines below it may repeat values."""
    return str(error.orig).partition("\n")[0]
