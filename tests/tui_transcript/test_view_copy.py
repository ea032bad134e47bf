"""Copying: the block under the cursor, or what was selected with the mouse."""

from typing import Any

import pytest
from textual.pilot import Pilot

from quarterdeck.tui.transcript_view import TranscriptView
from tests.tui_transcript.view_app import Host, event, say, settle, talk, user


class Copying(Host):
    """Keeps what is to be copied."""

    def on_transcript_view_copy_wanted(self, message: TranscriptView.CopyWanted) -> None:
        self.told.append(message.text)


async def drag(pilot: Pilot[Any], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(TranscriptView, offset=start)
    await pilot.hover(TranscriptView, offset=end)
    await pilot.mouse_up(TranscriptView, offset=end)
    await settle(pilot)


def row_of(app: Host, text: str) -> int:
    return next(y for y, row in enumerate(app.seen()) if text in row)


async def test_the_block_under_the_cursor_is_copied_and_without_one_the_last() -> None:
    app = Copying(user(0), say("**bold**\n\n- item"))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("y", "y")
        await settle(pilot)
        assert app.told == ["**bold**\n\n- item"] * 2
        await pilot.press("up", "y")
        await settle(pilot)
        assert app.told[2:] == ["> prompt 0"]


@pytest.mark.parametrize("key", ["up", "end", "pagedown"])
async def test_the_rule_at_the_end_of_a_turn_is_not_what_is_copied(key: str) -> None:
    end = event("turn-result", 9, messageId="m0", stopReason="end_turn")
    app = Copying(user(0), say("the answer"), end)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press(key, "y")
        await settle(pilot)
        assert app.told == ["the answer"]


async def test_text_is_selected_with_the_mouse() -> None:
    app = Copying(*talk(20), say("first \u6f22\u5b57 line\nsecond **bold** line\n\nthird line"))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        y = row_of(app, "first")
        plain = [strip.text for strip in app.view._window.strips]
        await drag(pilot, (10, y), (8, y + 2))
        assert app.screen.get_selected_text() == "\u5b57 line second bold line\n\nthird l"
        assert [strip.text for strip in app.view._window.strips] == plain
        style = app.screen.get_component_rich_style("screen--selection")
        marked = [
            s for s in app.view._window.strips[y] if s.style and s.style.bgcolor == style.bgcolor
        ]
        assert "".join(s.text for s in marked).startswith("\u5b57 line")
        await pilot.press("y")
        await settle(pilot)
        assert app.told == [app.screen.get_selected_text()]


async def test_the_bar_beside_a_message_or_a_quote_is_not_copied() -> None:
    app = Copying(user(0, "one two\nthree four"), say("> said\n> before"))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        await drag(pilot, (6, row_of(app, "one")), (8, row_of(app, "three")))
        assert app.screen.get_selected_text() == "e two\nthree"
        await drag(pilot, (0, row_of(app, "said")), (50, row_of(app, "before")))
        assert app.screen.get_selected_text() == "said before"


async def test_a_selection_stays_on_its_text_when_the_window_moves() -> None:
    app = Copying(*talk(40))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        y = row_of(app, "prompt 39")
        await drag(pilot, (4, y), (10, y))
        assert app.screen.get_selected_text() == "prompt"
        app.add(*talk(2, 40))
        await pilot.press("pageup")
        await settle(pilot)
        assert app.screen.get_selected_text() == "prompt"


async def test_a_double_click_selects_the_block() -> None:
    app = Copying(*talk(5), say("one\n\ntwo"))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        await pilot.click(TranscriptView, offset=(4, row_of(app, "one")), times=2)
        await settle(pilot)
        assert app.screen.get_selected_text() == "one\n\ntwo"
        await pilot.click(TranscriptView, offset=(4, row_of(app, "one")))
        await settle(pilot)
        assert not app.screen.get_selected_text()
