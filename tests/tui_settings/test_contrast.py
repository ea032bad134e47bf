"""Every theme can be read: by WCAG 2 AA, text has a contrast of 4.5 to what is behind it, marks of 3."""

from pathlib import Path

import pytest
from textual.color import Color

from quarterdeck.store.status import NEEDS_YOU as STATES
from quarterdeck.store.status import Attention
from quarterdeck.tui.options import Options
from quarterdeck.tui.themes import MARKS, NEEDS_YOU, THEMES, own_themes
from quarterdeck.tui.widgets.tab_bar import PageLinks
from tests.support.contrast import contrast
from tests.support.shown import shown_strips
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text

TEXTS = (
    *("foreground", NEEDS_YOU, "text", "text-muted", "text-disabled", "text-primary"),
    *("text-secondary", "text-accent", "text-warning", "text-error", "text-success"),
)
GROUNDS = ("background", "surface", "panel")
EDGES = ("border", "panel-lighten-2", "error", "warning", NEEDS_YOU)
"""Colors of borders, by which fields and dialogs are told apart."""
WRITTEN_ON = (
    ("block-cursor-foreground", "block-cursor-background"),
    ("button-color-foreground", "primary"),
    ("button-color-foreground", "error"),
    ("background", "warning"),
    ("screen-selection-foreground", "screen-selection-background"),
)
"""What is written in one color on another: the row under the cursor, buttons, what was searched for."""
THUMBS = ("scrollbar", "scrollbar-hover", "scrollbar-active")

OURS = {theme.name: theme for theme in own_themes()}


def variables(theme: str) -> dict[str, str]:
    found = OURS[THEMES[theme]]
    return {**found.to_color_system().generate(), **found.variables}


def on(ground: Color, value: str) -> Color:
    """What a color is, mixed with what is behind it; `auto` is black or white, whichever is seen."""
    if value.startswith("auto"):
        share = float(value.split()[1].rstrip("%")) / 100
        return ground + ground.get_contrast_text(share)
    return ground + Color.parse(value)


def ratio(values: dict[str, str], color: str, ground: Color) -> float:
    return contrast(on(ground, values[color]).rgb, ground.rgb)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_texts_and_marks_are_seen_on_everything_that_is_behind_them(theme: str) -> None:
    values = variables(theme)
    grounds = {name: Color.parse(values[name]) for name in GROUNDS}
    row = grounds["background"] + Color.parse(values["block-cursor-blurred-background"])
    pale = {
        (color, name): round(ratio(values, color, ground), 2)
        for name, ground in {**grounds, "row": row}.items()
        for color in TEXTS
        if (name, color) != ("row", "text-disabled") and ratio(values, color, ground) < 4.5
    }
    for color, ground in WRITTEN_ON:
        if (seen := ratio(values, color, Color.parse(values[ground]))) < 4.5:
            pale[color, ground] = round(seen, 2)
    for name in ("background", "surface"):
        for edge in EDGES:
            if (seen := ratio(values, edge, grounds[name])) < 3:
                pale[edge, name] = round(seen, 2)
    track = Color.parse(values["scrollbar-background"])
    for thumb in THUMBS:
        if (seen := ratio(values, thumb, track)) < 3:
            pale[thumb, "track"] = round(seen, 2)
    assert pale == {}


@pytest.mark.parametrize("theme", list(THEMES))
def test_what_needs_you_has_a_color_of_its_own(theme: str) -> None:
    values = variables(theme)
    same = {name for name, value in values.items() if value == values[NEEDS_YOU]}
    # The cockpit has neither Textual's footer nor its Markdown.
    assert {name for name in same if not name.startswith(("footer", "markdown"))} == {NEEDS_YOU}
    shared = {state for state, mark in MARKS.items() if mark.color == NEEDS_YOU}
    assert shared == STATES - {Attention.FAILED}


def test_states_are_told_apart_without_color() -> None:
    signs = {mark.sign for mark in MARKS.values()}
    assert len(signs) == len(MARKS) - 1  # a question and a plan are one sign, and need you both
    assert MARKS[Attention.ASKS].sign == MARKS[Attention.PLAN].sign


def color_of(app: FrozenCockpit, sign: str, line: str) -> str:
    """The color of a sign in the line with a text."""
    strip = next(strip for strip in shown_strips(app) if line in strip.text)
    style = next(segment.style for segment in strip if sign in segment.text)
    assert style is not None and style.color is not None
    return style.color.name


@pytest.mark.parametrize("theme", list(THEMES))
async def test_what_needs_you_looks_alike_in_list_header_and_tabs(
    theme: str, tmp_path: Path
) -> None:
    app = FrozenCockpit(tmp_path, options=Options(theme=theme))
    app.add("fix-login", awaiting_input=True)
    app.add("add-search", awaiting_input=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await eventually(lambda: "add-search" in screen_text(app), "the list")
        await pilot.press("3")
        await eventually(lambda: "1 Chat ▲" in screen_text(app), "the mark of the tab")
        app.screen.query_one(PageLinks).show("1 to approve", needs_you=True)
        await eventually(lambda: "1 to approve" in screen_text(app), "the automations' news")
        places = (
            ("▲", "add-search"),
            ("▲", "2 need you"),
            ("1 Chat ▲", "1 Chat ▲"),
            ("1 to approve",) * 2,
        )
        assert len({color_of(app, *place) for place in places}) == 1
        await pilot.press("1")
        await eventually(lambda: "[1 Chat]" in screen_text(app), "the chat itself")
        assert "Chat ▲" not in screen_text(app)


async def test_the_marks_are_there_without_color(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = FrozenCockpit(tmp_path)
    app.add("fix-login", awaiting_input=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await eventually(lambda: "▲ fix-login" in screen_text(app), "the list")
        await pilot.press("3")
        await eventually(lambda: "1 Chat ▲" in screen_text(app), "the mark of the tab")
        assert "▲ 1 needs you" in screen_text(app)
