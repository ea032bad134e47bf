"""A list of callbacks told of each change, in the order they asked."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

Unsubscribe = Callable[[], None]


class Signal(Generic[T]):
    """Publishes values to whoever watches. Callbacks run at once and must be quick."""

    def __init__(self) -> None:
        self._watchers: list[Callable[[T], None]] = []

    def watch(self, callback: Callable[[T], None]) -> Unsubscribe:
        """Tells `callback` of every later value, until the returned function is called."""
        self._watchers.append(callback)

        def stop() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return stop

    def publish(self, value: T) -> None:
        """Tells all watchers; one that is removed meanwhile is still told once."""
        for callback in tuple(self._watchers):
            callback(value)
