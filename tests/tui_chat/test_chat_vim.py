"""Vim's keys in the composer."""

from pathlib import Path

from textual import events, on
from textual.app import App, ComposeResult

from quarterdeck.tui.options import Options
from quarterdeck.tui.widgets.composer import LONG_LINES, Composer
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.live import Installation

VIM = Options(editing="vim")
LONG = "\n".join(["line"] * (LONG_LINES + 1))


class Desk(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield Composer()

    def on_mount(self) -> None:
        self.composer.use_vim(True)

    @on(Composer.Submitted)
    def _sent(self, event: Composer.Submitted) -> None:
        self.sent.append(event.text)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    def escape(self) -> None:
        """What the pane does with the key, before the composer has it."""
        assert self.composer.take_key(events.Key("escape", None))


async def test_the_mode_is_in_the_border_and_letters_are_commands() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        composer = app.composer
        assert composer.border_title == "Message · INSERT"
        await pilot.press(*"one two", "ctrl+j", *"three")
        app.escape()
        assert composer.border_title == "Message · NORMAL"
        assert composer.text == "one two\nthree"
        assert composer.cursor_location == (1, 4)
        await pilot.press("k", "0", "2")
        assert composer.border_title == "Message · NORMAL 2"
        await pilot.press("d", "w", "p")
        assert composer.text == "one two\nthree"
        await pilot.press("u")
        assert composer.text == "\nthree"
        await pilot.press("ctrl+r", "z", "ctrl+w", "ctrl+k", "ctrl+u")
        assert composer.text == "one two\nthree"
        await pilot.press("v", "j")
        assert composer.border_title == "Message · VISUAL"
        assert composer.selected_text
        app.escape()
        assert composer.selected_text == ""
        assert not composer.take_key(events.Key("escape", None))


async def test_enter_sends_in_normal_mode_and_the_next_message_is_typed() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await pilot.press(*"do it", "backslash")
        app.escape()
        await pilot.press("enter")
        assert app.sent == ["do it\\"]
        assert app.composer.border_title == "Message · INSERT"
        await pilot.press(*"more")
        app.escape()
        await pilot.press("u")
        assert app.composer.text == ""
        await pilot.press("ctrl+j", "r", "enter")
        assert app.composer.text == ""


async def test_a_long_paste_is_one_thing_for_commands() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        composer = app.composer
        await pilot.press(*"see ")
        app.post_message(events.Paste(LONG))
        await pilot.pause()
        await pilot.press(*" now")
        shown = composer.text
        app.escape()
        await pilot.press(*"0w")
        assert composer.cursor_location == (0, 4)
        await pilot.press("x")
        assert composer.text == "see  now"
        await pilot.press("P")
        assert composer.text == shown
        assert composer.written == f"see {LONG} now"
        await pilot.press("$", *"bX")
        assert composer.text == shown.replace(" now", "now")
        await pilot.press("X", "u")
        assert composer.text == shown.replace(" now", "now")
        await pilot.press("y", "y")
        await eventually(lambda: app.clipboard == f"see {LONG}now\n", "the copy")


async def test_a_paste_and_the_mouse_in_normal_mode() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        composer = app.composer
        await pilot.press(*"one two three")
        app.escape()
        app.post_message(events.Paste("X"))
        await pilot.pause()
        assert composer.text == "one two threXe"
        await pilot.press("u")
        assert composer.text == "one two three"
        await pilot.mouse_down(Composer, offset=(2 + 4, 1))
        await pilot.hover(Composer, offset=(2 + 8, 1))
        await pilot.mouse_up(Composer, offset=(2 + 8, 1))
        assert composer.selected_text == "two "
        await pilot.press("d")
        assert composer.text == "one three"


async def test_escape_leads_to_normal_mode_first_and_then_to_the_list(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit(options=VIM) as desk:
        composer = (await opened(desk, "alpha")).composer
        await desk.see("Message · INSERT", "enter send", "○ idle")
        assert "esc list" not in desk.text
        desk.burst([*"helo", "escape", "i", "l", "escape"])
        await desk.see("Message · NORMAL", "i insert", "esc list")
        await eventually(lambda: composer.text == "hello", "the text")
        assert desk.focus == "Composer"
        await desk.press("f1")
        await desk.see("Repeat the last change")
        await desk.press("escape")
        await desk.miss("Repeat the last change")
        desk.burst(["escape"])
        await eventually(lambda: desk.focus == "ReplicaListView", "the list")
        await desk.press("enter")
        await desk.see("Message · INSERT")
        desk.burst(" two")
        await eventually(lambda: composer.text == "hell twoo", "typing goes on")


async def test_completions_are_for_typing(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit(options=VIM) as desk:
        composer = (await opened(desk, "alpha")).composer
        await desk.see("○ idle")
        await desk.write("/")
        await desk.see("/plan")
        await desk.press("escape")
        await desk.miss("/plan")
        assert composer.token is None
        await desk.press("S", "slash")
        await desk.see("/plan")


async def test_the_setting_is_changed_while_it_runs(live: Installation, tmp_path: Path) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        composer = (await opened(desk, "alpha")).composer
        await desk.write("text")
        desk.app.set_option("editing", "vim")
        await desk.see("Message · INSERT")
        await desk.press("escape", "x")
        await eventually(lambda: composer.text == "tex", "the command")
        desk.app.set_option("editing", "standard")
        await desk.miss("NORMAL")
        await desk.write("x")
        await eventually(lambda: composer.text.count("x") == 2, "the letter")
