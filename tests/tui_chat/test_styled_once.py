"""A text area that keeps its styles until they change."""

import pytest
from textual._text_area_theme import TextAreaTheme
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from quarterdeck.tui.textual_ext.cached_text_area import StyledOnce


class Two(App[None]):
    CSS = "TextArea { height: 5; } TextArea.loud { background: red; color: white; }"

    def compose(self) -> ComposeResult:
        yield StyledOnce("one\ntwo", id="ours")
        yield TextArea("one\ntwo", id="theirs")


def drawn(area: TextArea) -> list[object]:
    return [
        [(segment.text, segment.style) for segment in strip]
        for strip in area.render_lines(area.size.region)
    ]


async def test_it_looks_as_the_other_whatever_changes() -> None:
    app = Two()
    async with app.run_test() as pilot:
        ours, theirs = app.query_one("#ours", TextArea), app.query_one("#theirs", TextArea)
        looks: list[str] = []
        for step in ("", "theme", "class", "no class", "disabled", "theme again"):
            if "theme" in step:
                app.theme = "textual-light" if step == "theme" else "nord"
            for area in (ours, theirs):
                area.disabled = step == "disabled"
                area.set_class(step == "class", "loud")
            app.set_focus(None)
            await pilot.pause()
            assert drawn(ours) == drawn(theirs), step
            looks.append(str(drawn(ours)))
        assert len(set(looks)) == len(looks) - 1  # without the class it is as it was before
        for area in (ours, theirs):
            area.focus()
            await pilot.pause()
            looks.append(str(drawn(area)))
        assert looks[-1] == looks[-2] != looks[-3]


async def test_a_typed_key_looks_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[TextArea] = []
    apply = TextAreaTheme.apply_css

    def counted(theme: TextAreaTheme, area: TextArea) -> None:
        asked.append(area)
        apply(theme, area)

    monkeypatch.setattr(TextAreaTheme, "apply_css", counted)
    app = Two()
    async with app.run_test() as pilot:
        ours = app.query_one("#ours", TextArea)
        ours.focus()
        await pilot.pause()
        asked.clear()
        await pilot.press(*"typed")
        await pilot.pause()
        assert ours.text.startswith("typed") and ours not in asked
