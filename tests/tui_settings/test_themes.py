"""Themes, no color, reduced motion: what is sent, and what is not."""

from pathlib import Path

import pytest
from rich.color import ColorType
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.pilot import Pilot

from quarterdeck.tui.options import Options, read_options
from quarterdeck.tui.terminal.host import Offers
from quarterdeck.tui.themes import is_reduced
from tests.support.contrast import contrast
from tests.support.shown import shown_strips
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, every_block, queued, said, screen_text


def segments(app: FrozenCockpit) -> list[Segment]:
    return [segment for strip in shown_strips(app) for segment in strip]


def color_kinds(app: FrozenCockpit) -> set[ColorType]:
    styles = [segment.style for segment in segments(app) if segment.style is not None]
    colors = [color for style in styles for color in (style.color, style.bgcolor)]
    return {color.type for color in colors if color is not None}


def cockpit(tmp_path: Path, options: Options) -> FrozenCockpit:
    app = FrozenCockpit(tmp_path, options=options)
    state = app.add("fix-login", processing=True)
    said(state, every_block())
    queued(state, "Then write a test")
    app.add("broken", "error", error="No space left.")
    return app


async def look_around(app: FrozenCockpit, pilot: Pilot[int]) -> set[ColorType]:
    """What kinds of color the list, a chat, the help and the palette have."""
    await eventually(lambda: "fix-login" in screen_text(app))
    kinds = color_kinds(app)
    for keys in (["enter"], ["tab"], ["question_mark"], ["escape", "ctrl+p"]):
        await pilot.press(*keys)
        await pilot.pause()
        kinds |= color_kinds(app)
    return kinds


async def test_the_ansi_theme_sends_the_terminals_own_colors(tmp_path: Path) -> None:
    app = cockpit(tmp_path, Options(theme="ansi"))
    async with app.run_test(size=(120, 40)) as pilot:
        kinds = await look_around(app, pilot)
    assert kinds <= {ColorType.DEFAULT, ColorType.STANDARD}
    assert ColorType.STANDARD in kinds


@pytest.mark.long
async def test_no_color_is_no_color_and_the_cursor_is_still_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    app = cockpit(tmp_path, Options(theme="light"))
    async with app.run_test(size=(120, 40)) as pilot:
        assert await look_around(app, pilot) <= {ColorType.DEFAULT}
        await pilot.press("escape", "escape")
        await pilot.pause()
        reversed_ = [one.text for one in segments(app) if one.style and one.style.reverse]
        assert any("broken" in text or "fix-login" in text for text in reversed_)


async def test_themes_are_changed_while_it_runs(tmp_path: Path) -> None:
    app = cockpit(tmp_path, Options())
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "fix-login" in screen_text(app))
        assert app.theme == "textual-dark"
        app.appearance.show(Options(theme="light", motion="reduced"))
        await pilot.pause()
        assert app.theme == "textual-light"
        assert app.animation_level == "none"


@pytest.mark.parametrize(("theme", "alike"), [("dark", {0}), ("light", {15})])
async def test_sixteen_colors_of_programs_are_told_apart_and_seen(
    tmp_path: Path, theme: str, alike: set[int]
) -> None:
    app = cockpit(tmp_path, Options(theme=theme))
    async with app.run_test():
        await eventually(lambda: "fix-login" in screen_text(app))
        colors = [tuple(app.ansi_theme.ansi_colors[number]) for number in range(16)]
        behind = app.screen.background_colors[1].rgb
    assert len(set(colors)) == 16
    for number in set(range(16)) - alike:
        assert contrast(behind, colors[number]) > 2.8, number


@pytest.mark.long
async def test_nothing_blinks(tmp_path: Path) -> None:
    app = cockpit(tmp_path, Options())
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "fix-login" in screen_text(app))
        await pilot.press("n")
        await eventually(lambda: "New replica" in screen_text(app))
        fields = [one for one in app.screen.query("*") if hasattr(one, "cursor_blink")]
        assert fields
        for _ in fields:
            await pilot.press("tab")
            await pilot.pause()
            assert not getattr(app.focused, "cursor_blink", False)


def test_motion_is_reduced_over_ssh_unless_asked_for() -> None:
    far = {"SSH_CONNECTION": "1 2 3 4"}
    assert is_reduced(Options(), far)
    assert not is_reduced(Options(), {})
    assert not is_reduced(Options(motion="full"), far)
    assert is_reduced(Options(motion="reduced"), {})


