"""What was looked up is remembered for a few seconds."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

SECONDS = 5.0
"""What another service took away is refused after this long at the latest."""
ENTRIES = 1_000


class Remembered(Generic[K, V]):
    """Finds values by key; None is never remembered."""

    def __init__(self, now: Callable[[], float] = monotonic, seconds: float = SECONDS) -> None:
        self._now = now
        self._seconds = seconds
        self._found: dict[K, tuple[float, V]] = {}
        self._generation = 0

    async def get(self, key: K, look: Callable[[], Awaitable[V | None]]) -> V | None:
        """The remembered value, else what `look` finds."""
        expires, remembered = self._found.get(key, (0.0, None))
        if remembered is not None and self._now() < expires:
            return remembered
        self._found.pop(key, None)
        generation = self._generation
        found = await look()
        # What was read before something was taken away must not be kept after it.
        if found is not None and generation == self._generation:
            self._keep(key, found)
        return found

    def forget(self) -> None:
        """Makes the next question of every key look again."""
        self._generation += 1
        self._found.clear()

    def _keep(self, key: K, found: V) -> None:
        if len(self._found) >= ENTRIES:
            self._found.clear()
        self._found[key] = (self._now() + self._seconds, found)
