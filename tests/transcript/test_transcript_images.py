"""What the line of an image says, from its first bytes."""

import base64
import io

import pytest
from PIL import Image

from quarterdeck.transcript.acp import Content, content_text
from quarterdeck.transcript.images import dimensions, image_words


def encoded(format: str, **options: object) -> str:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((300, 200)).convert("RGB").save(file, format, **options)
    return base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("PNG", {}),
        ("GIF", {}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\0\0"}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True, "comment": bytes(60_000)}),
    ],
)
def test_every_kind_says_how_large_it_is(format: str, options: dict[str, object]) -> None:
    data = encoded(format, **options)
    assert dimensions(data) == (300, 200)
    for end in range(120):  # cut anywhere, it is an image without a size or with the right one
        assert dimensions(data[:end]) in (None, (300, 200))


@pytest.mark.parametrize("data", ["", "=", "%%%%", "AAAA", "/9j/", "/9j//8AA", "R0lGOA=="])
def test_what_is_no_image_has_no_size(data: str) -> None:
    assert dimensions(data) is None


def test_the_line_has_type_pixels_and_bytes() -> None:
    data = base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\0\0\2\x80\0\0\1\xe0" + bytes(2_024)
    )
    assert image_words("image/png", data.decode()) == "image/png, 640 x 480, 2.0 KB"
    block = Content(type="image", mime_type="image/png", data=data.decode())
    assert content_text(block) == "[image: image/png, 640 x 480, 2.0 KB]"
    assert content_text(Content(type="image", mime_type="image/png")) == "[image: image/png]"
