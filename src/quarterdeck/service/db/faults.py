"""Faults of the database: typed errors, a circuit breaker, and retries."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from time import monotonic
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from quarterdeck.service.errors import (
    DatabaseClosedError,
    DatabaseFullError,
    DatabaseLockedError,
    DatabaseLostError,
    DatabaseReadOnlyError,
    StorageError,
)

_FULL = {sqlite3.SQLITE_FULL}
_UNWRITTEN = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
"""Also reported for a quota and a limit of a file's size, without the number of the system's error."""
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_READ_ONLY = {sqlite3.SQLITE_READONLY}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_PG_FULL = "53100"
_PG_LOCKED = {"55P03", "40P01", "40001"}
_PG_READ_ONLY = "25006"
_PG_STOPPED = "57014"
_PG_AWAY = {"57P01", "57P02", "57P03", "53300"}
"""It was shut down, crashed, is starting, or accepts no more connections."""


def as_storage_error(error: DBAPIError) -> Exception:
    """Return the typed error; a violated constraint stays as it is."""
    if isinstance(error, IntegrityError):
        return error
    fault = _typed(error)
    fault.__cause__ = error
    return fault


def spoils_transaction(error: DBAPIError) -> bool:
    """Return whether the whole transaction may be lost, not only the statement.

    SQLite rolls back the transaction automatically when the disk is full or a page cannot be read.
    """
    return isinstance(error, OperationalError)


def _typed(error: DBAPIError) -> StorageError:
    extended = getattr(error.orig, "sqlite_errorcode", 0)
    code = extended & 0xFF
    state = _state_of(error)
    if code in _FULL or state == _PG_FULL:
        return DatabaseFullError(
            "The disk of the service's database is full; nothing was changed. Free some space."
        )
    if extended in _UNWRITTEN:
        return DatabaseFullError(
            "The file of the service's database cannot be written; nothing was changed. Its disk or a "
            "quota is full, or the disk fails or is read-only. Free some space, or repair it."
        )
    if code in _LOCKED or state in _PG_LOCKED:
        return DatabaseLockedError(_locked_message(error))
    if code in _READ_ONLY:
        return DatabaseReadOnlyError(
            "The service's database can only be read, not written. Check the owner of its file, and "
            "whether its disk is mounted read-only."
        )
    if state == _PG_READ_ONLY:
        return DatabaseReadOnlyError(
            "The service's database can only be read now, not written. Try again later."
        )
    if state == _PG_STOPPED:
        return DatabaseLockedError(
            "The service's database stopped this at a time limit of its own, or by hand; nothing was "
            "changed. Try again."
        )
    reason = _first_line(error)
    if code in _DAMAGED:
        return StorageError(
            "The file of the service's database is damaged. Stop the service and restore a backup, or save what can"
            " be read with sqlite3's .recover.",
            reason,
        )
    if error.connection_invalidated or _is_away(error):
        return DatabaseLostError(
            "The service's database cannot be reached now. Try again shortly.", reason
        )
    return StorageError("The service's database failed; see the service's log.", reason)


def _state_of(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _is_away(error: DBAPIError) -> bool:
    """Return whether the server was not reached: a failed connection has no SQL state."""
    if isinstance(error.orig, sqlite3.Error) or not isinstance(error, OperationalError):
        return False
    state = _state_of(error)
    return state is None or state in _PG_AWAY or state.startswith("08")


def _locked_message(error: DBAPIError) -> str:
    if _state_of(error) in _PG_LOCKED and error.statement is None:  # while it connected
        return (
            "Another service of this home, or of a copy of it, uses the database. Stop that one; "
            "a service of its own needs a home of its own (QUARTERDECK_HOME)."
        )
    return "The service's database is held by another program; nothing was changed. Try again."


def _first_line(error: DBAPIError) -> str:
    """Return the first line of the driver's message; later lines may repeat values."""
    return str(error.orig).partition("\n")[0]


RETRY_SECONDS = 1.0
"""While the server is lost it is tried this often at most; calls in between are refused at once."""

log = logging.getLogger(__name__)


class Outage:
    """A circuit breaker. Used on the event loop only; both changes are logged, with one line each."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._fault: DatabaseLostError | None = None
        self._since = 0.0
        self._retry_at = 0.0
        self._trying = False

    @property
    def lost(self) -> bool:
        """Whether the last attempt could not reach the server."""
        return self._fault is not None

    def admit(self) -> bool:
        """Let an attempt through; True when it probes whether the server is back.

        Raises:
            DatabaseLostError: it is lost, and another attempt is under way or was just made.
        """
        if self._fault is None:
            return False
        if self._trying or self._now() < self._retry_at:
            raise DatabaseLostError(str(self._fault), self._fault.reason)
        self._trying = True
        return True

    def ended(self, was_trial: bool, error: BaseException | None) -> None:
        """Record the result of an attempt: all errors but one mean that the server was reached.

        What was begun before the server was lost does not tell whether it is back.
        """
        if was_trial:
            self._trying = False
            self._retry_at = self._now() + RETRY_SECONDS
        if isinstance(error, DatabaseLostError):
            if self._fault is None:
                self._fault = error
                self._since = self._retry_at = self._now()
                log.error("The database cannot be reached", extra={"reason": error.reason})
        elif was_trial:
            self._fault = None
            seconds = round(self._now() - self._since, 1)
            log.warning("The database is reached again", extra={"seconds": seconds})


T = TypeVar("T")

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


async def retry_until_stored(
    attempt: Callable[[], Awaitable[T]], failed: Callable[[StorageError], None] | None = None
) -> T:
    """Repeat an attempt while the database fails, with growing pauses; for work without a caller.

    `failed` is called with each failure.

    Raises:
        DatabaseClosedError: the service is stopping.
        Exception: any other exception of the attempt.
    """
    for pause in chain(PAUSES, repeat(PAUSES[-1])):
        try:
            return await attempt()
        except DatabaseClosedError:
            raise
        except StorageError as e:
            log_storage_error(log, f"The database failed; trying again in {pause} s", e)
            if failed is not None:
                failed(e)
            await asyncio.sleep(pause)
    raise AssertionError("the pauses never end")


def log_storage_error(log: logging.Logger, message: str, error: StorageError) -> None:
    """Log a failed use of the database with its reason; a lost server is logged by `Database`."""
    if isinstance(error, DatabaseLostError):
        return
    # A specific error is complete; for any other the traceback matters.
    trace = error if type(error) is StorageError else None
    log.error("%s: %s", message, error.for_operator(), exc_info=trace)
