"""Waiting for what comes about elsewhere: in another process, or in a task of the loop."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

WAIT_SECONDS = 60.0
"""Seconds that something may take on a machine that has more to do."""
_SHARE = 0.25
_LONGEST = 0.25
T = TypeVar("T")


def pauses(first: float) -> Iterator[float]:
    """Seconds between looks: `first`, and then a quarter of what was waited, up to a quarter second.

    A look may be a request, whose cost is taken from what is waited for when processors are busy;
    so few looks are made at what takes long, and none comes much too late.
    """
    begun = time.monotonic()
    while True:
        waited = time.monotonic() - begun
        yield max(first, min(waited * _SHARE, _LONGEST))


def until(check: Callable[[], T], what: str = "the condition", seconds: float = WAIT_SECONDS) -> T:
    """Return the first true result of a check; fail after some time."""
    end = time.monotonic() + seconds
    for pause in pauses(0.05):
        if found := check():
            return found
        if time.monotonic() > end:
            break
        time.sleep(pause)
    raise AssertionError(f"waited in vain for {what}")


async def eventually(
    check: Callable[[], T | Awaitable[T]],
    what: str = "the condition",
    seconds: float = WAIT_SECONDS,
) -> T:
    """As `until`, in a coroutine; the check may be one, too."""
    try:
        async with asyncio.timeout(seconds):
            for pause in pauses(0.02):
                found = check()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(pause)
    except TimeoutError:
        pass
    raise AssertionError(f"waited in vain for {what}")
