"""The canvas of a workspace: `~/.quarterdeck/canvas`, listed, read and written (INTERFACE 6)."""

import asyncio
import base64
import os
import stat
from binascii import Error as NoBase64
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from quarterdeck.engine.canvas_store import CanvasStore
from quarterdeck.engine.errors import EngineRefused
from quarterdeck.engine.reading import open_inside
from quarterdeck.wire.canvas import CANVAS_LIMIT, CanvasFile, CanvasList
from quarterdeck.wire.canvas_items import file_of, items_of
from quarterdeck.wire.engine import CanvasCall, CanvasWritten, WriteCanvas
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.names import meant, shown


class Canvas:
    """Reads and writes one at a time with writes; `home` is the workspace's HOME."""

    def __init__(self, home: Path, state: Path) -> None:
        own = home / ".quarterdeck"
        self._root = own / "canvas"
        self._store = CanvasStore(self._root, own / "uploads", state / "canvas.jsonl")
        self._writing = asyncio.Lock()

    async def list(self) -> CanvasList:
        """Every regular file, by name."""
        return await asyncio.to_thread(self._list)

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

    def _list(self) -> CanvasList:
        return items_of(_regular_files(self._root))

    def _get(self, filename: str) -> CanvasFile:
        for name in meant(filename):
            descriptor = open_inside(self._root, name)
            if descriptor is not None:
                with os.fdopen(descriptor, "rb") as file:
                    data = file.read(CANVAS_LIMIT + 1)
                    size = os.fstat(file.fileno()).st_size
                return file_of(filename, data, max(size, len(data)))
        raise EngineRefused.not_found("The canvas has no item of this name.")


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
