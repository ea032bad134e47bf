"""Type-ahead: keys typed in a burst go where they would have gone one at a time.

    key --> queue --> no hold, and the key before it is handled --> Textual

Textual looks at the focus when a key arrives, so a key that is typed before the screen it is meant for
is open would go to the wrong widget. A key waits for two reasons:

- A hold. Whatever moves the focus later than its key is handled owns one and releases it in a
  `finally`: pushing a screen (`TypeAhead.push_screen`), opening a pane or a terminal (`hold_keys`).
- The key before it, until the widgets that it passes have handled it and what it made them post. A
  callback that travels through their message queues detects this (`_hop`). Text that follows text into the
  same field does not wait.

Keys never wait silently or forever. After `NOTICE_SECONDS` the screen says so, and Escape, Ctrl+C or
Ctrl+Q discards them. A key before that is not handled stops counting after `SETTLE_SECONDS`; keys that
are held for `HOLD_SECONDS` are discarded with a notification, because by then they could mean anything.
The screen also names what a hold waits for while no key does, so that the key before it has a visible effect.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from time import monotonic
from types import TracebackType
from typing import Any, Self, cast

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.frames import SettledLayout

NOTICE_SECONDS = 0.2
"""Age of the oldest waiting key, or hold, at which the screen says so."""
LOOK_SECONDS = NOTICE_SECONDS / 2
"""How often waiting keys are checked."""
SETTLE_SECONDS = 2.0
"""How long a key waits for a handler of the key before it that does not return."""
HOLD_SECONDS = 10.0
"""How long keys are held for something that does not open."""
ROUNDS = 3
"""Rounds of the callback: a handler posts a message, whose handler posts another."""
WAYS_OUT = frozenset({"escape", "ctrl+c", "ctrl+q"})
"""Keys that discard the waiting ones once the screen says that they wait."""

Typed = events.Key | events.Paste


class KeyHold:
    """Makes typed keys wait until it is released. A context manager; releasing twice is harmless."""

    def __init__(self, app: "TypeAhead | None", reason: str) -> None:
        self.reason = reason
        self.since = monotonic()
        self._app = app

    def release(self) -> None:
        """Pass the keys on, unless another hold remains."""
        app, self._app = self._app, None
        if app is not None:
            app.end_hold(self)

    def discard(self) -> None:
        """Drop what was typed, then release: the widget it was meant for did not open."""
        if self._app is not None:
            self._app.discard_keys()
            self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, asyncio.CancelledError):
            self.release()
        else:
            self.discard()


class KeysWaiting(Static):
    """One line over the bottom of the screen: why keys wait, how many, and the way out."""

    DEFAULT_CSS = """
    KeysWaiting {
        layer: _toastrack;
        dock: bottom;
        width: 1fr;
        height: 1;
        padding: 0 1;
        background: $panel;
        color: $foreground;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        &.waiting { background: $warning; color: $background; text-style: bold; }
    }
    """


class TypeAhead(App[Any]):
    """An app whose keys wait for the widget that they are meant for. Mixin to put before `App`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._typed: deque[Typed] = deque()
        self._holds: list[KeyHold] = []
        self._key_number = 0
        """The key that is followed; callbacks of an earlier one end."""
        self._rounds_left = 0
        self._travelling = False
        self._passed: Typed | None = None
        self._passed_at = 0.0
        self._writing: Widget | None = None
        """The field that the last key was text for."""
        self._check: asyncio.TimerHandle | None = None
        self._waited = 0.0
        """Seconds since the first waiting key moved, without those in which the event loop was busy."""
        self._notice: KeysWaiting | None = None
        self._noticed_on: Screen[Any] | None = None

    # holds

    def hold_keys(self, reason: str) -> KeyHold:
        """Make keys typed from now on wait; `reason` is shown when that takes long."""
        hold = KeyHold(self, reason)
        self._holds.append(hold)
        self._show_waiting()
        return hold

    def end_hold(self, hold: KeyHold) -> None:
        """End a hold, on its own request; one that was discarded already is no longer known."""
        if hold in self._holds:
            self._holds.remove(hold)
            self._show_waiting()
            # A worker that was started before the release takes its own hold first.
            asyncio.get_running_loop().call_soon(self._go_on)

    def discard_keys(self) -> None:
        """Forget the keys that wait."""
        self._typed.clear()
        self._show_waiting()

    def push_screen(self, screen: Any, *args: Any, **kwargs: Any) -> Any:
        """Push a screen as Textual does; keys typed from now on are for it."""
        hold = self.hold_keys("Opening")
        shown = False
        try:
            result = cast("Any", super()).push_screen(screen, *args, **kwargs)
            # Its queue has the event by which it takes the focus; this callback comes after that.
            shown = self.screen_stack[-1].call_later(hold.release)
        finally:
            if not shown:
                hold.release()
        return result

    # passing keys on

    @property
    def keys_waiting(self) -> bool:
        """Whether typed keys wait, or would if there were any, for what a hold opens."""
        return bool(self._typed or self._holds)

    @property
    def keys_typed(self) -> bool:
        """Whether any key has been typed since the start."""
        return self._key_number > 0

    @property
    def _settled(self) -> bool:
        """Whether the last key is handled, and the messages that the widgets posted for it."""
        return self._rounds_left == 0

    async def on_event(self, event: events.Event) -> None:
        """Queue keys before any widget sees them; everything else goes the usual way."""
        if not isinstance(event, events.Key | events.Paste):
            await super().on_event(event)
        elif event.is_forwarded:
            # It has bubbled up through all widgets, and its binding is carried out here.
            await super().on_event(event)
            if event is self._passed and not self._travelling:
                self._end_round(ROUNDS - 1)
        elif self._discards(event):
            self._typed.clear()
            self._holds.clear()
            self._show_waiting()
            await self._pass_on(event, self.focused or self.screen)
            self._rounds_left = 0  # it may be at a widget that handles nothing any more
        else:
            self._typed.append(event)
            await self._pass_keys()

    def press_next(self, key: str) -> None:
        """Press a key for the user, before those that are already typed."""
        self._typed.appendleft(events.Key(key, None))
        self._go_on()

    def _discards(self, event: Typed) -> bool:
        """Return whether it was pressed after a pause; in a burst it is a key like others."""
        if not isinstance(event, events.Key) or event.key not in WAYS_OUT:
            return False
        since = [hold.since for hold in self._holds]
        if not self._settled:
            # Without waiting keys nobody checks whether the last one is handled.
            since.append(self._typed[0].time if self._typed else self._passed_at)
        return bool(since) and event.time - min(since) >= NOTICE_SECONDS

    def _go_on(self) -> None:
        if self._typed and not self._holds:
            if self._settled:
                self.call_later(self._pass_keys)
            else:
                self._next_round()

    async def _pass_keys(self) -> None:
        while self._typed and not self._holds:
            event, target = self._typed[0], self.focused or self.screen
            writes = _is_text(event, target)
            if not self._settled and not (writes and target is self._writing):
                self._next_round()
                break
            self._typed.popleft()
            self._writing = target if writes else None
            self._waited = 0.0
            await self._pass_on(event, target)
        self._show_waiting()

    async def _pass_on(self, event: Typed, target: Widget) -> None:
        self._key_number += 1
        self._rounds_left = ROUNDS
        self._travelling = False
        self._passed, self._passed_at = event, monotonic()
        taken = _taken(event, target)
        if taken:
            self._writing = None  # a command, although the field would have taken it as text
        else:
            await super().on_event(event)
        if taken or self._writing is not None:
            # It stays where it is: its effect can be drawn when that widget has handled it.
            self._rounds_left += 1
            self._travel([target])
        elif self._typed:
            self._next_round()

    # whether the last key is handled

    def _route(self, target: Widget) -> list[DOMNode]:
        """Return the nodes whose queues the key passes: its widgets, the screen now, the app."""
        route = [node for node in target.ancestors_with_self if node is not self]
        if self.screen not in route:
            route.append(self.screen)
        return [*route, self]

    def _next_round(self) -> None:
        if self._rounds_left and not self._travelling:
            self._travel(self._route(self.focused or self.screen))

    def _travel(self, route: list[DOMNode]) -> None:
        self._travelling = True
        self._hop(self._key_number, iter(route))

    def _hop(self, number: int, route: Iterator[DOMNode]) -> None:
        """Continue to the next queue; a widget that is removed has none."""
        if number != self._key_number or self._settled:
            return
        self._waited = 0.0
        for node in route:
            if node.call_later(self._hop, number, route):
                return
        self._travelling = False
        self._end_round(self._rounds_left - 1)

    def _end_round(self, left: int) -> None:
        if left >= ROUNDS - 1 and isinstance(screen := self.screen, SettledLayout):
            screen.draw_next()
        self._rounds_left = left
        if self._settled:
            self._go_on()
        elif self._typed:
            self._next_round()

    # notification of waiting keys

    def _show_waiting(self) -> None:
        """Check again after a while as long as keys wait, or would, and only then."""
        if not self.keys_waiting:
            if self._check is not None:
                self._check.cancel()
                self._check = None
            if self._notice is not None:
                self._notice.remove()
                self._notice = None
        elif self._check is None:
            self._check = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_at_waiting)

    def _look_at_waiting(self) -> None:
        self._check = None
        if not self.keys_waiting or not self.is_running:
            return
        if self._typed:
            self._waited += LOOK_SECONDS
        now = monotonic()
        is_late = (
            now - self._typed[0].time >= LOOK_SECONDS
            if self._typed
            else self.keys_typed and now - self._holds[0].since >= NOTICE_SECONDS
        )
        if is_late and self.screen.is_mounted:
            self._show_notice()
        if self._waited >= HOLD_SECONDS:
            self._give_up()
        elif not self._holds and self._waited >= SETTLE_SECONDS:
            self._rounds_left = 0
            self._go_on()
        self._show_waiting()

    def _show_notice(self) -> None:
        reason = self._holds[0].reason if self._holds else "Working"
        count = len(self._typed)
        keys = "1 key waits" if count == 1 else f"{count} keys wait"
        text = f"{one_line(reason)} …{f' {keys}. esc discards' if count else ''}"
        if self._notice is None or self._noticed_on is not self.screen:
            if self._notice is not None:
                self._notice.remove()
            self._notice, self._noticed_on = KeysWaiting(markup=False), self.screen
            self.screen.mount(self._notice)
        self._notice.update(text)
        self._notice.set_class(count > 0, "waiting")

    def _give_up(self) -> None:
        reason = self._holds[0].reason if self._holds else "Working"
        count = len(self._typed)
        self._typed.clear()
        self._holds.clear()
        self._rounds_left = 0
        keys = "1 typed key was" if count == 1 else f"{count} typed keys were"
        self.notify(
            f"{keys} discarded: it took longer than {HOLD_SECONDS:.0f} seconds.",
            title=one_line(reason),
            severity="warning",
            markup=False,
        )