def test_what_cannot_be_is_said_and_the_default_holds() -> None:
    document = {"cockpit": {"theme": "pink", "mouse": 1, "color": True, "notices": "bell"}}
    found = read_options(document)
    assert (found.theme, found.mouse, found.notices) == ("dark", True, "bell")
    assert found.faults == (
        "cockpit.theme is not one of dark, light, ansi.",
        "cockpit.mouse is not one of true, false.",
        "cockpit.color is not a setting; known: theme, motion, mouse, notices, notices_asking, "
        "notices_plan, notices_failed, notices_done, clipboard, calls, editing, images, quiet.",
    )


async def test_copying_by_programs_is_refused_from_when_it_is_set(tmp_path: Path) -> None:
    app = FrozenCockpit(tmp_path)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.terminal_host.offers is Offers.ASK
        app.set_option("clipboard", "refuse")
        assert app.terminal_host.offers is Offers.REFUSE


def looks(app: FrozenCockpit, name: str) -> Style:
    """How a replica's row in the list looks, without the color of the words."""
    row = next(strip for strip in shown_strips(app) if name in strip.crop(0, 30).text)
    segment = next(one for one in row if name in one.text)
    assert segment.style is not None
    return segment.style


@pytest.mark.long
@pytest.mark.parametrize("theme", ["dark", "light", "ansi"])
async def test_the_row_under_the_cursor_is_marked_without_the_focus(
    tmp_path: Path, theme: str
) -> None:
    app = FrozenCockpit(tmp_path, options=Options(theme=theme))
    app.add("alpha")
    app.add("beta")
    async with app.run_test(size=(100, 30)) as pilot:
        await eventually(lambda: "alpha" in screen_text(app))
        await pilot.press("enter")
        await eventually(lambda: type(app.focused).__name__ == "Composer")
        await pilot.pause()
        here, other = looks(app, "alpha"), looks(app, "beta")
        assert (here.bgcolor, here.underline) != (other.bgcolor, other.underline)


def words_in(app: FrozenCockpit, region: Region) -> list[Segment]:
    """What is written in a part of the screen."""
    strips = list(shown_strips(app))[region.y : region.bottom]
    cut = [segment for strip in strips for segment in strip.crop(region.x, region.right)]
    return [segment for segment in cut if any(map(str.isalnum, segment.text))]


async def drag(pilot: Pilot[int], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await pilot.pause()


async def test_text_that_is_selected_by_mouse_is_copied_once(tmp_path: Path) -> None:
    app = cockpit(tmp_path, Options())
    async with app.run_test(size=(120, 40)) as pilot:
        await eventually(lambda: "fix-login" in screen_text(app))
        await pilot.press("j")
        await eventually(lambda: "pytest -q" in screen_text(app))
        await pilot.pause()
        region = app.screen.query_one("TranscriptView").region
        await drag(pilot, (region.x + 2, region.y + 1), (region.x + 30, region.bottom - 3))
        await eventually(lambda: app.clipboard == app.screen.get_selected_text() != "")
        app.copy_to_clipboard("mine")
        await pilot.click(offset=(region.x + 4, region.y + 2))
        await pilot.pause()
        assert not app.screen.selections and app.clipboard == "mine"


@pytest.mark.long
@pytest.mark.parametrize("theme", ["dark", "light", "ansi"])
async def test_text_that_is_selected_by_mouse_can_be_read(tmp_path: Path, theme: str) -> None:
    app = cockpit(tmp_path, Options(theme=theme))
    async with app.run_test(size=(120, 40)) as pilot:
        await eventually(lambda: "fix-login" in screen_text(app))
        await pilot.press("j")
        await eventually(lambda: "pytest -q" in screen_text(app))
        await pilot.pause()
        region = app.screen.query_one("TranscriptView").region
        before = {(one.text, one.style) for one in words_in(app, region)}
        await drag(pilot, (region.x + 2, region.y + 1), (region.x + 30, region.bottom - 3))
        chosen = [one for one in words_in(app, region) if (one.text, one.style) not in before]
        assert len(chosen) > 10
        for one in chosen:
            assert one.style is not None
            color, behind = one.style.color, one.style.bgcolor
            assert color is not None and behind is not None and color != behind, one
            if color.triplet is not None and behind.triplet is not None:
                assert contrast(color.triplet, behind.triplet) >= 4.5, one
