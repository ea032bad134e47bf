"""Files of a replica and of this machine.

The file finder of one replica:

    query -> search -> page -> (next pages on demand) -> files
                    -> refreshing? searched again until the index is new

Only the newest search counts: answers to older ones are dropped.
"""

import asyncio
import base64
import binascii
import contextlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.wire.chats import media_type_of
from quarterdeck.wire.files import (
    MOST_FILES,
    CanvasFile,
    CanvasItem,
    CanvasKind,
    CanvasUpload,
    FileContent,
    FoundFile,
    FoundFiles,
)

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState


PAGE = 200
"""Files that are requested at a time."""
PAUSES = (0.3, 0.6, 1.2, 2.5)
"""Seconds before each check for a refreshed index; the last one repeats."""


class FileFinder:
    """The files that match the last query."""

    def __init__(self, owner: "AppState", replica_id: UUID) -> None:
        self._owner = owner
        self._replica_id = replica_id
        self.query: str | None = None
        """The query that `files` match; None before the first answer."""
        self.files: list[FoundFile] = []
        self.indexed_at: datetime | None = None
        self.stale = False
        self.refreshing = False
        self.truncated = False
        self.unsupported = False
        self._cursor: str | None = None
        self._limit = PAGE
        self._search = 0

    @property
    def has_more(self) -> bool:
        """Whether there are pages that were not read."""
        return self._cursor is not None

    async def search(self, query: str, *, refresh: bool = False) -> bool:
        """Read the first page of a search; False when another one started meanwhile.

        `refresh` waits for a new index.

        Raises:
            ClientError: refused or unreachable; the files found before stay.
        """
        return await self._begin(query, PAGE, refresh=refresh)

    async def more(self) -> bool:
        """Read the next page; False when there is none, or another search started meanwhile.

        When the index differs from that of the pages before, the search starts again.

        Raises:
            ClientError: refused or unreachable.
        """
        cursor, search, query = self._cursor, self._search, self.query
        if cursor is None or query is None:
            return False
        page = await self._page(query, self._limit, cursor=cursor)
        if search != self._search or cursor != self._cursor:
            return False
        if page.indexed_at != self.indexed_at:
            return await self._begin(query, self._limit)
        self.files += page.files
        self._take_state(page)
        return True

    async def settle(self, changed: Callable[[], None]) -> None:
        """Search again while the service makes a new index, calling `changed` after each answer.

        Raises:
            ClientError: refused or unreachable.
        """
        looks = 0
        while self.refreshing and self.query is not None:
            await asyncio.sleep(PAUSES[min(looks, len(PAUSES) - 1)])
            looks += 1
            # As many as are shown, so that the position in them is kept.
            shown = min(MOST_FILES, max(PAGE, len(self.files)))
            if not await self._begin(self.query, shown):
                return
            changed()

    async def _begin(self, query: str, limit: int, *, refresh: bool = False) -> bool:
        self._search += 1
        search = self._search
        page = await self._page(query, limit, refresh=refresh)
        if search != self._search:
            return False
        self.query, self._limit = query, limit
        self.files = list(page.files)
        self._take_state(page)
        return True

    async def _page(
        self, query: str, limit: int, *, cursor: str | None = None, refresh: bool = False
    ) -> FoundFiles:
        files = self._owner.client.files
        return await files.search(
            self._replica_id, query, limit=limit, cursor=cursor, refresh=refresh
        )

    def _take_state(self, page: FoundFiles) -> None:
        self._cursor = page.next_cursor
        self.indexed_at = page.indexed_at
        self.stale, self.refreshing = page.stale, page.refreshing
        self.truncated, self.unsupported = page.truncated, bool(page.unsupported)


@dataclass(frozen=True)
class OpenFile:
    """A file as it was read. `text` is None when it is not text; `data` is the content as sent."""

    repo_name: str
    path: str
    size: int
    truncated: bool
    text: str | None
    data: bytes

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def is_image(self) -> bool:
        """Whether it is an image of a known type, and complete."""
        return self.text is None and not self.truncated and media_type_of(self.data) is not None


async def read_file(owner: "AppState", replica_id: UUID, repo_name: str, path: str) -> OpenFile:
    """Read a file, or its start if it is large.

    Raises:
        ClientError: not active, deleted, or unreachable.
    """
    content = await owner.client.files.content(replica_id, repo_name, path)
    return open_file(repo_name, path, content)


def open_file(repo_name: str, path: str, content: FileContent) -> OpenFile:
    """Return a file from the service's answer."""
    text = content.content
    data = text.encode(errors="surrogatepass") if text is not None else _decoded(content.base64)
    return OpenFile(repo_name, path, content.size_bytes, content.truncated, text, data)


