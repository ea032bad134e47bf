"""A burst of keys means what it would mean to somebody who waits after each of them."""

import asyncio
from time import sleep
from typing import Any

import pytest
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from quarterdeck.tui.textual_ext.type_ahead import (
    NOTICE_SECONDS,
    KeyHold,
    KeysWaiting,
    TypeAhead,
    hold_keys,
)
from tests.support.waiting import eventually

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
        Binding("s", "want('screen')"),
        Binding("f", "want('frame')"),
        Binding("x", "want('removal')"),
        Binding("w", "want('outside')"),
        Binding("e", "want('failure')"),
        Binding("r", "want('restless')"),
        Binding("z", "want('stuck')"),
        Binding("b", "busy"),
        Binding("G", "down"),
        Binding("p", "log", priority=True),
    ]

    line = 0

    def action_want(self, what: str) -> None:
        self.post_message(Wanted(what))

    async def action_busy(self) -> None:
        await asyncio.sleep(SLOW / 2)
        # Nothing runs meanwhile, as on a machine with too much to do.
        sleep(2 * SLOW)  # noqa: ASYNC251
        self.post_message(Wanted("mount"))

    def action_down(self) -> None:
        self.line = 9

    def action_log(self) -> None:
        self.app.log_line(f"p at {self.line}")  # type: ignore[attr-defined]


class Desk(TypeAhead):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.told: list[str] = []
        self.stuck = asyncio.Event()
        self.answer = asyncio.Event()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Panel()

    def notify(self, message: str, **_: Any) -> None:
        self.told.append(message)

    def log_line(self, line: str) -> None:
        self.lines.append(line)

    async def on_wanted(self, event: Wanted) -> None:
        # The app's own queue must not wait: as in the cockpit the screen does it.
        self.screen.call_later(self._do, event.what)

    async def _do(self, what: str) -> None:
        match what:
            case "mount":
                await self.screen.mount(SlowField())
            case "screen":
                self.push_screen(SlowScreen())
            case "frame":
                hold = hold_keys(self.screen, "Drawing")
                self.screen.call_after_refresh(self._field_at_next_frame, hold)
            case "removal":
                await self.query_one(Panel).remove()
                await self.screen.mount(SlowField())
            case "outside":
                self._outside()
            case "failure":
                self._failure()
            case "restless":
                self._again()
                await self.screen.mount(SlowField())
            case _:
                await self.stuck.wait()

    async def _field_at_next_frame(self, hold: KeyHold) -> None:
        with hold:
            await self.screen.mount(SlowField())

    @work
    async def _outside(self) -> None:
        with hold_keys(self.screen, "Asking the service"):
            await self.answer.wait()
            await self.screen.mount(SlowField())

    @work(exit_on_error=False)
    async def _failure(self) -> None:
        with hold_keys(self.screen, "Asking the service"):
            raise ConnectionError

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


@pytest.mark.parametrize("how", ["m", "s", "f", "x", "w", "r"])
async def test_text_behind_a_key_waits_for_its_field(how: str) -> None:
    app = Desk()
    app.answer.set()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, how, *"hello")
        await eventually(lambda: app.typed == ["hello"], f"the text, not {app.typed}")


async def test_a_letter_behind_a_letter_sees_what_it_did() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "G", "p")
        await eventually(lambda: app.lines, "the second letter")
    assert app.lines == ["p at 9"]


async def test_escape_in_a_burst_is_a_key_like_others() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "s", *"lost", "escape", *"er")
        await eventually(lambda: app.typed == ["loster"], f"all of the text, not {app.typed}")


async def test_escape_in_a_burst_after_a_pause_is_one_too() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab", "m")
        await eventually(lambda: app.typed, "the field")
        app._passed_at -= NOTICE_SECONDS  # pyright: ignore[reportPrivateUsage]
        burst(app, *"kept", "escape", *"s")
        await eventually(lambda: app.typed == ["kepts"], f"all of the text, not {app.typed}")


