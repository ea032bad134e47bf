"""Images: by their kind, their bytes and their size."""

import base64
from typing import Any

import pytest

from quarterdeck.service.chats.messages import IMAGE_BYTES, check_images
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.chats import MOST_IMAGES, Image

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x00\x00\x00\x00WEBP",
}


def image(data: bytes | str, media_type: str) -> Image:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    source: dict[str, Any] = {"type": "base64", "media_type": media_type, "data": text}
    return Image.model_validate({"type": "image", "source": source})


def address(url: str) -> Image:
    return Image.model_validate({"type": "image", "source": {"type": "url", "url": url}})


def refused(*images: Image) -> str:
    with pytest.raises(ApiError) as caught:
        check_images(images)
    return caught.value.code


@pytest.mark.parametrize("media_type", HEADS)
def test_an_image_is_what_it_says(media_type: str) -> None:
    check_images([image(HEADS[media_type] + bytes(9), media_type)])
    for other in HEADS.keys() - {media_type}:
        assert refused(image(HEADS[other] + bytes(9), media_type)) == "INVALID_REQUEST"


@pytest.mark.parametrize("data", ["", "no base64!", "iVBORw0", base64.b64encode(b"RIFF").decode()])
def test_what_is_no_image(data: str) -> None:
    assert refused(image(data, "image/png")) == "INVALID_REQUEST"


def test_the_limits() -> None:
    head = HEADS["image/png"]
    check_images([image(head + bytes(IMAGE_BYTES - len(head)), "image/png")])
    large = image(head + bytes(IMAGE_BYTES - len(head) + 1), "image/png")
    assert refused(large) == "PAYLOAD_TOO_LARGE"
    small = image(head, "image/png")
    check_images([small] * MOST_IMAGES)
    assert refused(*[small] * (MOST_IMAGES + 1)) == "INVALID_REQUEST"
    check_images(None)


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://a/b", "file:///etc/passwd", "http://", "https://a b", "https://[", "https://a/"
     + "b" * 2040],
)  # fmt: skip
def test_bad_addresses(url: str) -> None:
    assert refused(address(url)) == "INVALID_REQUEST"
    check_images([address("https://example.com/a.png?b=c")])
