"""A burst of keys means what it would mean to somebody who waits after each of them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from quarterdeck.tui.type_ahead import TypeAhead, hold_keys, release_keys
from tests.support.waiting import pauses

SLOW = 0.6
"""Longer than any key took to be given up on before."""


class Wanted(Message):
    """The panel asks its parent for something that takes the keys."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


class SlowField(Vertical):
    """Is there only after a while, as on a busy machine."""

    def compose(self) -> ComposeResult:
        yield Input()

    async def on_mount(self) -> None:
        await asyncio.sleep(SLOW)
        self.screen.set_focus(self.query_one(Input))


class SlowScreen(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield SlowField()


class Panel(Widget, can_focus=True):
    """Letters are commands; most of them take effect elsewhere, and not at once."""

    BINDINGS = [
        Binding("m", "want('mount')"),
        Binding("u", "want('mount unawaited')"),
        Binding("s", "want('screen')"),
        Binding("f", "want('frame')"),
        Binding("x", "want('removal')"),
        Binding("w", "want('outside')"),
        Binding("r", "want('restless')"),
        Binding("z", "want('stuck')"),
        Binding("G", "down"),
        Binding("p", "log", priority=True),
    ]

    line = 0

    def action_want(self, what: str) -> None:
        self.post_message(Wanted(what))

    def action_down(self) -> None:
        self.line = 9

    def action_log(self) -> None:
        self.app.log_line(f"p at {self.line}")  # type: ignore[attr-defined]


class Desk(TypeAhead):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.stuck = asyncio.Event()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Panel()

    def log_line(self, line: str) -> None:
        self.lines.append(line)

    async def on_wanted(self, event: Wanted) -> None:
        # The app's own queue must not wait: as in the cockpit the screen does it.
        self.screen.call_later(self._do, event.what)

    async def _do(self, what: str) -> None:
        match what:
            case "mount":
                await self.screen.mount(SlowField())
            case "mount unawaited":
                self.screen.mount(SlowField())
            case "screen":
                self.push_screen(SlowScreen())
            case "frame":
                self.screen.call_after_refresh(self._field_at_next_frame)
            case "removal":
                await self.query_one(Panel).remove()
                await self.screen.mount(SlowField())
            case "outside":
                hold_keys(self.screen)
                self._outside()
            case "restless":
                self._again()
                await self.screen.mount(SlowField())
            case _:
                await self.stuck.wait()

    async def _field_at_next_frame(self) -> None:
        await self.screen.mount(SlowField())

    @work
    async def _outside(self) -> None:
        await asyncio.sleep(SLOW)
        await self.screen.mount(SlowField())
        release_keys(self.screen)

    def _again(self) -> None:
        """Something that never rests, and was set off by a key."""
        self.set_timer(0.001, self._again)

    @property
    def typed(self) -> list[str]:
        return [field.value for field in self.screen.query(Input)]


def burst(app: TypeAhead, *keys: str) -> None:
    """All in one read, as a terminal sends what was typed ahead."""
    for key in keys:
        event = events.Key(key, key if len(key) == 1 else None)
        event.set_sender(app)
        app.post_message(event)


async def until(check: Callable[[], Any], what: str) -> None:
    try:
        async with asyncio.timeout(10):
            for pause in pauses(0.01):
                if check():
                    return
                await asyncio.sleep(pause)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


@pytest.mark.parametrize("how", ["m", "u", "s", "f", "x", "w", "r"])
async def test_text_behind_a_key_waits_for_its_field(how: str) -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, how, *"hello")
        await until(lambda: app.typed == ["hello"], f"the text, not {app.typed}")


async def test_a_letter_behind_a_letter_sees_what_it_did() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "G", "p")
        await until(lambda: app.lines, "the second letter")
    assert app.lines == ["p at 9"]


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_somebody_who_waits_in_vain_gets_out(key: str) -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "z", "m", "p")
        await until(lambda: app.keys_waiting, "the key that never ends")
        pressed = events.Key(key, None)
        pressed.time += 2.0
        app.post_message(pressed)
        try:
            await until(lambda: not app.keys_waiting, "a way out")
            burst(app, "p")
            await until(lambda: app.lines, "the next key")
        finally:
            app.stuck.set()
        assert app.lines == ["p at 0"]
        assert app.typed == []


async def test_escape_in_a_burst_is_a_key_like_others() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "s", *"lost", "escape", *"er")
        await until(lambda: app.typed == ["loster"], f"all of the text, not {app.typed}")


async def test_a_widget_that_goes_with_keys_in_its_queue_holds_none_back() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        panel = app.query_one(Panel)
        burst(app, "G", "x")
        panel.remove()
        await until(lambda: not panel.is_attached and not app.keys_waiting, "the end of it")


async def test_what_is_held_for_the_outside_is_forgotten_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quarterdeck.tui.type_ahead.LIMIT", 0.5)
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        app.hold()
        burst(app, "p")
        assert app.keys_waiting
        await until(lambda: not app.keys_waiting, "the limit")
        assert app.lines == []
