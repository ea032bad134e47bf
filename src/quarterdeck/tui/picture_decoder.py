"""Decodes untrusted bytes into pixels. Loads Pillow: import it where an image is shown, in a thread."""

import io
import warnings
from dataclasses import dataclass

from PIL import Image, ImageOps

from quarterdeck.tui.pictures import NotShownError

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MOST_PIXELS = 40_000_000
"""Pixels of the largest image that is decoded: 160 MB of memory, for a moment."""
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
