"""Keys that are typed ahead go where a person meant them, however they come in one burst.

    key --> kept --> all before it is dealt with, the focus is there --> passed on --> a trail

A key means what it would mean to somebody who waits: so the next one is looked at when everything
that the one before set off is over (`key_trail`), and that takes as long as it takes. Only text follows
text into the same field at once. What needs the outside for a new focus, a terminal say, holds the keys
meanwhile (`hold_keys`).

Two ways out, for nothing may keep the keys for ever: Escape or Ctrl+C, pressed while nothing moves,
forget what was typed and are passed on; and what is held for the outside is forgotten after a while.
"""

import asyncio
from collections import deque
from time import monotonic
from typing import Any, cast

from textual import events
from textual.app import App
from textual.widget import Widget

from quarterdeck.tui import key_hooks
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.key_trail import Trail

LIMIT = 10.0
"""Seconds of waiting for the outside after which held keys are dropped: they could mean anything."""
TICK = 0.25
"""Seconds between two looks at what is held; on a busy machine longer, and then the limit is, too."""
STUCK = 1.0
"""Seconds that a person has seen nothing happen when Escape or Ctrl+C means: let me out."""
WAYS_OUT = frozenset({"escape", "ctrl+c"})

Typed = events.Key | events.Paste


class TypeAhead(App[Any]):
    """Put before `App` among an app's bases."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        key_hooks.install()
        super().__init__(*args, **kwargs)
        self._typed: deque[Typed] = deque()
        self._trail = Trail(self._go_on)
        self._writing: Widget | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._ticks = 0
        self._passed = 0.0

    # holding keys for the outside

    def hold(self) -> None:
        """Keeps what is typed from now on until `release` or `drop`."""
        if self._ticking is None:
            self._ticks = 0
            self._tick()

    def _tick(self) -> None:
        if not self._trail.busy:
            self._ticks += 1
        if self._ticks * TICK > LIMIT:
            self.drop()
        else:
            self._ticking = asyncio.get_running_loop().call_later(TICK, self._tick)

    def release(self) -> None:
        """Gives what was typed to what has the focus now."""
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
            self._go_on()

    def drop(self) -> None:
        """Forgets what was typed: the focus did not come, so it could mean anything."""
        if self._ticking is not None:
            self._typed.clear()
            self.release()

    # passing keys on

    @property
    def keys_waiting(self) -> bool:
        """Whether a key is being dealt with, or waits for one that is."""
        return bool(self._typed) or self._trail.busy or self._ticking is not None

    async def on_event(self, event: events.Event) -> None:
        """Part of `App`: keys come through here before any widget sees them."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self._means_out(event):
                await self._let_out(event)
            else:
                self._typed.append(event)
                await self._drain()
        else:
            await super().on_event(event)

    def _means_out(self, event: Typed) -> bool:
        """By when it was pressed: one that came with the keys before it is a key like others."""
        pressed = isinstance(event, events.Key) and event.key in WAYS_OUT
        return pressed and self.keys_waiting and event.time - self._passed >= STUCK

    async def _let_out(self, event: Typed) -> None:
        self._typed.clear()
        self.release()
        await self._pass_on(event, self.focused or self.screen)
        # Nor is this one waited for: it may have gone where all stands still.
        self._trail, self._writing = Trail(self._go_on), None

    def _go_on(self) -> None:
        if self._typed:
            self.call_later(self._drain)
        elif self._screen_stack and isinstance(screen := self.screen, SettledLayout):
            screen.draw_next()

    async def _drain(self) -> None:
        while self._typed and self._ticking is None:
            event, target = self._typed[0], self.focused or self.screen
            writes = _is_text(event, target)
            if self._trail.busy and not (writes and target is self._writing):
                return
            self._typed.popleft()
            self._writing = target if writes else None
            await self._pass_on(event, target)

    async def _pass_on(self, event: Typed, target: Widget) -> None:
        self._passed = monotonic()
        with self._trail.followed():
            if isinstance(event, events.Key):
                for node in target.ancestors_with_self:
                    if isinstance(node, TakesKeys) and node.take_key(event):
                        return
            await super().on_event(event)


def _is_text(event: Typed, target: Widget) -> bool:
    """Whether it stays with the widget: then the next one may follow it at once."""
    return isinstance(event, events.Paste) or target.check_consume_key(event.key, event.character)


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
