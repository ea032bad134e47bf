"""Keys that are typed ahead go where a person meant them, however they come in one burst.

    key --> waiting? --> kept --> the key before is dealt with, the focus is there --> passed on

Keys reach widgets through queues, and most bindings are carried out only after the key has bubbled
from queue to queue up to the app. Without care the keys behind one that moves the focus, or deletes,
are delivered before it does. So after a key that is no text the next one waits until the first has
come all the way up; and what needs time for a new focus holds the keys meanwhile (`hold_keys`).
"""

import asyncio
from collections import deque
from typing import Any, cast

from textual import events
from textual.app import App
from textual.message import Message
from textual.widget import Widget

LIMIT = 5.0
"""Seconds that keys are held; then they are dropped, for they could mean anything by now."""
PATIENCE = 0.2
"""Seconds for a key to be dealt with; its widget may be gone before it could say so."""

Typed = events.Key | events.Paste


class TypeAhead(App[Any]):
    """Put before `App` among an app's bases."""

    class DealtWith(Message):
        """Follows a key through the same queues: all before it is done."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._typed: deque[Typed] = deque()
        self._holding: asyncio.TimerHandle | None = None
        self._awaited: asyncio.TimerHandle | None = None
        self._draining = False

    def hold(self) -> None:
        """Keeps what is typed from now on until `release` or `drop`."""
        if self._holding is None:
            self._holding = asyncio.get_running_loop().call_later(LIMIT, self.drop)

    def release(self) -> None:
        """Gives what was typed to what has the focus now."""
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
            self.call_later(self._drain)

    def drop(self) -> None:
        """Forgets what was typed: the focus did not come, so it could mean anything."""
        if self._holding is not None:
            self._typed.clear()
            self.release()

    async def on_event(self, event: events.Event) -> None:
        """Part of `App`: keys come through here before any widget sees them."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._typed.append(event)
            await self._drain()
        else:
            await super().on_event(event)

    async def _drain(self) -> None:
        if self._draining:
            return
        self._draining = True
        try:
            while self._typed and self._holding is None and self._awaited is None:
                await self._pass_on(self._typed.popleft())
        finally:
            self._draining = False

    async def _pass_on(self, event: Typed) -> None:
        target = self.focused or self.screen
        if isinstance(event, events.Key):
            for node in target.ancestors_with_self:
                if isinstance(node, TakesKeys) and node.take_key(event):
                    return
        await super().on_event(event)
        if isinstance(event, events.Key) and not _is_text(event, target):
            self._await(target)

    def _await(self, target: Widget) -> None:
        message = self.DealtWith()
        # A message of the app itself would not come up to it again.
        message.set_sender(target)
        if target.post_message(message):
            self._awaited = asyncio.get_running_loop().call_later(PATIENCE, self._go_on)

    def on_type_ahead_dealt_with(self, message: DealtWith) -> None:
        """The key is done with."""
        self._go_on()

    def _go_on(self) -> None:
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None
        if self._typed:
            self.call_later(self._drain)


def _is_text(event: events.Key, target: Widget) -> bool:
    """Whether a key stays with the widget: then the next one may follow it at once."""
    return event.is_printable or target.check_consume_key(event.key, event.character)


class TakesKeys(Widget):
    """A widget that is asked about keys of its descendants before they are."""

    def take_key(self, event: events.Key) -> bool:
        """Whether the key is used up. Carried out before the next key is looked at."""
        raise NotImplementedError


def _app_of(widget: Widget) -> TypeAhead | None:
    app = cast("App[Any]", widget.app)
    return app if isinstance(app, TypeAhead) else None


def hold_keys(widget: Widget) -> None:
    """Keeps what is typed, for a focus that is on its way."""
    if (app := _app_of(widget)) is not None:
        app.hold()


def release_keys(widget: Widget) -> None:
    """The focus is where it should be."""
    if (app := _app_of(widget)) is not None:
        app.release()


def drop_keys(widget: Widget) -> None:
    """The focus did not come."""
    if (app := _app_of(widget)) is not None:
        app.drop()
