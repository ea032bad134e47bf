"""Themes of the user's own: read from files, listed, changed while the cockpit runs."""

import os
from pathlib import Path
from typing import Any, cast

import pytest
from rich.color import Color

from quarterdeck.cli.cockpit import read_cockpit_file
from quarterdeck.tui.known_services import Surroundings
from quarterdeck.tui.options import THEMES, Options
from quarterdeck.tui.settings.listing import next_choice
from quarterdeck.tui.theme_files import hard_to_read, read_themes
from tests.support.shown import shown_strips
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text

HARBOR = """
dark = true
primary = "#5fb3b3"
background = "#101418"
surface = "#182028"
panel = "#182028"
text_alpha = 1

[variables]
border = "#5fb3b3"
needs-you = "#ffcc66"
text-muted = "auto 70%"
block-cursor-text-style = "bold reverse"
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "config" / "themes"
    made.mkdir(parents=True)
    return made


class Around:
    """What the settings page asks of its surroundings."""

    current = "local"
    own_machine = False

    def __init__(self, directory: Path) -> None:
        self.file = directory.parent / "config.toml"
        self.kept: dict[str, object] = {}

    def known(self) -> list[Any]:
        return []

    def beside(self) -> list[Any]:
        return []

    def keep(self, name: str, value: str | bool) -> None:
        self.kept[name] = value


def cockpit(tmp_path: Path, directory: Path) -> FrozenCockpit:
    around = Around(directory)
    app = FrozenCockpit(tmp_path / "client", options=read_cockpit_file(around.file))
    app.surroundings = cast("Surroundings", around)
    return app


def backgrounds(app: FrozenCockpit) -> set[str]:
    styles = [segment.style for strip in shown_strips(app) for segment in strip]
    return {style.bgcolor.name for style in styles if style and isinstance(style.bgcolor, Color)}


def test_a_file_is_a_theme(directory: Path) -> None:
    (directory / "harbor.toml").write_text(HARBOR)
    (directory / "notes.txt").write_text("no theme")
    found = read_themes(directory)
    assert not found.faults
    theme = found.themes["harbor"]
    assert (theme.primary, theme.background, theme.dark) == ("#5fb3b3", "#101418", True)
    assert theme.variables["needs-you"] == "#ffcc66"
    assert theme.warning == "#FFA62B"  # as in the dark theme
    assert not hard_to_read(theme)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("primary = ", "not valid TOML:"),
        ('colour = "red"', "colour is not a field; known: dark, primary,"),
        ('primary = "blu"', "primary: 'blu' is not a color, such as #5fb3b3."),
        ("primary = 3", "primary: 3 is not a color"),
        ("dark = 1", "dark is not true or false."),
        ("text_alpha = 2", "text_alpha: 2 is not a number from 0 to 1."),
        ("variables = 1", "variables is not a table; write it as [variables]."),
        ('[variables]\nbordr = "red"', "variables.bordr: themes have no such variable."),
        ('[variables]\nborder = "red; }"', "variables.border: 'red; }' is not a color"),
        ('[variables]\nprimary-lighten-1 = "auto"', "variables: "),
        ('[variables]\nlink-style = "loud"', "variables.link-style: 'loud' is not of bold,"),
    ],
)
def test_an_error_names_file_and_key(directory: Path, text: str, fault: str) -> None:
    (directory / "harbor.toml").write_text(text)
    (directory / "other.toml").write_text("")
    found = read_themes(directory)
    assert list(found.themes) == ["other"]
    assert len(found.faults) == 1
    assert found.faults[0].startswith(f"themes/harbor.toml: {fault}")


def test_names_of_built_in_themes_are_not_taken(directory: Path) -> None:
    for name in ("dark", "two words"):
        (directory / f"{name}.toml").write_text("")
    assert read_themes(directory).faults == (
        "themes/dark.toml: dark is a built-in theme; choose another name.",
        "themes/two words.toml: a theme's name has letters, digits, - and _ only.",
    )


def test_a_pipe_is_not_read(directory: Path) -> None:
    os.mkfifo(directory / "pipe.toml")
    assert read_themes(directory).faults == ("themes/pipe.toml: cannot be read: Not a file.",)


def test_a_theme_that_was_deleted_is_followed_by_the_first() -> None:
    assert next_choice(Options(theme="gone"), "theme") == THEMES[0]


def test_low_contrast_is_told_and_not_refused(directory: Path) -> None:
    (directory / "pale.toml").write_text('foreground = "#333333"\nbackground = "#222222"')
    (found,) = read_themes(directory).themes.values()
    assert any(
        sentence.startswith("foreground on background has a contrast of 1.")
        for sentence in hard_to_read(found)
    )


async def test_a_theme_of_ones_own_is_used_and_changes_with_its_file(
    tmp_path: Path, directory: Path
) -> None:
    file = directory / "harbor.toml"
    file.write_text(HARBOR)
    (directory.parent / "config.toml").write_text('[cockpit]\ntheme = "harbor"')
    app = cockpit(tmp_path, directory)
    assert not app.options.faults
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await eventually(lambda: "n new" in screen_text(app))
        assert "#101418" in backgrounds(app)
        file.write_text(HARBOR.replace("#101418", "#202428"))
        os.utime(file, ns=(1, 1))
        app.reload_themes()
        await pilot.pause()
        await eventually(lambda: "#202428" in backgrounds(app))
        assert "#101418" not in backgrounds(app)
        file.write_text("primary = 1")
        app.reload_themes()
        await eventually(lambda: "themes/harbor.toml: primary: 1 is not" in screen_text(app))
        await eventually(lambda: app.theme == "textual-dark")


async def test_own_themes_are_chosen_from_a_list(tmp_path: Path, directory: Path) -> None:
    (directory / "harbor.toml").write_text(HARBOR)
    (directory / "pale.toml").write_text('foreground = "#333333"\nbackground = "#222222"')
    (directory / "broken.toml").write_text("primary = 1")
    app = cockpit(tmp_path, directory)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await eventually(lambda: "n new" in screen_text(app))
        await pilot.press("comma")
        await eventually(lambda: "[1 General]" in screen_text(app))
        await pilot.press("enter")
        await eventually(lambda: "themes/pale.toml" in screen_text(app))
        shown = screen_text(app)
        assert "dark (current)" in shown and "themes/broken.toml: primary: 1" in shown
        await pilot.press(*"pale", "enter")
        await eventually(lambda: app.options.theme == "pale")
        await eventually(lambda: "#222222" in backgrounds(app))
        await eventually(lambda: "has a contrast of" in screen_text(app))
        assert cast("Any", app.surroundings).kept == {"theme": "pale"}
        await eventually(lambda: "your own: themes/pale.toml" in screen_text(app))


def test_a_theme_that_is_no_file_is_not_one(tmp_path: Path, directory: Path) -> None:
    (directory / "harbor.toml").write_text(HARBOR)
    (directory.parent / "config.toml").write_text('[cockpit]\ntheme = "habour"')
    found = read_cockpit_file(directory.parent / "config.toml")
    assert found.theme == Options().theme
    assert found.faults == ("cockpit.theme is not one of dark, light, ansi, harbor.",)
