"""Pictures of every screen, in each size, and in each of the themes.

A walk through all of them is made for each size, and at one size for each theme: how a screen is laid
out does not depend on its colors, nor its colors on its size.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.screen import ModalScreen

from quarterdeck.tui.known_services import KnownService
from quarterdeck.tui.options import Options
from quarterdeck.tui.themes import THEMES
from tests.support.contrast import pale
from tests.support.snapshots import Check, Picture, picture
from tests.tui_pictures.stage import Walker, stage
from tests.tui_pictures.walk import SCREENS, Screen
from tests.tui_shell.frozen import FrozenCockpit

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
SIZE_OF_THEMES = "120x40"
"""The least in which every screen is there."""
COLORLESS = ("list", "help", "chat", "canvas", "environments", "automations", "settings", "table")
"""Where something is marked by its background; each begins in the list."""


def surroundings() -> Any:
    """Two services, one of them here."""
    here = KnownService("local", "unix:/home/me/.quarterdeck/service/qd.sock")
    return SimpleNamespace(
        current="local",
        file=Path("/home/me/.quarterdeck/config.toml"),
        own_machine=True,
        beside=list,
        known=lambda: [here, KnownService("work", "https://deck.example")],
    )


async def arrive(walker: Walker, screen: Screen) -> None:
    """Goes to a screen."""
    if not screen.on:
        await walker.home()
    await walker.press(*screen.keys)
    await walker.see(*screen.seen)


def readable(app: FrozenCockpit, name: str) -> None:
    """Nothing is hard to tell from what is behind it, but what a dialog dims below itself."""
    screen = app.screen
    region = screen.children[0].region if isinstance(screen, ModalScreen) else screen.region
    assert list(pale(app, region)) == [], name


async def walk(
    drafts: Path, size: tuple[int, int], theme: str = "", names: tuple[str, ...] = ()
) -> dict[str, Picture]:
    """Go through all screens, or those of such names, and return a picture of each."""
    pictures: dict[str, Picture] = {}
    with stage(drafts, Options(theme="dark")) as app:
        app.surroundings = surroundings()
        async with app.run_test(size=size) as pilot:
            if theme:  # not by the options, whose words the settings show
                app.theme = THEMES[theme]
            walker = Walker(app, pilot)
            await walker.see("fix-login")
            for screen in SCREENS:
                if screen.least > size[0] or (names and screen.name not in names):
                    continue
                await arrive(walker, screen)
                readable(app, f"{screen.name} in {theme or 'no color'}")
                pictures[screen.name] = picture(app)
    return pictures


@pytest.mark.long
@pytest.mark.timeout(900)  # all screens in all themes
@pytest.mark.parametrize("size", SIZES)
async def test_every_screen(check_snapshots: Check, tmp_path: Path, size: str) -> None:
    themes = tuple(THEMES) if size == SIZE_OF_THEMES else ("dark",)
    walks = {theme: await walk(tmp_path / theme, SIZES[size], theme) for theme in themes}
    check_snapshots(
        {name: {theme: walks[theme][name] for theme in themes} for name in walks["dark"]}
    )


async def test_without_color(
    check_snapshots: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    pictures = await walk(tmp_path, SIZES["80x24"], names=COLORLESS)
    check_snapshots({name: {"colorless": one} for name, one in pictures.items()})
