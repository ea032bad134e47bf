"""Pictures of every screen, in each size and in each of the themes.

A walk through all of them is made once for each size; on each the themes are changed. How a screen
is laid out does not depend on its colors.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.screen import ModalScreen

from quarterdeck.tui.options import Options
from quarterdeck.tui.surroundings import Known
from quarterdeck.tui.themes import THEMES
from tests.support.contrast import pale
from tests.tui_pictures.stage import Walker, stage
from tests.tui_pictures.walk import SCREENS, Screen
from tests.tui_shell.frozen import FrozenCockpit, screen_text

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
COLORLESS = ("list", "help", "chat", "canvas", "environments", "automations", "settings")
"""Where something is marked by its background; each begins in the list."""

READABLE = 1.8

Take = Callable[[Walker, str], None]


@pytest.fixture
def take(snapshot: SnapshotAssertion) -> Iterator[Take]:
    """Compares a picture. What differs is told at the end, so that one run shows everything."""
    pictures = snapshot.use_extension(SVGImageExtension)
    different: list[str] = []

    def one(walker: Walker, name: str) -> None:
        if walker.app.export_screenshot() != pictures(name=name):
            different.append(name)

    yield one
    assert not different, f"{different}: look at them, then --snapshot-update"


def surroundings() -> Any:
    """Two services, one of them here."""
    here = Known("local", "unix:/home/me/.quarterdeck/service/qd.sock")
    return SimpleNamespace(
        current="local",
        file=Path("/home/me/.quarterdeck/config.toml"),
        own_machine=True,
        known=lambda: [here, Known("work", "https://deck.example")],
    )


async def arrive(walker: Walker, screen: Screen) -> None:
    """Goes to a screen."""
    if not screen.on:
        await walker.home()
    await walker.press(*screen.keys)
    await walker.see(*screen.seen)


def readable(app: FrozenCockpit, name: str) -> None:
    """No text is hard to tell from what is behind it."""
    if not isinstance(app.screen, ModalScreen):  # which dims what is behind it
        assert list(pale(app, READABLE)) == [], name


async def in_each_theme(walker: Walker, take: Take, name: str) -> None:
    """The same texts at the same places, and as readable, in other colors."""
    app, shown = walker.app, screen_text(walker.app)
    before = app.theme
    for theme in THEMES:
        app.theme = THEMES[theme]
        await walker.pilot.pause()
        assert screen_text(app) == shown, (name, theme)
        readable(app, f"{name} in {theme}")
        take(walker, f"{name}-{theme}")
    app.theme = before


async def walk(
    take: Take, drafts: Path, size: tuple[int, int], names: tuple[str, ...] = ()
) -> None:
    """Goes through all screens in each theme, or through those of such names in no color."""
    with stage(drafts, Options(theme="dark")) as app:
        app.surroundings = surroundings()
        async with app.run_test(size=size) as pilot:
            walker = Walker(app, pilot)
            await walker.see("fix-login")
            for screen in SCREENS:
                if screen.least > size[0] or (names and screen.name not in names):
                    continue
                await arrive(walker, screen)
                if names:
                    take(walker, screen.name)
                    readable(app, screen.name)
                else:
                    await in_each_theme(walker, take, screen.name)


@pytest.mark.parametrize("size", SIZES)
async def test_every_screen(take: Take, tmp_path: Path, size: str) -> None:
    await walk(take, tmp_path, SIZES[size])


async def test_without_color(take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    await walk(take, tmp_path, SIZES["80x24"], COLORLESS)
