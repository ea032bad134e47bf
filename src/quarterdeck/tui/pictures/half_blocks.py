"""Pixels as strips of cells: the upper half of a cell in one color, its lower half in another."""

from typing import TYPE_CHECKING

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

if TYPE_CHECKING:
    from PIL.Image import Image

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
