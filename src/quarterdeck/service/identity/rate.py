"""How often one bearer may ask, when the operator set a bound (INTERFACE 10)."""

from collections.abc import Callable
from math import ceil
from time import monotonic

from quarterdeck.service.auth import Caller
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

MINUTE = 60.0
ENTRIES = 10_000


class RateLimit:
    """A bucket of a minute's requests per key, user or engine, filled evenly."""

    def __init__(self, per_minute: int, now: Callable[[], float] = monotonic) -> None:
        self._size = float(per_minute)
        self._fill = per_minute / MINUTE
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: Caller) -> None:
        """Counts one request.

        Raises:
            ApiError: RATE_LIMITED, with the whole seconds after which one is allowed again.
        """
        who = caller.key_id or caller.workspace_id or caller.user_id or caller.organization_id
        now = self._now()
        left, since = self._buckets.pop(who, (self._size, now))
        left = min(self._size, left + (now - since) * self._fill)
        allowed = left >= 1.0
        self._keep(who, left - 1.0 if allowed else left, now)
        if not allowed:
            wait = max(1, ceil((1.0 - left) / self._fill))
            raise ApiError(
                ErrorCode.RATE_LIMITED,
                "Too many requests with this key. Wait a little.",
                f"at most {self._size:.0f} a minute",
                retry_after=wait,
            )

    def _keep(self, who: str, left: float, now: float) -> None:
        # The oldest goes first: each use puts its bucket at the end.
        if len(self._buckets) >= ENTRIES:
            self._buckets.pop(next(iter(self._buckets)))
        self._buckets[who] = (left, now)
