"""Images of a chat: decoded, drawn as half blocks, shown on a page of their own. Terminals with pixels are in
`tui_transcript/test_pictures.py`.
"""

import base64
import io
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from PIL import Image as Pillow
from rich.color import ColorSystem
from textual.geometry import Size
from textual.strip import Strip
from textual.widgets import Static

from quarterdeck.tui import host_terminal as outer
from quarterdeck.tui.app import Cockpit
from quarterdeck.tui.frames.cells import CellMaker, Pens
from quarterdeck.tui.picture_codec import BACKDROP, LONGEST_SIDE, decoded
from quarterdeck.tui.pictures import (
    UPPER,
    NotShownError,
    PictureView,
    fitted,
    half_blocks,
)
from quarterdeck.tui.screens.main import MainScreen
from quarterdeck.tui.screens.picture import PictureScreen
from quarterdeck.wire.chats import Base64Source, Image, SendMessage
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.frozen import FrozenCockpit, screen_text
from tests.tui_shell.live import Installation

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)

Cell = tuple[str, tuple[int, ...] | None, tuple[int, ...] | None]


def quarters(format: str = "PNG", side: int = 40) -> bytes:
    """An image with another color in each of its quarters."""
    image = Pillow.new("RGB", (2, 2))
    image.putdata([RED, GREEN, BLUE, WHITE])
    return encoded(image.resize((side, side), Pillow.Resampling.NEAREST), format)


