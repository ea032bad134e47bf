"""What an image inside an event is, read from its first bytes: nothing is decoded for a line of text."""

import base64
import binascii
import struct

_HEAD = 64
"""Characters of base64 that hold the size of a PNG, GIF or WebP image."""
_JPEG_HEAD = 1 << 17
"""The same of a JPEG image, whose size follows what its camera wrote."""
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG that its size follows."""


def image_words(media_type: str, data: str) -> str:
    """Return type, size in pixels and size in bytes of an image in base64: `image/png, 640 x 480, 12 KB`."""
    size = len(data) * 3 // 4 - data[-2:].count("=")
    kilobytes = f"{size / 1024:.1f}" if size < 10_240 else f"{size // 1024:,}"
    found = dimensions(data)
    pixels = f"{found[0]} x {found[1]}, " if found else ""
    return f"{media_type}, {pixels}{kilobytes} KB"


def dimensions(data: str) -> tuple[int, int] | None:
    """Return the width and height that an image in base64 says it has; None when they are not found."""
    head = _decoded(data[:_HEAD])
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack_from(">II", head, 16)
        if head.startswith(b"GIF8"):
            return struct.unpack_from("<HH", head, 6)
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp(head)
        if head.startswith(b"\xff\xd8"):
            return _jpeg(_decoded(data[:_JPEG_HEAD]))
    except (struct.error, IndexError):
        return None  # shorter than its kind of image is
    return None


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _webp(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            sides = head[24:27], head[27:30]
            width, height = (int.from_bytes(side, "little") + 1 for side in sides)
            return width, height
        case _:
            return None


def _jpeg(content: bytes) -> tuple[int, int] | None:
    at = 2
    while content[at] == 0xFF:
        if content[at + 1] in _FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return width, height
        at += 2 + struct.unpack_from(">H", content, at + 2)[0]
    return None
