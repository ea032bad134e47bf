"""The canvas of a workspace: `~/.quarterdeck/canvas`, listed, read and written (INTERFACE 6)."""

import asyncio
import base64
import mimetypes
import os
import stat
from binascii import Error as NoBase64
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from quarterdeck.engine.canvas_store import CanvasStore
from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.reading import as_text, open_inside
from quarterdeck.wire.canvas import CANVAS_LIMIT, CanvasFile, CanvasItem, CanvasKind, CanvasList
from quarterdeck.wire.engine import CanvasCall, CanvasWritten, WriteCanvas
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.names import meant, shown

MOST_ITEMS = 1_000
"""Items that a list shows; the rest of a larger canvas is still read by name."""

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_UNKNOWN_TYPE = "application/octet-stream"


class Canvas:
    """Reads and writes one at a time with writes; `home` is the workspace's HOME."""

    def __init__(self, home: Path, state: Path) -> None:
        own = home / ".quarterdeck"
        self._root = own / "canvas"
        self._store = CanvasStore(self._root, own / "uploads", state / "canvas.jsonl")
        self._writing = asyncio.Lock()

    async def list(self) -> CanvasList:
        """Every regular file, by name."""
        return CanvasList(items=await asyncio.to_thread(self._list))

    async def get(self, call: CanvasCall) -> CanvasFile:
        """One item with its content, unless it is too large.

        Raises:
            EngineRefused: NOT_FOUND.
        """
        return await asyncio.to_thread(self._get, call.filename)

    async def put(self, upload: WriteCanvas) -> CanvasWritten:
        """Writes an upload; the same `upload_id` again changes nothing.

        Raises:
            EngineRefused: INVALID_REQUEST, or INTERNAL_ERROR when it cannot be written.
        """
        try:
            data = base64.b64decode(upload.base64, validate=True)
        except NoBase64 as error:
            raise EngineRefused.invalid("The upload's content is not base64.") from error
        name = PurePosixPath(upload.filename)
        if name.is_absolute() or ".." in name.parts or not name.parts:
            raise EngineRefused.invalid("The upload's name leads out of the canvas.")
        async with self._writing:
            try:
                given = await asyncio.to_thread(
                    self._store.write, str(upload.upload_id), name, data
                )
            except OSError as error:
                raise EngineRefused(
                    ErrorCode.INTERNAL_ERROR,
                    f"The upload cannot be written: {error.strerror or error}.",
                    upload.filename,
                ) from error
        return CanvasWritten(filename=given)

    def _list(self) -> "list[CanvasItem]":
        found: list[CanvasItem] = []
        for name, size in sorted(_regular_files(self._root)):
            found.append(CanvasItem(filename=name, kind=kind_of(name), size_bytes=size))
            if len(found) == MOST_ITEMS:
                break
        return found

    def _get(self, filename: str) -> CanvasFile:
        for name in meant(filename):
            descriptor = open_inside(self._root, name)
            if descriptor is not None:
                with os.fdopen(descriptor, "rb") as file:
                    data = file.read(CANVAS_LIMIT + 1)
                    size = os.fstat(file.fileno()).st_size
                return _described(filename, data, max(size, len(data)))
        raise EngineRefused.not_found("The canvas has no item of this name.")


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


# Not the machine's table: what an item is does not depend on where the engine runs.
_TYPES = mimetypes.MimeTypes()
for _type, _suffix in (("image/webp", ".webp"), ("image/avif", ".avif"), ("audio/flac", ".flac"), ("audio/ogg", ".ogg"), ("video/x-matroska", ".mkv")):  # fmt: skip
    _TYPES.add_type(_type, _suffix)


def _described(filename: str, data: bytes, size: int) -> CanvasFile:
    item = CanvasFile(
        filename=filename,
        kind=kind_of(filename),
        size_bytes=size,
        mime_type=type_of(filename),
    )
    if size > CANVAS_LIMIT:
        item.too_large = True
        return item
    item.content = as_text(data)
    if item.content is None:
        item.base64 = base64.b64encode(data).decode()
    return item


def _regular_files(root: Path) -> Iterator[tuple[str, int]]:
    for parent, _, names in os.walk(os.fsencode(root)):
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118 - bytes
            try:
                found = os.lstat(path)
            except OSError:
                continue  # removed meanwhile
            if stat.S_ISREG(found.st_mode):
                yield shown(os.path.relpath(path, os.fsencode(root))), found.st_size
