"""What a key sets off, followed to its end through the queues of all widgets.

    key --> a message --> its handler --> further messages, mounts, callbacks --> ... --> none left

Textual has a queue for each widget, and a handler that moves the focus is often three queues away from
the key. So what is posted while a followed message is handled is followed too, as are widgets that are
being mounted and callbacks that wait for the next frame (`key_hooks` tells of them). When none of it is
left the key is dealt with, however long that took. Workers and timers are not followed: they may wait
for anything.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from textual.message_pump import MessagePump


class Trail:
    """All that keys have set off and that is not over yet; `over` is called when nothing is left."""

    def __init__(self, over: Callable[[], None]) -> None:
        self._over = over
        self._left = 0

    @property
    def busy(self) -> bool:
        """Whether anything is left."""
        return self._left > 0

    def begin(self) -> None:
        """One thing more."""
        self._left += 1

    def end(self) -> None:
        """One thing less."""
        self._left -= 1
        if not self._left:
            self._over()

    @contextmanager
    def followed(self) -> Generator[None]:
        """What this task sets off meanwhile belongs to the trail."""
        task = asyncio.current_task()
        assert task is not None
        before = _followed.get(task)
        self.begin()
        _followed[task] = self
        try:
            yield
        finally:
            if before is None:
                del _followed[task]
            else:
                _followed[task] = before
            self.end()


_followed: dict["asyncio.Task[Any]", Trail] = {}
"""Tasks that are handling something of a trail."""
_waiting: dict[tuple[int, int], tuple[Trail, MessagePump, object]] = {}
"""What waits in a queue, by whose and what. The object is kept, so that its number stays its own."""


def current_trail() -> Trail | None:
    """The trail that the running code belongs to."""
    if not _followed:
        return None
    try:
        task = asyncio.current_task()
    except RuntimeError:  # another thread
        return None
    return _followed.get(task) if task is not None else None


def wait_for(trail: Trail, pump: MessagePump, thing: object) -> None:
    """The trail goes on until the pump has met the thing, or has ended."""
    if (id(pump), id(thing)) not in _waiting:
        _waiting[id(pump), id(thing)] = (trail, pump, thing)
        trail.begin()


@contextmanager
def met(pump: MessagePump, thing: object) -> Generator[None]:
    """Handles something that may have waited."""
    trail, _, _ = _waiting.pop((id(pump), id(thing)), (None, None, None))
    if trail is None:
        yield
        return
    with trail.followed():
        trail.end()
        yield


def gone(pump: MessagePump) -> None:
    """A widget that has ended handles nothing any more."""
    for key in [key for key in _waiting if key[0] == id(pump)]:
        _waiting.pop(key)[0].end()


def anything_waits() -> bool:
    """Whether any trail waits for anything."""
    return bool(_waiting)
