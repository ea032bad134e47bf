"""A few things that are kept because they may be wanted again."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """Holds at most `room` things; what was not wanted for the longest time goes first."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._things: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The thing of a key, if it is still there."""
        if key in self._things:
            self._things.move_to_end(key)
        return self._things.get(key)

    def put(self, key: K, thing: V) -> V:
        """Keeps a thing, and returns it."""
        self._things[key] = thing
        self._things.move_to_end(key)
        while len(self._things) > self._room:
            self._things.popitem(last=False)
        return thing
