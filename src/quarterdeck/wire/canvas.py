"""Canvas: plans, reports and other files that agents produce (operation 14; INTERFACE 6)."""

from enum import StrEnum

from quarterdeck.wire.base import CamelRecord

CANVAS_LIMIT = 5 << 20
"""Most bytes of an item that are uploaded, or sent back: 5 MB."""

CANVAS_NAME_LIMIT = 255
"""Bytes of an item's name."""

CANVAS_DIRECTORY = ".quarterdeck/canvas"
"""Where the canvas lies, in the HOME of the workspace."""

CANVAS_DISPLAY = f"~/{CANVAS_DIRECTORY}"
"""Where the canvas lies, as people and agents in the workspace know it."""


class CanvasKind(StrEnum):
    """How an item can be looked at."""

    MARKDOWN = "markdown"
    HTML = "html"
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    OTHER = "other"


class CanvasItem(CamelRecord):
    """One file of a canvas. `filename` is relative to it."""

    filename: str
    kind: str
    size_bytes: int


class CanvasList(CamelRecord):
    """Answer of `GET .../canvas`."""

    items: list[CanvasItem]


class CanvasFile(CanvasItem):
    """Answer of `GET .../canvas/{filename}`: text in `content`, anything else in `base64`.

    Neither is there when the item is `too_large`.
    """

    mime_type: str
    content: str | None = None
    base64: str | None = None
    too_large: bool | None = None


class CanvasUpload(CamelRecord):
    """Answer of an upload. `upload_id` is only there when it was queued."""

    file_path: str
    original_name: str
    size_bytes: int
    upload_id: str | None = None


def display_path(filename: str) -> str:
    """The path of an item, as an agent in the workspace may be told it."""
    return f"{CANVAS_DISPLAY}/{filename}"
