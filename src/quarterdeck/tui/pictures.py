"""Images of chats and files on the screen: as pixels where the terminal can, else as half blocks.

    bytes -> decoded, scaled, encoded (in a thread) -> cells of a picture, or strips -> PictureView

The image is scaled to the cells that it gets before it is encoded, and to the bytes that the line carries. Pillow is
loaded when the first image is shown. Nothing is kept of an image that is not shown.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.frames.graphics import (
    MARK,
    MOST_CELLS,
    NUMBERS,
    KittyPicture,
    Picture,
    SixelPicture,
)
from quarterdeck.tui.host_terminal import (
    cell_pixels,
    in_tmux,
    through_tmux,
    tmux_client,
    tmux_passes,
)
from quarterdeck.tui.outside import OPENERS

if TYPE_CHECKING:
    from PIL.Image import Image

    from quarterdeck.tui.app import Cockpit
    from quarterdeck.tui.picture_codec import DecodedPicture


UPPER = "\u2580"

Pixel = tuple[int, int, int]


def fitted(pixels: Size, room: Size, aspect: float) -> Size:
    """Return the largest size, in cells across and half cells down, with the same shape in the room.

    `aspect` is the ratio of a cell's height to its width.
    """
    half = aspect / 2
    scale = min(room.width / pixels.width, room.height * aspect / pixels.height)
    across = min(round(pixels.width * scale), room.width)
    down = min(round(pixels.height * scale / half), room.height * 2)
    return Size(max(across, 1), max(down, 1))


def half_blocks(image: "Image", room: Size, aspect: float) -> list[Strip]:
    """Return an image in RGB, as large as the room allows."""
    from PIL.Image import Resampling

    size = fitted(Size(*image.size), room, aspect)
    grows = size.width >= image.width and size.height >= image.height
    scaled = image.resize(size, Resampling.NEAREST if grows else Resampling.LANCZOS)
    data, step = scaled.tobytes(), size.width * 3
    rows = [_pixels(data[at : at + step]) for at in range(0, len(data), step)]
    return [
        _strip(upper, rows[y * 2 + 1] if y * 2 + 1 < len(rows) else None)
        for y, upper in enumerate(rows[::2])
    ]


def _pixels(row: bytes) -> list[Pixel]:
    return list(zip(row[::3], row[1::3], row[2::3], strict=True))


def _strip(upper: list[Pixel], lower: list[Pixel] | None) -> Strip:
    below: list[Pixel] | list[None] = [None] * len(upper) if lower is None else lower
    runs: list[tuple[Pixel, Pixel | None, int]] = []
    for above, under in zip(upper, below, strict=True):
        if runs and runs[-1][:2] == (above, under):
            runs[-1] = (above, under, runs[-1][2] + 1)
        else:
            runs.append((above, under, 1))
    return Strip([_segment(above, under, cells) for above, under, cells in runs], len(upper))


def _segment(upper: Pixel, lower: Pixel | None, cells: int) -> Segment:
    if lower is None:
        return Segment(UPPER * cells, Style(color=Color.from_rgb(*upper)))
    background = Color.from_rgb(*lower)
    if upper == lower:
        return Segment(" " * cells, Style(bgcolor=background))
    return Segment(UPPER * cells, Style(color=Color.from_rgb(*upper), bgcolor=background))


FEW_COLORS = frozenset({"standard", "windows"})
"""Names of color systems with sixteen colors, which cannot show a picture in half blocks."""
OFF = "off"
USUAL_CELL = Size(10, 20)
"""Pixels of a cell where the terminal does not tell."""
PLACEHOLDER_TERMINALS = ("kitty", "ghostty")
"""Beginnings of the names of terminals that show kitty's images in cells of text. Others know the protocol, but
place images only beside the text, where nothing can cover or remove them cell by cell; most have sixel."""
SECONDS = 2.0
"""Time that an image may take on the line."""
LEAST_BYTES, MOST_BYTES = 16_000, 400_000
"""Bounds of the bytes of an image, whatever the line is believed to carry."""
BLOCK_BYTES = 24
"""Bytes that a cell of half blocks usually takes."""
STRING_END = "\x1b\\"


class NotShownError(Exception):
    """An image cannot be shown; the text says why."""


class Protocol(StrEnum):
    """How an image comes to the screen."""

    KITTY = "kitty"
    SIXEL = "sixel"
    BLOCKS = "blocks"


@dataclass(frozen=True)
class Way:
    """How images are shown on a terminal now: its cells in pixels, and how many bytes an image may have."""

    protocol: Protocol
    cell: Size = USUAL_CELL
    budget: int = MOST_BYTES
    background: Pixel = (0, 0, 0)

    @property
    def aspect(self) -> float:
        """The ratio of a cell's height to its width."""
        return self.cell.height / self.cell.width


