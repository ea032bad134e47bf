"""Pictures of every screen: in each size that people have, each in other colors.

A walk through all of them is made once for each size. How a screen is laid out does not depend on its
colors: that is looked at on each, in the smallest size.
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

WALKS = {"dark": (80, 24), "light": (120, 40), "ansi": (200, 60)}
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


async def in_other_colors(walker: Walker, theme: str, name: str) -> None:
    """The same texts at the same places, and as readable: so one picture of each size will do."""
    app, shown = walker.app, screen_text(walker.app)
    for other in (*(one for one in WALKS if one != theme), theme):
        app.theme = THEMES[other]
        await walker.pilot.pause()
        assert screen_text(app) == shown, (name, other)
        readable(app, f"{name} in {other}")


async def walk(take: Take, drafts: Path, theme: str, names: tuple[str, ...] = ()) -> None:
    """Goes through all screens, or through those of such names."""
    size = WALKS[theme]
    with stage(drafts, Options(theme=theme)) as app:
        app.surroundings = surroundings()
        async with app.run_test(size=size) as pilot:
            walker = Walker(app, pilot)
            await walker.see("fix-login")
            for screen in SCREENS:
                if screen.least <= size[0] and (not names or screen.name in names):
                    await arrive(walker, screen)
                    take(walker, screen.name)
                    readable(app, screen.name)
                    if theme == "dark" and not names:
                        await in_other_colors(walker, theme, screen.name)


@pytest.mark.parametrize("theme", WALKS)
async def test_every_screen(take: Take, tmp_path: Path, theme: str) -> None:
    await walk(take, tmp_path, theme)


async def test_without_color(take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    await walk(take, tmp_path, "dark", COLORLESS)
