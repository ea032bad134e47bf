"""A long paste is one token in the composer, and all of it in what is kept and sent."""

from typing import Any

import pytest
from textual import events, on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from quarterdeck.tui.widgets.composer import LONG_LINES, Composer, Pastes, is_long
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.live import Installation

LONG = "\n".join(f"line {number}" for number in range(100))
TOKEN = "[paste 1: 100 lines, 789 bytes]"


class Desk(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield Composer()

    @on(Composer.Submitted)
    def _sent(self, event: Composer.Submitted) -> None:
        self.sent.append(event.text)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)


async def paste(app: App[Any], pilot: Pilot[Any], text: str) -> None:
    app.post_message(events.Paste(text))
    await pilot.pause()


def test_what_is_long_becomes_a_token_and_back() -> None:
    pastes = Pastes()
    assert not is_long("short\n" * (LONG_LINES - 1))
    assert is_long("short\n" * LONG_LINES) and is_long("x" * 4_001)
    assert pastes.add(LONG) == TOKEN == pastes.add(LONG)
    megabyte = "0123456789abc\n" * 75_000
    assert pastes.add(megabyte) == "[paste 2: 75,000 lines, 1.1 MB]"
    shown = f"Look: {TOKEN} and [paste 2: 75,000 lines, 1.1 MB], not [paste 9: 1 line, 2 bytes]"
    written = f"Look: {LONG} and {megabyte}, not [paste 9: 1 line, 2 bytes]"
    assert pastes.written(shown) == written
    assert pastes.shown(written) == shown
    # A draft that was left by another cockpit: nobody knows its parts any more.
    assert Pastes().shown(megabyte) == "[paste 1: 75,000 lines, 1.1 MB]"
    assert Pastes().shown(LONG) == LONG


def test_tokens_that_are_gone_are_forgotten_in_the_end() -> None:
    pastes = Pastes()
    tokens = [pastes.add(f"{LONG}{number}") for number in range(50)]
    pastes.forget(tokens[0])
    assert pastes.text_of(tokens[0]) and pastes.text_of(tokens[-1])
    assert pastes.text_of(tokens[1]) is None


async def test_a_long_paste_is_one_thing_for_the_cursor_and_for_deletion() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        composer = app.composer
        await pilot.press("a", "space")
        await paste(app, pilot, LONG)
        await pilot.press("z")
        assert composer.text == f"a {TOKEN}z"
        assert composer.written == f"a {LONG}z"
        end = 2 + len(TOKEN)
        for key, column in (("left", end), ("left", 2), ("right", end), ("ctrl+left", 2)):
            await pilot.press(key)
            assert composer.cursor_location == (0, column), key
        composer.move_cursor((0, 10))
        assert composer.cursor_location[1] in {2, end}
        await pilot.press("end", "left", "backspace")
        assert composer.text == "a z" == composer.written
        await pilot.press("ctrl+z")
        assert composer.written == f"a {LONG}z"
        composer.move_cursor((0, 2))
        await pilot.press("delete")
        assert composer.text == "a z"


async def test_what_is_meant_is_copied_and_sent_and_may_come_back() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        composer = app.composer
        await paste(app, pilot, LONG)
        assert composer.paste_at_cursor == LONG
        composer.select_all()
        assert composer.selected_text == LONG
        composer.move_cursor(composer.document.end)
        await pilot.press("space", *"why", "enter")
        assert app.sent == [f"{LONG} why"]
        assert composer.text == ""
        assert composer.paste_at_cursor is None
        await pilot.press("n")
        composer.put_back(app.sent[0], plan_mode=False)
        assert composer.text == f"{TOKEN} why\nn"
        assert composer.written == f"{LONG} why\nn"


async def test_control_characters_of_a_paste_are_no_text() -> None:
    app = Desk()
    async with app.run_test() as pilot:
        await paste(app, pilot, f"\x1b[2J{LONG}\r\n\x07")
        assert app.composer.written == f"{LONG}\n"


@pytest.mark.long
async def test_the_draft_and_the_message_hold_what_was_pasted(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit((100, 40)) as desk:
        pane = await opened(desk, "alpha")
        await desk.see("○ idle")
        await paste(desk.app, desk.pilot, LONG)
        await desk.see(TOKEN)
        drafts = desk.app.app_state.disk
        await eventually(lambda: drafts.draft(pane.chat_id) == LONG, "the draft")
        await desk.write(" thanks")
        await desk.press("enter")
        await desk.see("line 99 thanks")
        await eventually(lambda: drafts.draft(pane.chat_id) == "", "the end of the draft")
