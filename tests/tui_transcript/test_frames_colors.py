"""Colors in terminals that have 256 of them."""

import pytest
from rich.color import Color, ColorSystem
from rich.palette import Palette
from rich.style import Style
from textual.app import App

from quarterdeck.tui.frames.cells import Pens, nearest
from tests.support.contrast import contrast

_CHANNELS = (0, 95, 135, 175, 215, 255)
CUBE = [(red, green, blue) for red in _CHANNELS for green in _CHANNELS for blue in _CHANNELS]
RAMP = [(8 + 10 * step,) * 3 for step in range(24)]
PLANES = ("background", "surface", "panel")
PALETTE = Palette([*[(0, 0, 0)] * 16, *CUBE, *RAMP])


def distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def test_each_of_the_256_is_itself() -> None:
    for triplet in [*CUBE, *RAMP]:
        assert tuple(PALETTE[nearest(*triplet)]) == triplet


def test_no_other_is_nearer() -> None:
    for color in range(0, 1 << 24, 131_071):
        triplet = (color >> 16, color >> 8 & 255, color & 255)
        taken = distance(triplet, tuple(PALETTE[nearest(*triplet)]))
        assert taken == min(distance(triplet, one) for one in [*CUBE, *RAMP]), triplet


def test_a_dark_bluish_gray_is_gray_and_no_navy() -> None:
    style = Style(color=Color.from_rgb(224, 224, 224), bgcolor=Color.parse("#242f38"))
    pen = Pens(ColorSystem.EIGHT_BIT).of(style)
    assert (pen.foreground, pen.background) == ("38;5;254", "48;5;236")


def test_the_sixteen_and_the_terminals_own_stay() -> None:
    style = Style(color=Color.parse("bright_red"), bgcolor=Color.default())
    for system in (ColorSystem.EIGHT_BIT, ColorSystem.TRUECOLOR):
        pen = Pens(system).of(style)
        assert (pen.foreground, pen.background) == ("91", "")


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
async def test_planes_are_told_apart_and_read(theme: str) -> None:
    app = App[None]()
    async with app.run_test():
        app.theme = theme
        colors = app.theme_variables
        planes = {nearest(*Color.parse(colors[name]).triplet or ()) for name in PLANES}
        assert len(planes) == len(PLANES)
        text = PALETTE[nearest(*Color.parse(colors["foreground"]).triplet or ())]
        assert all(contrast(text, PALETTE[plane]) > 7 for plane in planes)