def _decoded(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        # The service sent invalid base64.
        return b""


def size_words(size: int) -> str:
    """Return a size as text."""
    if size < 1024:
        return f"{size} bytes" if size != 1 else "1 byte"
    number = float(size)
    for unit in ("KB", "MB", "GB", "TB"):
        number /= 1024
        if number < 1024 or unit == "TB":
            return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"
    raise AssertionError  # the loop always returns


def content_words(file: OpenFile) -> str:
    """Return a note about a file that is not text, or not complete; else empty."""
    if file.text is None:
        shown = " Only its beginning was sent." if file.truncated else ""
        return f"Not a text ({size_words(file.size)}).{shown}"
    if file.truncated:
        return f"The first {size_words(len(file.data))} of {size_words(file.size)}."
    return ""


class LocalFileError(Exception):
    """It could not be read or written; the text says why."""


class FileThereError(LocalFileError):
    """The file exists, and must not be replaced."""


def local_path(typed: str, directory: Path) -> Path:
    """Return a typed path: `~` is a home directory, other paths are relative to `directory`.

    Raises:
        LocalFileError: there is no such home.
    """
    try:
        return directory / Path(typed.strip()).expanduser()
    except RuntimeError as error:
        raise LocalFileError(f"{typed.split('/')[0]} is nobody's home here.") from error


def read_local(path: Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes.

    Raises:
        LocalFileError: it does not exist, is not a file, or is larger.
    """
    try:
        # Do not block: opening a pipe without a writer would never return.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise LocalFileError("Not a file.")
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise LocalFileError(_reason(error)) from error
    if len(data) > most:
        raise LocalFileError(f"Larger than {most >> 20} MB.")
    return data


def save_local(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write a file atomically.

    Raises:
        FileThereError: it exists, and may not be replaced.
        LocalFileError: it cannot be written there.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if path.is_dir():
            raise LocalFileError("This is a directory: add a file name.")
        partial.write_bytes(data)
        if replace:
            partial.replace(path)
        else:
            # Unlike renaming, linking never replaces a file created meanwhile.
            os.link(partial, path)
    except FileExistsError as error:
        raise FileThereError(f"{path} exists.") from error
    except (OSError, ValueError) as error:
        raise LocalFileError(_reason(error)) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            partial.unlink(missing_ok=True)


def _reason(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"{reason or error}."


def completed(typed: str, directory: Path) -> str | None:
    """Return the path completed to the common prefix of all matches; None without any."""
    head, slash, start = typed.rpartition("/")
    try:
        folder = local_path(head + slash, directory) if slash else directory
        names = [
            entry.name + ("/" if entry.is_dir() else "")
            for entry in os.scandir(folder)
            if entry.name.startswith(start) and (start or not entry.name.startswith("."))
        ]
    except (OSError, ValueError, LocalFileError):
        return None
    common = _common_prefix(names)
    return f"{head}{slash}{common}" if len(common) > len(start) else None


def _common_prefix(names: list[str]) -> str:
    """Return the common prefix of names."""
    first, last = min(names, default=""), max(names, default="")
    pairs = zip(first, last, strict=False)
    return first[: next((at for at, (a, b) in enumerate(pairs) if a != b), len(first))]


@dataclass(frozen=True)
class OpenItem:
    """An item with its content. `text` is None when it is not text, `data` when it is too large."""

    filename: str
    kind: str
    mime_type: str
    size: int
    text: str | None
    data: bytes | None

    @property
    def is_markdown(self) -> bool:
        return self.kind == CanvasKind.MARKDOWN and self.text is not None

    @property
    def is_image(self) -> bool:
        """Whether it is an image of a known type."""
        return self.data is not None and media_type_of(self.data) is not None


@dataclass
class CanvasState:
    """The items of one replica as last read, and the waiting uploads of this cockpit."""

    owner: "AppState"
    replica_id: UUID
    items: list[CanvasItem] | None = None
    """None before they were read."""
    waiting: list[CanvasUpload] = field(default_factory=list[CanvasUpload])

    async def read(self) -> None:
        """Read the list. Once it can be read the replica has started, so no upload waits any more.

        Raises:
            ClientError: not active, or unreachable; the items read before stay.
        """
        self.items = await self.owner.client.canvas.list(self.replica_id)
        self.waiting = []

    async def open(self, filename: str) -> OpenItem:
        """Read an item.

        Raises:
            ClientError: not active, deleted, or unreachable.
        """
        return open_item(await self.owner.client.canvas.get(self.replica_id, filename))

    async def upload(self, filename: str, data: bytes) -> CanvasUpload:
        """Upload a file, now or when the replica starts.

        Raises:
            ClientError: too large, failed, or unreachable.
        """
        upload = await self.owner.client.canvas.upload(self.replica_id, filename, data)
        if upload.upload_id is not None:
            self.waiting.append(upload)
        return upload


def open_item(file: CanvasFile) -> OpenItem:
    """Return an item from the service's answer."""
    return OpenItem(
        filename=file.filename,
        kind=file.kind,
        mime_type=file.mime_type,
        size=file.size_bytes,
        text=file.content,
        data=_data(file),
    )


def _data(file: CanvasFile) -> bytes | None:
    if file.content is not None:
        return file.content.encode(errors="surrogatepass")
    if file.base64 is None:
        return None
    try:
        return base64.b64decode(file.base64, validate=True)
    except (binascii.Error, ValueError):
        # The service sent invalid base64.
        return None
