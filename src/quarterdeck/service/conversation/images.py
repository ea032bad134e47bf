"""Images beside a message: what they say they are, and what they are."""

import base64
import binascii
from collections.abc import Sequence
from urllib.parse import urlsplit

from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.images import media_type_of
from quarterdeck.wire.messages import Base64Source, Image

MOST_IMAGES = 20
IMAGE_BYTES = 5 << 20
"""Largest image, decoded."""
URL_LENGTH = 2048

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP"}


def check_images(images: Sequence[Image] | None) -> None:
    """Looks at every image; one that is at an address is only looked at by its address.

    Raises:
        ApiError: INVALID_REQUEST, or PAYLOAD_TOO_LARGE for an image over `IMAGE_BYTES`.
    """
    images = images or ()
    if len(images) > MOST_IMAGES:
        raise _refused("images", f"at most {MOST_IMAGES}")
    for place, image in enumerate(images):
        if isinstance(image.source, Base64Source):
            _check_bytes(f"images.{place}.source", image.source)
        else:
            _check_address(f"images.{place}.source.url", image.source.url)


def _check_bytes(field: str, source: Base64Source) -> None:
    try:
        data = base64.b64decode(source.data, validate=True)
    except (binascii.Error, ValueError) as e:
        raise _refused(f"{field}.data", "base64") from e
    if len(data) > IMAGE_BYTES:
        raise ApiError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            "An image is too large.",
            f"{field}.data: at most {IMAGE_BYTES} bytes",
        )
    if media_type_of(data) != source.media_type:
        raise _refused(f"{field}.data", f"not a {_FORMATS[source.media_type]} image")


def _check_address(field: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError as e:
        raise _refused(field, "no address") from e
    if not named or len(url) > URL_LENGTH or any(ord(one) < 33 for one in url):
        raise _refused(field, f"an http or https address of at most {URL_LENGTH} characters")


def _refused(field: str, rule: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, "The message's images cannot be used.", f"{field}: {rule}"
    )