def encoded(image: Pillow.Image, format: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def says_it_is(width: int, height: int) -> bytes:
    """A PNG that is far larger than the file."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(100_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def cells(strip: Strip) -> list[Cell]:
    """Each character with its color and the one behind it."""

    def triplet(color: object) -> tuple[int, ...] | None:
        found = getattr(color, "triplet", None)
        return None if found is None else tuple(found)

    return [
        (character, triplet(style and style.color), triplet(style and style.bgcolor))
        for text, style, _ in strip
        for character in text
    ]


def shown_cells(app: Cockpit) -> list[list[Cell]]:
    """What stands in the picture's place on the screen."""
    view = app.screen.query_one(PictureView)
    return [cells(view.render_line(y)) for y in range(view.size.height)]


def halves(row: list[Cell]) -> list[tuple[tuple[int, ...] | None, tuple[int, ...] | None]]:
    """The colors of a row, upper and lower, where there is some picture."""
    return [(behind, behind) if text == " " else (color, behind) for text, color, behind in row]


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_every_kind_that_a_message_takes_is_decoded(format: str) -> None:
    picture = decoded(quarters(format))
    assert (picture.format, picture.width, picture.height) == (format, 40, 40)
    corners = [(5, 5), (35, 5), (5, 35), (35, 35)]
    for place, color in zip(corners, [RED, GREEN, BLUE, WHITE], strict=True):
        found = picture.pixels.getpixel(place)
        assert isinstance(found, tuple)
        assert all(abs(a - b) < 16 for a, b in zip(found, color, strict=True)), (format, place)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16", "CMYK"])
def test_every_way_to_keep_pixels_ends_in_colors(mode: str) -> None:
    format = "JPEG" if mode == "CMYK" else "PNG"
    if mode == "I;16":
        image = Pillow.new(mode, (10, 10), 0xFFFF // 2)
    else:
        image = Pillow.new("RGB", (10, 10), (127, 127, 127)).convert(mode)
    picture = decoded(encoded(image, format))
    assert picture.pixels.mode == "RGB"
    if mode not in {"1", "P"}:  # which have no such gray
        assert all(abs(one - 127) < 4 for one in picture.pixels.getpixel((5, 5)))  # pyright: ignore


def test_what_can_be_seen_through_stands_on_gray() -> None:
    image = Pillow.new("RGBA", (10, 10), (255, 0, 0, 0))
    assert decoded(encoded(image)).pixels.getpixel((5, 5)) == BACKDROP


def test_a_photo_is_turned_as_its_camera_was() -> None:
    image = Pillow.new("RGB", (40, 20), RED)
    exif = Pillow.Exif()
    exif[0x0112] = 6  # a quarter turn
    assert decoded(encoded(image, "JPEG", exif=exif)).pixels.size == (20, 40)


def test_a_large_image_is_kept_small() -> None:
    picture = decoded(encoded(Pillow.new("RGB", (5_000, 2_500), BLUE)))
    assert (picture.width, picture.height) == (5_000, 2_500)
    assert picture.pixels.size == (LONGEST_SIDE, LONGEST_SIDE // 2)


@pytest.mark.parametrize("size", [(8_000, 6_000), (30_000, 30_000), (2_000_000_000, 1)])
def test_a_bomb_is_not_decoded(size: tuple[int, int]) -> None:
    content = says_it_is(*size)
    tracemalloc.start()
    try:
        with pytest.raises(NotShownError, match="More than 40 million pixels"):
            decoded(content)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Not a PNG"),
        (b"<svg/>", "Not a PNG"),
        (b"BM" + bytes(100), "Not a PNG"),
        (quarters()[:60], "damaged"),
        (quarters("JPEG")[:300], "damaged"),
        (says_it_is(100, 1_000), "damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "damaged|Not a PNG"),
        (b"GIF89a", "damaged|Not a PNG"),
        (b"RIFF\xff\xff\xff\xffWEBPVP8 ", "damaged|Not a PNG"),
    ],
)
def test_what_is_no_image_is_said_to_be_none(content: bytes, words: str) -> None:
    with pytest.raises(NotShownError, match=words):
        decoded(content)


def test_a_picture_keeps_its_shape_in_any_room() -> None:
    assert fitted(Size(100, 100), Size(80, 20), 2.0) == Size(40, 40)
    assert fitted(Size(200, 100), Size(80, 40), 2.0) == Size(80, 40)
    assert fitted(Size(100, 100), Size(80, 20), 2.5) == Size(50, 40)
    assert fitted(Size(1, 10_000), Size(80, 20), 2.0) == Size(1, 40)
    assert fitted(Size(10_000, 1), Size(80, 20), 2.0) == Size(80, 1)


def test_a_cell_shows_two_pixels() -> None:
    image = Pillow.new("RGB", (2, 3))
    image.putdata([RED, GREEN, RED, BLUE, WHITE, WHITE])
    first, second = half_blocks(image, Size(2, 2), 2.0)
    assert cells(first) == [(" ", None, RED), (UPPER, GREEN, BLUE)]
    assert cells(second) == [(UPPER, WHITE, None), (UPPER, WHITE, None)]


def test_cells_are_as_large_as_the_terminal_says(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [24, 80, 800, 600]

    def ioctl(*_: object) -> bytes:
        return struct.pack("HHHH", *said)

    class Terminal:
        def fileno(self) -> int:
            return 2

    monkeypatch.setattr(sys, "__stderr__", Terminal())
    monkeypatch.setattr(outer.fcntl, "ioctl", ioctl)
    assert outer.cell_pixels() == (10, 25)
    for wrong in ([24, 80, 0, 0], [0, 0, 800, 600], [24, 80, 8, 60_000]):
        said[:] = wrong
        assert outer.cell_pixels() is None


@pytest.mark.long
def test_colors_of_pictures_are_not_kept_for_ever() -> None:
    maker = CellMaker(Pens(ColorSystem.TRUECOLOR))
    for number in range(12):
        noise = Pillow.effect_noise((100, 100), 80 + number)
        image = Pillow.merge("RGB", (noise, noise.rotate(90), noise.rotate(180)))
        for strip in half_blocks(image, Size(100, 50), 2.0):
            assert len(maker.cells(strip)) == 100
    assert len(maker._cells) <= 4_096  # pyright: ignore[reportPrivateUsage]
    assert len(maker._pens._pens) <= 4_097  # pyright: ignore[reportPrivateUsage]


@pytest.mark.long
def test_the_cockpit_starts_without_the_decoder() -> None:
    loaded = (
        "import sys, quarterdeck.tui.app, quarterdeck.tui.panes.chat; print('PIL' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert told.stdout == "False\n"


@pytest.fixture
def colors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal with colors enough, whatever the tests run in."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


async def show(app: Cockpit, *images: bytes) -> None:
    """Opens the page over the list."""
    await eventually(lambda: isinstance(app.screen, MainScreen), "the list")
    await app.push_screen(PictureScreen(app.app_state, images))


async def test_a_picture_fills_the_page_and_is_drawn_anew_in_another_size(
    colors: None, frozen: FrozenCockpit
) -> None:
    async with frozen.run_test(size=(60, 24)) as pilot:
        await show(frozen, quarters())
        await eventually(lambda: "Image: PNG, 40 x 40" in screen_text(frozen))
        rows = shown_cells(frozen)
        assert len(rows) == 21
        top, bottom = halves(rows[2]), halves(rows[-2])
        assert (top[11], top[28], top[31], top[48]) == ((RED,) * 2, (RED,) * 2, *[(GREEN,) * 2] * 2)
        assert (bottom[11], bottom[48]) == ((BLUE,) * 2, (WHITE,) * 2)
        ground = halves(rows[2])[0]
        assert ground not in (top[11], top[31]) and top[59] == ground
        await pilot.resize_terminal(100, 40)
        await eventually(lambda: len(shown_cells(frozen)) == 37)
        await eventually(
            lambda: halves(shown_cells(frozen)[1])[20] == (RED, RED), "the larger picture"
        )
        await pilot.press("escape")
        await eventually(lambda: not isinstance(frozen.screen, PictureScreen))


async def test_one_image_after_the_other_and_what_is_wrong_with_them(
    colors: None, frozen: FrozenCockpit
) -> None:
    images = [quarters(), b"no image", says_it_is(30_000, 30_000), quarters("JPEG")]
    async with frozen.run_test(size=(80, 24)) as pilot:
        await show(frozen, *images)
        await eventually(lambda: "Image 1 of 4: PNG" in screen_text(frozen))
        await pilot.press("n")
        await eventually(
            lambda: "Image 2 of 4: Not a PNG, JPEG, GIF or WebP" in screen_text(frozen)
        )
        title = frozen.screen.query_one("#picture-title", Static)
        assert title.has_class("trouble")
        grounds = {cell for row in shown_cells(frozen) for cell in row}
        assert len(grounds) == 1
        await pilot.press("right")
        await eventually(lambda: "Image 3 of 4: More than 40 million" in screen_text(frozen))
        await pilot.press("right", "right")
        await eventually(lambda: "Image 4 of 4: JPEG, 40 x 40" in screen_text(frozen))
        assert not title.has_class("trouble")
        await pilot.press("p", "p", "left")
        await eventually(lambda: "Image 1 of 4: PNG" in screen_text(frozen))


def with_image(content: bytes) -> SendMessage:
    data = base64.b64encode(content).decode()
    source = Base64Source(type="base64", media_type="image/png", data=data)
    return SendMessage(message="look", images=[Image(source=source)])


@pytest.mark.long
async def test_images_of_a_block_are_shown_by_a_key(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    made = await live.create("alpha")
    async with live.cockpit() as desk, live.client() as client:
        await opened(desk, "alpha")
        await desk.see("○ idle")
        await client.messages.send(made.id, with_image(quarters()))
        await desk.see("[image: image/png, ")
        await eventually(lambda: not desk.replica("alpha").works)
        await desk.press("tab", "home", "v")
        await desk.see("Image: PNG, 40 x 40")
        assert {RED, GREEN, BLUE, WHITE} <= {
            behind for row in shown_cells(desk.app) for _, _, behind in row
        }
        await desk.press("escape")
        await desk.see("[image: image/png, ")
        await eventually(lambda: desk.focus == "ChatTranscript")
        await desk.press("end", "v")
        await desk.see("No images in this block")


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"NO_COLOR": "1", "TERM": "xterm-256color"}, "NO_COLOR is set, so no picture"),
        ({"TERM": "linux", "COLORTERM": ""}, "This terminal has 16 colors"),
    ],
)
async def test_where_none_can_be_shown_it_is_saved(
    live: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    why: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "xdg-open").write_text("#!/bin/sh\n")
    (programs / "xdg-open").chmod(0o755)
    made = await live.create("alpha")
    async with live.cockpit((160, 30)) as desk, live.client() as client:
        await opened(desk, "alpha")
        await desk.see("○ idle")
        await client.messages.send(made.id, with_image(quarters()))
        await desk.see("[image: image/png, ")
        await eventually(lambda: not desk.replica("alpha").works)
        await desk.press("tab", "home", "v")
        await desk.see("Save 1 image", why)
        await desk.press("ctrl+u")
        await desk.write(str(tmp_path / "kept"))
        monkeypatch.setenv("PATH", str(programs), prepend=":")
        monkeypatch.delenv("SSH_CONNECTION", raising=False)
        await desk.press("enter")
        await desk.miss("Save 1 image")
        kept = tmp_path / "kept.png"
        told = [one.message for one in desk.app._notifications]
        assert told == [f"Saved: {kept}. To open: xdg-open {kept}"]
        assert kept.read_bytes() == quarters()
