"""Decodes untrusted bytes into pixels, and encodes pixels for terminals that show them: PNG, and sixel.

Loads Pillow: import it where an image is shown, in a thread. An image is made smaller, or gets fewer colors, until it
has no more bytes than the line carries in a moment.
"""

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image, ImageOps
from textual.geometry import Region, Size

from quarterdeck.tui.frames.graphics import Crops
from quarterdeck.tui.pictures import NotShownError

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MOST_PIXELS = 40_000_000
"""Pixels of the largest image that is decoded: 160 MB of memory, for a moment."""
MOST_SCANS = 100
"""Passes over the image that a JPEG may have; each costs time for all of it. Most have about ten."""
LONGEST_SIDE = 2_048
"""Pixels kept per side: as many as large terminals have."""
BACKDROP = (128, 128, 128)
"""The background of transparent images: dark lines and light ones both stand out from it."""

_WHOLE = frozenset({"RGB", "L", "CMYK", "YCbCr"})
"""Modes that are scaled as they are; others have a palette, or transparency."""

# A few bytes may declare any number of pixels. Without this Pillow writes a warning on the screen.
Image.MAX_IMAGE_PIXELS = MOST_PIXELS
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)


@dataclass(frozen=True)
class DecodedPicture:
    """An image small enough to be kept, and its original properties."""

    pixels: Image.Image
    format: str
    width: int
    height: int


def decoded(content: bytes) -> DecodedPicture:
    """Return the first frame of an image, upright.

    Raises:
        NotShownError: not an image, damaged, or too large.
    """
    if content.startswith(b"\xff\xd8") and content.count(b"\xff\xda") > MOST_SCANS:
        raise NotShownError(f"A JPEG of more than {MOST_SCANS} passes over the image.")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
            return DecodedPicture(_small(image), image.format or "", width, height)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise NotShownError(f"More than {MOST_PIXELS // 1_000_000} million pixels.") from error
    except Image.UnidentifiedImageError as error:
        raise NotShownError("Not a PNG, JPEG, GIF or WebP image.") from error
    except Exception as error:  # whatever a decoder raises for bytes that are not an image
        raise NotShownError("The image is damaged.") from error


def _small(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits of gray, which would be cut off instead of scaled
        image = image.point(lambda value: value / 256).convert("L")
    whole = image if image.mode in _WHOLE else image.convert("RGBA")
    # Before anything else: a JPEG is then decoded at about the size that is kept.
    whole.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    upright = ImageOps.exif_transpose(whole)
    if upright.mode != "RGBA":
        return upright.convert("RGB")
    backdrop = Image.new("RGBA", upright.size, (*BACKDROP, 255))
    return Image.alpha_composite(backdrop, upright).convert("RGB")


SMALLEST = 64
"""Pixels per side below which an image is not shrunk."""
COLORS = (256, 64, 16)
"""Numbers of colors that are tried one after the other."""
_PALETTE_GAIN = 4
"""How many times smaller a PNG becomes by a palette, at most."""

_BAND = 6
"""Rows of pixels in one sixel character."""
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)
_LETTERS = bytes(min(bits + 63, 126) for bits in range(256))
_BITS = [[bytes(color) + bytes([1 << row]) + bytes(255 - color) for color in range(256)] for row in range(_BAND)]  # fmt: skip
"""For each row of a band and each color: what `translate` needs to turn the pixels of the color into its bit."""


def as_png(image: Image.Image, most: Size, budget: int) -> bytes:
    """Return an image in RGB as a PNG, no larger than `most` pixels, of about `budget` bytes at most."""
    image = image.copy()
    image.thumbnail(most)
    while True:
        content = _png(image)
        if budget < len(content) < budget * _PALETTE_GAIN:
            content = _png(_fewer(image, COLORS[0], Image.Dither.FLOYDSTEINBERG))
        if len(content) <= budget or min(image.size) <= SMALLEST:
            return content
        scale = max((budget / len(content)) ** 0.5 * 0.9, SMALLEST / min(image.size))
        image = image.resize((round(image.width * scale), round(image.height * scale)))


def _fewer(image: Image.Image, colors: int, dither: Image.Dither) -> Image.Image:
    """Return an image with a palette; the quick method is hardly worse on pictures this small."""
    return image.quantize(colors, Image.Quantize.FASTOCTREE, dither=dither)


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


class SixelImage(Crops):
    """An image of whole cells, with at most 256 colors."""

    def __init__(self, image: Image.Image, cell: Size) -> None:
        """`image` has a palette."""
        self._cell = cell
        self._image = image
        self._last: tuple[Region, str] | None = None

    def crop(self, cells: Region) -> str:
        if self._last is None or self._last[0] != cells:
            width, height = self._cell
            box = (cells.x * width, cells.y * height, cells.right * width, cells.bottom * height)
            self._last = cells, b"".join(_sixels(self._image.crop(box))).decode("ascii")
        return self._last[1]


def as_sixels(
    image: Image.Image, cells: Size, cell: Size, background: tuple[int, int, int], budget: int
) -> SixelImage | None:
    """Return an image in RGB in the middle of cells of this size; None when it has too many bytes.

    Its whole sequence is made here already, in the thread of the caller.
    """
    room = Size(cells.width * cell.width, cells.height * cell.height)
    scale = min(room.width / image.width, room.height / image.height)
    size = max(round(image.width * scale), 1), max(round(image.height * scale), 1)
    scaled = image.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)
    whole = Image.new("RGB", room, background)
    whole.paste(scaled, ((room.width - size[0]) // 2, (room.height - size[1]) // 2))
    for colors in COLORS:
        made = SixelImage(_fewer(whole, colors, Image.Dither.NONE), cell)
        if len(made.crop(Region(0, 0, *cells))) <= budget:
            return made
    return None


def _sixels(image: Image.Image) -> Iterator[bytes]:
    """Yield the sequence of an image with a palette."""
    width, height = image.size
    yield b'\x1bP0;1;0q"1;1;%d;%d' % (width, height)
    palette = bytes(image.getpalette("RGB") or ())
    for color in sorted(set(image.tobytes())):
        parts = (round(part * 100 / 255) for part in palette[color * 3 : color * 3 + 3])
        yield b"#%d;2;%d;%d;%d" % (color, *parts)
    pixels = image.tobytes()
    for top in range(0, height, _BAND):
        rows = range(top, min(top + _BAND, height))
        yield _band([pixels[row * width : (row + 1) * width] for row in rows], width)
    yield b"\x1b\\"


def _band(rows: list[bytes], width: int) -> bytes:
    lines: list[bytes] = []
    for color in sorted(set(b"".join(rows))):
        # All columns at once, as one long number: the bits of the rows never meet.
        bits = sum(
            int.from_bytes(row.translate(table[color]), "big")
            for row, table in zip(rows, _BITS, strict=False)
            if color in row
        )
        columns = bits.to_bytes(width, "big").rstrip(b"\0").translate(_LETTERS)
        lines.append(b"#%d" % color + _RUN.sub(_repeated, columns))
    return b"$".join(lines) + b"-"


def _repeated(run: re.Match[bytes]) -> bytes:
    return b"!%d%b" % (len(run[0]), run[1])
