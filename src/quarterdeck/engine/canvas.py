"""Canvas files of a workspace.

Uploads are written whole, and once.

An upload is first written to a copy named by its id, then linked to its name, then noted, then the
copy is removed. Whatever is killed in between, the same upload sent again gets one name.
"""

import asyncio
import base64
import json
import os
import stat
from binascii import Error as NoBase64
from collections.abc import Iterator
from itertools import count
from pathlib import Path, PurePosixPath

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.files import open_inside
from quarterdeck.wire.base import meant, shown
from quarterdeck.wire.engine import CanvasCall, CanvasWritten, WriteCanvas
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import (
    CANVAS_LEVELS,
    CANVAS_LIMIT,
    CANVAS_NAME_LIMIT,
    CanvasFile,
    CanvasList,
    file_of,
    items_of,
)

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class CanvasStore:
    """Blocking; call it in a thread, one call at a time.

    Args:
        root: the canvas.
        aside: a directory on the same file system, for unfinished uploads.
        notes: the file that lists which uploads were written, and under which names.
    """

    def __init__(self, root: Path, aside: Path, notes: Path) -> None:
        self._root = root
        self._aside = aside
        self._notes = notes
        self._written: dict[str, str] | None = None

    def write(self, upload_id: str, name: PurePosixPath, data: bytes) -> str:
        """Write an upload under its name, or the next free one; return that name.

        Raises:
            OSError: it cannot be written.
        """
        written, copy = self._names_by_upload(), self._aside / upload_id
        if upload_id in written:
            copy.unlink(missing_ok=True)  # the engine was killed right after the note
            return written[upload_id]
        for directory in (self._root, self._aside):
            directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        name_taken = self._linked(copy) or self._place(copy, name, data)
        self._note(upload_id, name_taken)
        written[upload_id] = name_taken
        copy.unlink(missing_ok=True)
        return name_taken

    def _place(self, copy: Path, name: PurePosixPath, data: bytes) -> str:
        copy.unlink(missing_ok=True)
        with os.fdopen(os.open(copy, _NEW, 0o644), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for candidate in _names(self._possible(name)):
            try:
                os.link(copy, self._root / candidate, follow_symlinks=False)
            except FileExistsError:
                continue
            return str(candidate)
        raise AssertionError("the names never end")

    def _possible(self, name: PurePosixPath) -> PurePosixPath:
        """Return the name with its directories made, or its last part where a file is in their place."""
        try:
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            return PurePosixPath(name.name)
        return name

    def _linked(self, copy: Path) -> str | None:
        """Return the name that a copy was linked to before the engine was killed."""
        try:
            copy_stat = copy.lstat()
        except FileNotFoundError:
            return None
        if copy_stat.st_nlink < 2:
            return None
        root = os.fsencode(self._root)
        for path, status in _entries(root):
            if status.st_ino == copy_stat.st_ino:
                return os.fsdecode(os.path.relpath(path, root))
        return None

    def _names_by_upload(self) -> dict[str, str]:
        if self._written is None:
            self._written = dict(_read(self._notes))
        return self._written

    def _note(self, upload_id: str, name: str) -> None:
        # Starts with a line end: the last line may have been cut short by a crash.
        line = b"\n" + json.dumps([upload_id, name]).encode() + b"\n"
        descriptor = os.open(
            self._notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "ab") as file:  # writes on where a single write ended early
            file.write(line)
            file.flush()
            os.fsync(descriptor)


def _names(name: PurePosixPath) -> Iterator[PurePosixPath]:
    yield name
    for number in count(2):
        ending = f"-{number}{name.suffix}"
        room = CANVAS_NAME_LIMIT - len(ending.encode())
        stem = name.stem.encode()[:room].decode(errors="ignore")
        yield name.with_name(stem + ending)


def _read(notes: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = notes.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            upload_id, name = json.loads(line)
        except ValueError:
            continue  # cut short by a crash: the copy's link gives the name
        yield upload_id, name


class CanvasDirectory:
    """Reads the canvas, and writes one file at a time; `home` is the workspace's HOME."""

    def __init__(self, home: Path, state: Path) -> None:
        own = home / ".quarterdeck"
        self._root = own / "canvas"
        self._store = CanvasStore(self._root, own / "uploads", state / "canvas.jsonl")
        self._writing = asyncio.Lock()

    async def list(self) -> CanvasList:
        """Return every regular file, by name."""
        return await asyncio.to_thread(self._list)

    async def get(self, call: CanvasCall) -> CanvasFile:
        """Return one item with its content, unless it is too large.

        Raises:
            EngineRefusedError: NOT_FOUND.
        """
        return await asyncio.to_thread(self._get, call.filename)

    async def put(self, upload: WriteCanvas) -> CanvasWritten:
        """Write an upload; the same `upload_id` again changes nothing.

        Raises:
            EngineRefusedError: INVALID_REQUEST, or INTERNAL_ERROR when it cannot be written.
        """
        try:
            data = base64.b64decode(upload.base64, validate=True)
        except NoBase64 as error:
            raise EngineRefusedError.invalid("The upload's content is not base64.") from error
        name = PurePosixPath(upload.filename)
        if name.is_absolute() or ".." in name.parts or not name.parts:
            raise EngineRefusedError.invalid("The upload's name leads out of the canvas.")
        async with self._writing:
            try:
                written_name = await asyncio.to_thread(
                    self._store.write, str(upload.upload_id), name, data
                )
            except OSError as error:
                raise EngineRefusedError(
                    ErrorCode.INTERNAL_ERROR,
                    f"The upload cannot be written: {error.strerror or error}.",
                    upload.filename,
                ) from error
        return CanvasWritten(filename=written_name)

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
        raise EngineRefusedError.not_found("The canvas has no item of this name.")


def _regular_files(root: Path) -> Iterator[tuple[str, int]]:
    top = os.fsencode(root)
    for path, status in _entries(top):
        if stat.S_ISREG(status.st_mode):
            yield shown(os.path.relpath(path, top)), status.st_size


def _entries(top: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield all but directories, as deep as a name of the canvas can lead."""
    for parent, below, names in os.walk(top):
        if parent.count(b"/") - top.count(b"/") >= CANVAS_LEVELS:
            below.clear()
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118 - bytes
            try:
                yield path, os.lstat(path)
            except OSError:
                continue  # removed meanwhile