async def way_of(app: "Cockpit") -> Way:
    """Return how images are shown.

    Raises:
        NotShownError: not at all.
    """
    if app.options.images == OFF:
        raise NotShownError('Images are off (cockpit.images = "off").')
    if app.no_color:
        raise NotShownError("NO_COLOR is set, so no picture can be shown.")
    pixels = cell_pixels()
    cell = app.identity.cell if pixels is None else Size(*pixels)
    protocol = await _protocol(app, knows_cell=cell is not None)
    if protocol is Protocol.BLOCKS and app.console.color_system in FEW_COLORS:
        raise NotShownError("This terminal has 16 colors, too few for a picture.")
    rate = app.pacing.line.rate
    budget = min(max(round(rate * SECONDS), LEAST_BYTES), MOST_BYTES) if rate else MOST_BYTES
    background = app.screen.background_colors[1].rgb
    return Way(protocol, cell or USUAL_CELL, budget, background)


async def _protocol(app: "Cockpit", *, knows_cell: bool) -> Protocol:
    wanted = app.options.images
    if not app.draws_cells:
        return Protocol.BLOCKS
    if wanted != "auto":
        if wanted == Protocol.KITTY and in_tmux(os.environ) and not await tmux_passes():
            raise NotShownError("tmux passes no image on: set -g allow-passthrough on")
        return Protocol(wanted)
    name = await app.identity.name()
    passes = True
    if in_tmux(os.environ):
        name, passes = await tmux_client(), await tmux_passes()
    if passes and name.lower().startswith(PLACEHOLDER_TERMINALS):
        return Protocol.KITTY
    # Without the size of a cell, the image would cover others.
    return Protocol.SIXEL if app.identity.has_sixel and knows_cell else Protocol.BLOCKS


async def why_none(app: "Cockpit") -> str:
    """Return why this terminal cannot show pictures at all; empty when it can."""
    try:
        await way_of(app)
    except NotShownError as error:
        return str(error)
    return ""


def saved_words(paths: list[Path], environment: Mapping[str, str] = os.environ) -> str:
    """Return where images were saved, and how to open them on this machine's own screen."""
    where = f"Saved: {', '.join(str(path.absolute()) for path in paths)}"
    program = _opener(environment)
    return f"{where}. To open: {program} {paths[0].absolute()}" if program else f"{where}."


def _opener(environment: Mapping[str, str]) -> str:
    if "SSH_CONNECTION" in environment:
        return ""  # what opens here is not seen there
    if sys.platform == "darwin":
        return "open"
    return next((name for name in OPENERS if shutil.which(name)), "")