def _is_text(event: Typed, target: Widget) -> bool:
    """Return whether it stays with the widget: then the next one may follow at once."""
    return isinstance(event, events.Paste) or target.check_consume_key(event.key, event.character)


def _taken(event: Typed, target: Widget) -> bool:
    nodes = [node for node in target.ancestors_with_self if isinstance(node, TakesKeys)]
    if isinstance(event, events.Key):
        return any(node.take_key(event) for node in nodes)
    return any(node.take_paste(event) for node in nodes)


class TakesKeys:
    """A widget that gets its own keys and pastes, and those of its descendants, before they do."""

    def take_key(self, event: events.Key) -> bool:
        """Return whether the key is consumed. Called before the next key is handled."""
        return False

    def take_paste(self, event: events.Paste) -> bool:
        """Return whether the paste is consumed."""
        return False


def discard_keys(widget: Widget) -> None:
    """Forget the keys that wait: the widget they were meant for does not open."""
    app = cast("App[Any]", widget.app)
    if isinstance(app, TypeAhead):
        app.discard_keys()


def keys_typed(widget: Widget) -> bool:
    """Return whether the user has typed any key since the start."""
    app = cast("App[Any]", widget.app)
    return isinstance(app, TypeAhead) and app.keys_typed


def hold_keys(widget: Widget, reason: str) -> KeyHold:
    """Make keys wait for a focus change in progress; `reason` is shown when that takes long.

    The caller releases the hold when the focus is there or will not come, in a `finally` or by `with`.
    """
    app = cast("App[Any]", widget.app)
    return app.hold_keys(reason) if isinstance(app, TypeAhead) else KeyHold(None, reason)