async def test_the_screen_says_that_keys_wait_and_why() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "w", *"abc")
        await eventually(lambda: app.query(KeysWaiting), "the notice")
        assert str(app.query_one(KeysWaiting).render()) == (
            "Asking the service … 3 keys wait. esc discards"
        )
        app.answer.set()
        await eventually(lambda: app.typed == ["abc"], "the text")
        await eventually(lambda: not app.query(KeysWaiting), "the end of the notice")


async def test_the_screen_says_what_a_key_waits_for_that_no_other_follows() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        height = app.query_one(Vertical).size.height
        burst(app, "w")
        await eventually(lambda: app.query(KeysWaiting), "the notice")
        notice = app.query_one(KeysWaiting)
        assert str(notice.render()) == "Asking the service …"
        await eventually(lambda: notice.region.y == app.size.height - 1, "its place")
        assert app.query_one(Vertical).size.height == height  # it covers and moves nothing
        burst(app, "a")
        await eventually(
            lambda: "1 key waits" in str(app.query_one(KeysWaiting).render()), "the key"
        )
        app.answer.set()
        await eventually(lambda: app.typed == ["a"], "the text")
        await eventually(lambda: not app.query(KeysWaiting), "the end of the notice")


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
@pytest.mark.parametrize("waits_for", ["w", "z"])
async def test_a_key_discards_those_that_wait(key: str, waits_for: str) -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, waits_for, "m", "p")
        await eventually(lambda: app.query(KeysWaiting) or waits_for == "z", "the key that waits")
        pressed = events.Key(key, None)
        pressed.time += 2.0
        app.post_message(pressed)
        try:
            await eventually(lambda: not app._typed, "a way out")  # pyright: ignore[reportPrivateUsage]
            burst(app, "p")
            await eventually(lambda: app.lines, "the next key")
        finally:
            app.stuck.set()
        assert app.lines == ["p at 0"]
        assert app.typed == []


async def test_the_cockpit_can_be_left_while_a_handler_never_ends() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "z", "m")
        pressed = events.Key("ctrl+q", None)
        pressed.time += 2.0
        app.post_message(pressed)
        await eventually(lambda: not app.is_running, "the end")
        app.stuck.set()


async def test_a_handler_that_never_ends_keeps_no_key_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quarterdeck.tui.textual_ext.type_ahead.SETTLE_SECONDS", 0.3)
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "z", "p")
        try:
            await eventually(lambda: app.lines, "the next key")
        finally:
            app.stuck.set()


async def test_a_busy_machine_sends_no_key_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quarterdeck.tui.textual_ext.type_ahead.SETTLE_SECONDS", 1.5 * SLOW)
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "b", *"Gp")
        await eventually(lambda: app.typed == ["Gp"], f"the text, not {app.typed}")
    assert app.lines == []


async def test_a_widget_that_goes_with_keys_in_its_queue_holds_none_back() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        panel = app.query_one(Panel)
        burst(app, "G", "x")
        panel.remove()
        await eventually(lambda: not panel.is_attached and not app.keys_waiting, "the end of it")


async def test_keys_that_nothing_takes_are_discarded_with_a_notification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quarterdeck.tui.textual_ext.type_ahead.HOLD_SECONDS", 0.5)
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "w", "p", "p")
        await eventually(lambda: app.told, "the notification")
        assert not app.keys_waiting
        assert app.lines == []
        assert "2 typed keys were discarded" in app.told[0]


async def test_keys_behind_a_failure_are_discarded() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press("tab")
        burst(app, "e", "G")
        await eventually(lambda: not app.keys_waiting, "the failure")
        assert app.query_one(Panel).line == 0


def test_textuals_messages_go_their_own_way() -> None:
    """Following keys by replaced methods of Textual's kept every later key on another Python."""
    import quarterdeck.tui.app  # noqa: F401  # whatever it replaces, it does so now

    for kind in (MessagePump, Widget, App):
        for name, member in vars(kind).items():
            if callable(member) and hasattr(member, "__module__"):
                assert not member.__module__.startswith("quarterdeck"), f"{kind.__name__}.{name}"
