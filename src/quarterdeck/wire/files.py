"""Files of a workspace's repositories, and of its canvas (docs/interface.md 6)."""

import base64
import mimetypes
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from heapq import nsmallest
from pathlib import PurePosixPath

from quarterdeck.wire.base import CamelRecord, Timestamp

MOST_FILES = 5_000
"""Files on a page at most."""
LONGEST_PATH = 4_096
"""Longest path of a query, in characters."""
DEFAULT_FILES = 100

CONTENT_LIMIT = 1 << 20
"""Most bytes of a file that are sent: 1 MiB."""


INDEX_LIMIT = 200_000
"""Most files of a workspace that are indexed."""


class FileStatus(StrEnum):
    """How a file differs from the last commit."""

    CHANGED = "changed"
    UNTRACKED = "untracked"
    UNCHANGED = "unchanged"


class FoundFile(CamelRecord):
    """One file. A higher `score` is a better match; 0 when nothing was searched for."""

    repo_name: str
    """Repository of the file."""
    path: str
    """Path in the repository."""
    display_path: str
    """Path to show."""
    status: str
    """`changed`, `untracked` or `unchanged` since the last commit."""
    score: float
    """How well it matches; higher is better."""
    indexed_at: Timestamp
    """When its repository was indexed."""
    stale: bool
    """Whether the index may be out of date."""


class FoundFiles(CamelRecord):
    """A page of a search, best match first."""

    files: list[FoundFile]
    """Files on this page."""
    next_cursor: str | None
    """`cursor` of the next page; null on the last one."""
    indexed_at: Timestamp
    """When the files were indexed."""
    stale: bool
    """Whether the index may be out of date."""
    refreshing: bool
    """Whether a new index is being built."""
    truncated: bool
    """Whether the index leaves out files because there are too many."""
    unsupported: bool | None = None
    """True when the engine of the replica cannot list files."""


class FileContent(CamelRecord):
    """Answer of reading a file: text in `content`, anything else in `base64`.

    `truncated` when the file is longer than what is sent of it.
    """

    content: str | None = None
    """Content, when it is text."""
    base64: str | None = None
    """Content in base64, when it is not text."""
    size_bytes: int
    """Size of the whole file in bytes."""
    truncated: bool
    """Whether only the beginning is here."""


CANVAS_LIMIT = 5 << 20
"""Most bytes of an item that are uploaded, or sent back: 5 MB."""

CANVAS_NAME_LIMIT = 255
"""Bytes of an item's name."""

CANVAS_LEVELS = CANVAS_NAME_LIMIT // 2
"""Most directories in an item's name."""

CANVAS_DIRECTORY = ".quarterdeck/canvas"
"""Where the canvas lies, in the HOME of the workspace."""

CANVAS_DISPLAY = f"~/{CANVAS_DIRECTORY}"
"""Where the canvas lies, as people and agents in the workspace know it."""


class CanvasKind(StrEnum):
    """How an item can be shown."""

    MARKDOWN = "markdown"
    HTML = "html"
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    OTHER = "other"


class CanvasItem(CamelRecord):
    """One file of a canvas. `filename` is relative to it."""

    filename: str
    """Path of the file, relative to the canvas."""
    kind: str
    """How it can be shown: `markdown`, `html`, `image`, `video`, `audio` or `other`."""
    size_bytes: int
    """Size in bytes."""


class CanvasList(CamelRecord):
    """Answer of `GET .../canvas`."""

    items: list[CanvasItem]
    """Files, by name."""


class CanvasFile(CanvasItem):
    """Answer of `GET .../canvas/{filename}`: text in `content`, anything else in `base64`.

    Neither is there when the item is `too_large`.
    """

    mime_type: str
    """Media type, derived from the name."""
    content: str | None = None
    """Content, when it is text."""
    base64: str | None = None
    """Content in base64, when it is not text."""
    too_large: bool | None = None
    """True when the file is over 5 MB; its content is left out then."""


class CanvasUpload(CamelRecord):
    """Answer of an upload. `upload_id` is only there when it was queued."""

    file_path: str
    """Path in the workspace, to name to the agent."""
    original_name: str
    """Name that was given."""
    size_bytes: int
    """Size in bytes."""
    upload_id: str | None = None
    """Id for `canvasUploadIds` of a message; only when the upload is queued."""


def display_path(filename: str) -> str:
    """Return the path of an item as shown to an agent in the workspace."""
    return f"{CANVAS_DISPLAY}/{filename}"


MOST_ITEMS = 1_000
"""Items in a list; further items of a larger canvas can be read by name."""

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_UNKNOWN_TYPE = "application/octet-stream"


@cache
def _types() -> mimetypes.MimeTypes:
    """Not the machine's table, so that the type of an item is the same everywhere.

    Made on first use: the machine's files are read all the same, which takes a while.
    """
    table = mimetypes.MimeTypes()
    for kind, suffix in (
        ("image/webp", ".webp"),
        ("image/avif", ".avif"),
        ("audio/flac", ".flac"),
        ("audio/ogg", ".ogg"),
        ("audio/x-wav", ".wav"),  # Python 3.14 has another name for it
        ("video/x-matroska", ".mkv"),
    ):
        table.add_type(kind, suffix)
    return table


def items_of(files: Iterable[tuple[str, int]]) -> CanvasList:
    """Return the items of a canvas, by name, from the names and sizes of its files."""
    return CanvasList(
        items=[
            CanvasItem(filename=name, kind=kind_of(name), size_bytes=size)
            for name, size in nsmallest(MOST_ITEMS, files)
        ]
    )


def file_of(filename: str, data: bytes, size: int) -> CanvasFile:
    """Return one item with its content, unless it is too large: `data` just exceeds the limit."""
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
    """Return the kind of an item, from its name."""
    if PurePosixPath(filename).suffix.lower() in _MARKDOWN:
        return CanvasKind.MARKDOWN
    mime_type = type_of(filename)
    if mime_type in ("text/html", "application/xhtml+xml"):
        return CanvasKind.HTML
    family = mime_type.partition("/")[0]
    known = (CanvasKind.IMAGE, CanvasKind.VIDEO, CanvasKind.AUDIO)
    return CanvasKind(family) if family in known else CanvasKind.OTHER


def type_of(filename: str) -> str:
    """Return the media type, from the name."""
    if PurePosixPath(filename).suffix.lower() in _MARKDOWN:
        return "text/markdown"
    mime_type, encoding = _types().guess_type(f"file:///{filename}", strict=False)
    return mime_type if mime_type and not encoding else _UNKNOWN_TYPE


def _text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
