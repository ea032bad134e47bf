"""Database errors, told apart by what a person can do about them."""

import sqlite3

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from quarterdeck.service.errors import DatabaseFullError, DatabaseLockedError, StorageError

_FULL = {sqlite3.SQLITE_FULL}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_PG_FULL = "53100"
_PG_LOCKED = {"55P03", "40P01"}


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
    state = getattr(error.orig, "sqlstate", None)
    if code in _FULL or state == _PG_FULL:
        return DatabaseFullError("The disk of the service's database is full; nothing was changed.")
    if code in _LOCKED or state in _PG_LOCKED:
        return DatabaseLockedError("The service's database is held by another program.")
    return StorageError(f"The service's database failed: {error.orig}")
