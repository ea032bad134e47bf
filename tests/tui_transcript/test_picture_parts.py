"""Encoders of images, cells of pictures, and the room on the line: without a terminal."""

import asyncio
import io
import re
from typing import Any, cast

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip

from quarterdeck.tui.frames.cells import CellMaker, Pens
from quarterdeck.tui.frames.graphics import MARK, KittyPicture, Pictures, SixelPicture
from quarterdeck.tui.frames.pace import Pacing
from quarterdeck.tui.picture_codec import MOST_SCANS, as_png, as_sixels, decoded
from quarterdeck.tui.pictures import Drawer, NotShownError, Protocol, Way
from tests.support.pictured import decoded_sixel, difference

CELL = Size(8, 16)


def noise(width: int, height: int) -> Image.Image:
    """What compresses worst."""
    one = Image.effect_noise((width, height), 90)
    return Image.merge("RGB", (one, one.rotate(90), one.rotate(180)))


def gradient(width: int, height: int) -> Image.Image:
    one = Image.linear_gradient("L").resize((width, height))
    return Image.merge("RGB", (one, one.rotate(180), one))


@pytest.mark.parametrize("budget", [400_000, 20_000])
def test_a_png_has_no_more_bytes_than_the_line_carries(budget: int) -> None:
    content = as_png(noise(1_200, 900), Size(1_000, 1_000), budget)
    assert len(content) <= budget
    image = Image.open(io.BytesIO(content))
    assert max(image.size) <= 1_000
    assert abs(image.width / image.height - 4 / 3) < 0.05


def test_a_png_keeps_what_fits() -> None:
    image = gradient(100, 50)
    assert Image.open(io.BytesIO(as_png(image, Size(400, 400), 400_000))).tobytes() == (
        image.tobytes()
    )


@pytest.mark.parametrize(
    "cells", [Region(0, 0, 20, 10), Region(3, 2, 5, 1), Region(19, 9, 1, 1)], ids=str
)
def test_any_part_of_a_sixel_image_is_that_part(cells: Region) -> None:
    image = gradient(160, 160)
    made = as_sixels(image, Size(20, 10), CELL, (0, 0, 0), 400_000)
    assert made is not None
    box = (cells.x * 8, cells.y * 16, cells.right * 8, cells.bottom * 16)
    sequence = made.crop(cells)
    read = decoded_sixel(re.fullmatch(r"\x1bP0;1;0q([^\x1b]*)\x1b\\", sequence)[1].encode())  # pyright: ignore
    assert read.size == (cells.width * 8, cells.height * 16)
    assert difference(read, image.crop(box)) < 8


def test_a_jpeg_of_many_passes_is_refused() -> None:
    """Each pass costs time for the whole image, and only a few bytes."""
    file = io.BytesIO()
    noise(64, 64).save(file, "JPEG", progressive=True)
    assert decoded(file.getvalue()).width == 64
    at = file.getvalue().index(b"\xff\xda")
    passes = b"\xff\xda\x00\x02" * MOST_SCANS
    with pytest.raises(NotShownError, match="passes"):
        decoded(file.getvalue()[:at] + passes + file.getvalue()[at:])


def test_what_is_too_much_for_the_line_becomes_half_blocks() -> None:
    file = io.BytesIO()
    noise(600, 400).save(file, "PNG")
    way = Way(Protocol.SIXEL, CELL, budget=20_000)
    drawn = Drawer(file.getvalue()).draw(Size(80, 24), way)
    assert isinstance(drawn, list)
    assert sum(strip.cell_length for strip in drawn) * 24 <= 20_000
    roomy = Drawer(file.getvalue()).draw(Size(80, 24), Way(Protocol.SIXEL, CELL))
    assert isinstance(roomy, SixelPicture)


def test_text_in_an_image_does_not_reach_the_terminal() -> None:
    text = PngInfo()
    text.add_text("Comment", "\x1b]52;c;aGk=\x07")
    file = io.BytesIO()
    gradient(40, 40).save(file, "PNG", pnginfo=text)
    drawer = Drawer(file.getvalue())
    for protocol in (Protocol.KITTY, Protocol.SIXEL):
        picture = drawer.draw(Size(20, 10), Way(protocol, CELL))
        assert isinstance(picture, KittyPicture | SixelPicture)
        for piece in picture.begin():
            assert re.fullmatch(r"\x1b_G[a-zA-Z0-9,=]+;[A-Za-z0-9+/=]*\x1b\\", piece)
        if isinstance(picture, SixelPicture):
            sequence = picture.image.crop(Region(0, 0, picture.width, picture.height))
            assert re.fullmatch(r'\x1bP[0-9;]+q"[0-9;]+[!-~]+\x1b\\', sequence)
    assert drawer.summary == "PNG, 40 x 40"


def made(pictures: Pictures, text: str, style: Style | None) -> list[str]:
    maker = CellMaker(Pens(ColorSystem.TRUECOLOR), pictures)
    return [cell.text for cell in maker.cells(Strip([Segment(text, style)]))]


def test_only_marked_characters_are_cells_of_a_picture() -> None:
    pictures, picture = Pictures(), KittyPicture(3, 2, b"")
    pictures.add(picture)
    text = picture.text(1)
    cells = made(pictures, text, MARK + Style(bgcolor="red"))
    assert len(set(cells)) == 3 and all(cell.startswith("\U0010eeee") for cell in cells)
    for style in (None, Style(bold=True), Style(frame=True), Style(encircle=True)):
        assert made(pictures, text, style) == list(text)
    pictures.remove(picture)
    assert made(pictures, text, MARK) == [" "] * 3


def test_pictures_never_share_a_character() -> None:
    pictures = Pictures()
    live: list[KittyPicture] = []
    for number in range(40):
        picture = KittyPicture(150, 50 + number, b"")
        pictures.add(picture)
        live = [*live[-2:], picture]
        if len(live) == 3:
            pictures.remove(live[0])
        codes = [one.text(row) for one in live[-2:] for row in range(one.height)]
        assert len(set("".join(codes))) == sum(map(len, codes))


class FullOutlet:
    """A terminal that takes nothing until it is told to."""

    behind = True

    def is_behind(self) -> bool:
        return self.behind


class Driver:
    def __init__(self) -> None:
        self.outlet = FullOutlet()
        self.on_reply: Any = None

    def write(self, data: str) -> None: ...


async def test_the_next_piece_of_an_image_waits_for_room_on_the_line() -> None:
    pacing, driver = Pacing(), Driver()
    pacing.begin(cast("Any", driver))
    waiting = [asyncio.create_task(pacing.room()) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    driver.outlet.behind = False
    cast("Any", driver.outlet).on_taken()
    await asyncio.gather(*waiting)
    await pacing.room()
