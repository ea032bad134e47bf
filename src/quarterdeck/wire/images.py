"""What kind of image bytes are."""

from typing import Literal

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


def media_type_of(content: bytes) -> MediaType | None:
    """What the first bytes say; None for no image that a message takes."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return None
