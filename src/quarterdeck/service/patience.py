"""Waits out a database that cannot be written for a while, for instance on a full disk."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import TypeVar

from quarterdeck.service.errors import DatabaseClosedError, StorageError

T = TypeVar("T")

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)

log = logging.getLogger(__name__)


async def until_stored(attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeats an attempt while the database fails, with growing pauses; for work without a caller.

    Raises:
        DatabaseClosedError: the service ends.
        Exception: whatever else the attempt raises.
    """
    for pause in chain(PAUSES, repeat(PAUSES[-1])):
        try:
            return await attempt()
        except DatabaseClosedError:
            raise
        except StorageError as e:
            log.error("The database failed; trying again in %s s", pause, exc_info=e)
            await asyncio.sleep(pause)
    raise AssertionError("the pauses never end")