class Drawer:
    """Draws one image, which is decoded the first time. Called in a thread."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._decoded: DecodedPicture | None = None
        self.summary = ""

    def draw(self, room: Size, way: Way) -> Picture | list[Strip]:
        """Return the image as large as the room allows.

        Raises:
            NotShownError: it cannot be shown.
        """
        pixels = self._pixels()
        if way.protocol is Protocol.BLOCKS:
            return half_blocks(pixels, _bounded(room, way.budget // BLOCK_BYTES), way.aspect)
        from quarterdeck.tui.picture_codec import as_png, as_sixels

        room = _bounded(Size(*(min(side, len(NUMBERS)) for side in room)), MOST_CELLS)
        size = fitted(Size(*pixels.size), room, way.aspect)
        cells = Size(size.width, -(-size.height // 2))
        if way.protocol is Protocol.KITTY:
            most = Size(cells.width * way.cell.width, cells.height * way.cell.height)
            return KittyPicture(*cells, as_png(pixels, most, way.budget))
        image = as_sixels(pixels, cells, way.cell, way.background, way.budget)
        if image is not None:
            return SixelPicture(*cells, image)
        return half_blocks(pixels, _bounded(room, way.budget // BLOCK_BYTES), way.aspect)

    def _pixels(self) -> "Image":
        if self._decoded is None:
            try:
                from quarterdeck.tui.picture_codec import decoded
            except ImportError as error:
                raise NotShownError(f"Install Pillow to see images: {_INSTALL}") from error
            picture = self._decoded = decoded(self._content)
            self.summary = f"{picture.format}, {picture.width} x {picture.height}"
        return self._decoded.pixels


_INSTALL = "pip install 'pillow>=11,<14'"


def _commands(sequence: str) -> list[str]:
    """Return the commands of a sequence without their ends: tmux passes each on by itself."""
    return sequence.split(STRING_END)[:-1]


def _bounded(room: Size, most: int) -> Size:
    """Return a room with no more cells than that."""
    if room.width * room.height <= most:
        return room
    scale = (most / (room.width * room.height)) ** 0.5
    return Size(max(int(room.width * scale), 1), max(int(room.height * scale), 1))


class PictureView(Widget, can_focus=True):
    """An image in the middle of a pane. It is drawn again for each size, and removed from the terminal at the end."""

    DEFAULT_CSS = "PictureView { height: 1fr; background: $background; }"

    class Drawn(Message):
        """The image is shown, or `failed` and the text says why."""

        def __init__(self, text: str, *, failed: bool = False) -> None:
            super().__init__()
            self.text = text
            self.failed = failed

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._drawer = Drawer(content)
        self._strips: Sequence[Strip] = ()
        self._picture: Picture | None = None

    def show_image(self, content: bytes) -> None:
        """Show another image."""
        self._drawer = Drawer(content)
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw it in the new size."""
        self._draw()

    def on_unmount(self) -> None:
        self._remove()

    @property
    def _cockpit(self) -> "Cockpit":
        return cast("Cockpit", self.app)

    @work(exclusive=True, group="draw")
    async def _draw(self) -> None:
        self._remove()
        drawer, room = self._drawer, self.size
        if not room.width or not room.height:
            return
        try:
            way = await way_of(self._cockpit)
            drawn = await asyncio.to_thread(drawer.draw, room, way)
        except NotShownError as error:
            self.post_message(self.Drawn(str(error), failed=True))
            return
        if isinstance(drawn, Picture):
            await self._place(drawn)
        else:
            self._show(drawn)
        self.post_message(self.Drawn(drawer.summary))

    async def _place(self, picture: Picture) -> None:
        self._picture = picture
        self._cockpit.pictures.add(picture)
        picture.on_lost = self._send_again
        await self._send(picture)
        self._show(
            [
                Strip([Segment(picture.text(row), MARK)], picture.width)
                for row in range(picture.height)
            ]
        )

    async def _send(self, picture: Picture) -> None:
        """Send what the terminal needs beforehand, behind the frames of keys."""
        pacing = self._cockpit.pacing
        for piece in picture.begin():
            await pacing.room()
            self._write(piece)

    @work(exclusive=True, group="draw")
    async def _send_again(self) -> None:
        if self._picture is not None:
            await self._send(self._picture)

    def _write(self, sequence: str) -> None:
        if in_tmux(os.environ):
            sequence = "".join(through_tmux(one + STRING_END) for one in _commands(sequence))
        line = self._cockpit.pacing.line
        self._cockpit.write_outside(sequence + line.frame(len(sequence)))

    def _remove(self) -> None:
        picture, self._picture = self._picture, None
        if picture is not None:
            picture.on_lost = None
            self._cockpit.pictures.remove(picture)
            if end := picture.end():
                self._write(end)
        self._show(())

    def _show(self, strips: Sequence[Strip]) -> None:
        self._strips = strips
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        base = self.rich_style
        row = y - max(0, (height - len(self._strips)) // 2)
        if not 0 <= row < len(self._strips):
            return Strip.blank(width, base)
        strip = self._strips[row]
        left = max(0, (width - strip.cell_length) // 2)
        margin = Strip([Segment(" " * left, base)], left)
        return Strip.join([margin, strip.apply_style(base)]).adjust_cell_length(width, base)
