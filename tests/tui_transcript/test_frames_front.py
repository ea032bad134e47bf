"""What is drawn when something in front changes."""

import pytest
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.frames import SettledLayout
from tests.support.waiting import eventually


class Counted(Vertical):
    """A container that knows how often it was drawn."""

    DEFAULT_CSS = "Counted { padding: 1; }"
    drawn = 0

    def render_lines(self, crop: Region) -> list[Strip]:
        self.drawn += 1
        return super().render_lines(crop)


class Words(Widget):
    """One text."""

    DEFAULT_CSS = "Words { height: 1fr; }"
    words = "before"

    def render(self) -> str:
        return self.words


class Sample(SettledLayout[None]):
    def compose(self) -> ComposeResult:
        with Counted():
            yield Words()
        with Counted(id="beside"):
            yield Words()


class SampleApp(App[None]):
    def get_default_screen(self) -> Sample:
        return Sample()


async def test_what_is_behind_a_change_is_not_drawn() -> None:
    app = SampleApp()
    async with app.run_test() as pilot:
        behind, front = app.screen.query(Counted).first(), app.screen.query(Words).first()
        await pilot.pause()
        drawn = behind.drawn
        front.words = "after"
        front.refresh(Region(0, 0, front.size.width, 1))
        await pilot.pause()
        assert behind.drawn == drawn
        assert "after" in app.export_screenshot()
        behind.refresh()
        await pilot.pause()
        assert behind.drawn > drawn


async def test_what_is_beside_a_change_is_not_drawn() -> None:
    app = SampleApp()
    async with app.run_test() as pilot:
        beside, first = app.screen.query_one("#beside", Counted), app.screen.query(Words).first()
        await pilot.pause()
        drawn = beside.drawn
        first.refresh()
        await pilot.pause()
        assert beside.drawn == drawn
        beside.refresh()
        await pilot.pause()
        assert beside.drawn > drawn


async def test_what_somebody_looks_for_does_not_wait_for_the_next_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = SampleApp()
    async with app.run_test() as pilot:
        await pilot.pause()
        screen, shown = app.screen, app.screen.query(Counted).first()
        assert isinstance(screen, Sample)
        # Frames that come by themselves never come.
        screen._update_timer.pause()
        monkeypatch.setattr(screen._update_timer, "resume", lambda: None)
        drawn = shown.drawn
        shown.refresh()
        await eventually(lambda: shown in screen._dirty_widgets)
        assert shown.drawn == drawn
        screen.draw_next()
        screen.check_idle()
        await eventually(lambda: shown.drawn > drawn)
