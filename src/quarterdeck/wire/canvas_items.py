"""From a canvas's files to its items: what a name says of how one can be looked at. Pure."""

import base64
import mimetypes
from collections.abc import Iterable
from pathlib import PurePosixPath

from quarterdeck.wire.canvas import CANVAS_LIMIT, CanvasFile, CanvasItem, CanvasKind, CanvasList

MOST_ITEMS = 1_000
"""Items that a list shows; the rest of a larger canvas is still read by name."""

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_UNKNOWN_TYPE = "application/octet-stream"

# Not the machine's table: what an item is does not depend on where it is looked at.
_TYPES = mimetypes.MimeTypes()
for _type, _suffix in (("image/webp", ".webp"), ("image/avif", ".avif"), ("audio/flac", ".flac"), ("audio/ogg", ".ogg"), ("video/x-matroska", ".mkv")):  # fmt: skip
    _TYPES.add_type(_type, _suffix)


def items_of(files: Iterable[tuple[str, int]]) -> CanvasList:
    """The list of a canvas, by name, from its files' names and sizes."""
    return CanvasList(
        items=[
            CanvasItem(filename=name, kind=kind_of(name), size_bytes=size)
            for name, size in sorted(files)[:MOST_ITEMS]
        ]
    )


def file_of(filename: str, data: bytes, size: int) -> CanvasFile:
    """One item with its content, unless it is too large; `data` is then just more than the limit."""
    item = CanvasFile(
        filename=filename,
        kind=kind_of(filename),
        size_bytes=size,
        mime_type=type_of(filename),
    )
    if size > CANVAS_LIMIT:
        item.too_large = True
        return item
    item.content = _text(data)
    if item.content is None:
        item.base64 = base64.b64encode(data).decode()
    return item


def kind_of(filename: str) -> CanvasKind:
    """How an item can be looked at, from its name."""
    if PurePosixPath(filename).suffix.lower() in _MARKDOWN:
        return CanvasKind.MARKDOWN
    mime_type = type_of(filename)
    if mime_type in ("text/html", "application/xhtml+xml"):
        return CanvasKind.HTML
    family = mime_type.partition("/")[0]
    known = (CanvasKind.IMAGE, CanvasKind.VIDEO, CanvasKind.AUDIO)
    return CanvasKind(family) if family in known else CanvasKind.OTHER


def type_of(filename: str) -> str:
    """The media type, from the name."""
    if PurePosixPath(filename).suffix.lower() in _MARKDOWN:
        return "text/markdown"
    found, encoding = _TYPES.guess_type(f"file:///{filename}", strict=False)
    return found if found and not encoding else _UNKNOWN_TYPE


def _text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
