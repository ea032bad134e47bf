"""Try again until the database has stored something."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import TypeVar

from quarterdeck.service.errors import DatabaseClosedError, DatabaseLostError, StorageError

T = TypeVar("T")

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)

log = logging.getLogger(__name__)


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
