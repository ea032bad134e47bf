"""Keys that are typed while the focus is on its way belong to where it goes.

    key --> held? --> kept --> focus arrives --> replayed in their order

Keys reach widgets through queues, so a focus that moves later than the key which asked for it finds
the following keys delivered to the old widget. What moves the focus is therefore bound with priority
(carried out before the next key is looked at), and what needs time for it holds the keys meanwhile.
"""

from collections import deque
from typing import Any, cast

from textual import events
from textual.app import App
from textual.timer import Timer
from textual.widget import Widget

LIMIT = 5.0
"""Seconds that keys are held; then they are dropped, for they could mean anything by now."""

Typed = events.Key | events.Paste


class TypeAhead(App[Any]):
    """Put before `App` among an app's bases."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: deque[Typed] = deque()
        self._holding = False
        self._draining = False
        self._limit: Timer | None = None

    def hold(self) -> None:
        """Keeps what is typed from now on until `release`."""
        self._holding = True
        if self._limit is None:
            self._limit = self.set_timer(LIMIT, self.drop)

    def release(self) -> None:
        """Gives what was typed to what has the focus now."""
        if not self._holding:
            return
        self._holding = False
        self._stop_timer()
        if self._held and not self._draining:
            self._draining = True
            self.call_later(self._drain)

    def drop(self) -> None:
        """Forgets what was typed: the focus did not come, so it could mean anything."""
        self._held.clear()
        self._holding = False
        self._stop_timer()

    async def on_event(self, event: events.Event) -> None:
        """Part of `App`: keys come through here before any widget sees them."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._type(event)
        else:
            await super().on_event(event)

    async def _type(self, event: Typed) -> None:
        if self._holding or self._draining:
            self._held.append(event)
        else:
            await self._pass_on(event)

    async def _pass_on(self, event: Typed) -> None:
        focused = self.focused
        if isinstance(event, events.Key) and focused is not None:
            for node in focused.ancestors_with_self:
                if isinstance(node, TakesKeys) and node.take_key(event):
                    return
        await super().on_event(event)

    async def _drain(self) -> None:
        try:
            while self._held and not self._holding:
                await self._pass_on(self._held.popleft())
        finally:
            self._draining = False

    def _stop_timer(self) -> None:
        if self._limit is not None:
            self._limit.stop()
            self._limit = None


class TakesKeys(Widget):
    """A widget that is asked about keys of its descendants before they are."""

    def take_key(self, event: events.Key) -> bool:
        """Whether the key is used up. Carried out before the next key is looked at."""
        raise NotImplementedError


def hold_keys(widget: Widget) -> None:
    """Keeps what is typed, for a focus that is on its way."""
    app = cast("App[Any]", widget.app)
    if isinstance(app, TypeAhead):
        app.hold()


def release_keys(widget: Widget) -> None:
    """The focus is where it should be."""
    app = cast("App[Any]", widget.app)
    if isinstance(app, TypeAhead):
        app.release()


def drop_keys(widget: Widget) -> None:
    """The focus did not come."""
    app = cast("App[Any]", widget.app)
    if isinstance(app, TypeAhead):
        app.drop()
