"""How often and how soon something safe is tried again."""

import random
from dataclasses import dataclass

from quarterdeck.client.errors import (
    ApiError,
    ClientError,
    RateLimited,
    TimedOut,
    Unavailable,
    Unreachable,
)

LONGEST_WAIT = 30.0
"""Seconds of `Retry-After` that a call waits for; more is given back to the caller."""


@dataclass(frozen=True)
class Pace:
    """Delays that double from `first` to `longest` seconds, each shortened by up to `jitter`."""

    first: float = 0.25
    longest: float = 10.0
    jitter: float = 0.3

    def delay(self, attempt: int) -> float:
        """Seconds before try number `attempt`, counted from 0."""
        whole = min(self.longest, self.first * 2.0 ** min(attempt, 30))
        return whole * (1 - self.jitter * random.random())


STREAM_PACE = Pace()
CALL_PACE = Pace(first=0.1, longest=2.0)
CALL_TRIES = 4
"""A safe call is made at most so often before its error is raised."""


def wait_before(error: ClientError, attempt: int, pace: Pace) -> float | None:
    """Seconds to wait before a safe call is tried again, or None when it must not be."""
    if isinstance(error, ApiError) and (error.retry_after or 0) > LONGEST_WAIT:
        return None
    match error:
        case RateLimited() | Unavailable():
            return max(error.retry_after or 0.0, pace.delay(attempt))
        case Unreachable() | TimedOut():
            return pace.delay(attempt)
        case _:
            return None
