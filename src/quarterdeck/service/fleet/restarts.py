"""Counts how often an engine was started again lately."""

from collections import deque
from collections.abc import Callable
from time import monotonic


class Restarts:
    """At most `most` within `window` seconds."""

    def __init__(self, most: int, window: float, now: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._window = window
        self._now = now
        self._times: deque[float] = deque()

    def allowed(self) -> bool:
        """Counts one more, unless that is too many."""
        now = self._now()
        while self._times and now - self._times[0] >= self._window:
            self._times.popleft()
        if len(self._times) >= self._most:
            return False
        self._times.append(now)
        return True
