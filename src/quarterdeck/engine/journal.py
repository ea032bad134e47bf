"""The journal: the numbered, durable events of a workspace.

Writers wait in `append` until their entries are in the file (with `durable` on the disk); entries
that arrive meanwhile go into the next write, so one `fdatasync` serves all writers. Only then are
entries published. A failed write is repeated until it succeeds: producers are held back, nothing is
dropped or half-written; entries marked `refusable` fail with a `JournalError` instead.

A subscriber holds an index, not a queue: a slow one reads from the file later.

The journal's file: one JSON line an entry, only ever appended to. Blocking; no asyncio here.

A line is a `JournalEntry` with its fields in this order:
`{"index":7,"ts":..,"type":..,"payload":..}`. A line that starts with `#` is a note of the engine to
itself (a message's content, an agent's session id): it has no number and is not published, but it
is as durable as the entry after it, because both are written at once.

A process that dies while writing leaves at most a torn last line, which `open` cuts off. Where
other lines cannot be read (a disk that lost power), the file is copied to `journal.damaged` and
written again without them, so the numbers of a file always increase. `append` either writes
everything or leaves the file as it was.

Keys of agents are removed from all entries: an agent or its child processes may print their
environment, and the key must not reach the journal, the service's database or its readers
(redaction.py).
"""

import asyncio
import errno
import logging
import os
import shutil
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_json

from quarterdeck.engine.errors import JournalError
from quarterdeck.engine.journal_lines import JournalLine, JournalLines, index_of, read_lines
from quarterdeck.local.processes import boot_id
from quarterdeck.wire.events import EventType

ENTRY_LIMIT = 20 << 20
"""Longest payload of one entry in bytes; half of the longest line of the link. Written as ASCII, three
times as long, it is still an event that clients read."""


class EntryTooLargeError(ValueError):
    """A payload over `ENTRY_LIMIT`. Nothing was written."""


@dataclass(frozen=True)
class JournalDraft:
    """An entry without its number. `content` is the payload as JSON."""

    type: str
    ts: str
    content: bytes

    def line(self, index: int) -> bytes:
        return b'{"index":%d,"ts":"%s","type":"%s","payload":%s}' % (
            index,
            self.ts.encode(),
            self.type.encode(),
            self.content,
        )


@dataclass(frozen=True)
class JournalNote:
    """A line that only the engine reads, at its next start."""

    content: bytes

    def line(self) -> bytes:
        return b"#" + self.content


def event(type: EventType, payload: BaseModel | dict[str, Any]) -> JournalDraft:
    """Return an entry of the event stream, dated now.

    Raises:
        EntryTooLargeError: the payload is over `ENTRY_LIMIT`.
    """
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return JournalDraft(type.value, moment, _encode(payload))


def note(kind: str, data: BaseModel | dict[str, Any]) -> JournalNote:
    """Return a note."""
    return JournalNote(_encode({"kind": kind, "data": data}))


def payload_of_line(line: bytes) -> dict[str, Any]:
    """Return the payload of an entry's line, or the data of a note's."""
    content = from_json(line)
    return content["payload"] if "payload" in content else content["data"]


def _encode(payload: BaseModel | dict[str, Any]) -> bytes:
    try:
        content = to_json(payload, by_alias=True)
    except (PydanticSerializationError, UnicodeEncodeError):
        content = to_json(_without_surrogates(_plain(payload)), by_alias=True)
    if len(content) > ENTRY_LIMIT:
        raise EntryTooLargeError(f"An entry of {len(content)} bytes is over the limit.")
    return content


def _plain(payload: BaseModel | dict[str, Any]) -> object:
    return payload.model_dump(by_alias=True) if isinstance(payload, BaseModel) else payload


def _without_surrogates(value: object) -> object:
    """Replace halves of surrogate pairs, which an agent may send and UTF-8 cannot hold."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            pairs = cast("dict[object, object]", value).items()
            return {_without_surrogates(key): _without_surrogates(pair) for key, pair in pairs}
        case list():
            return [_without_surrogates(item) for item in cast("list[object]", value)]
        case BaseModel():
            return _without_surrogates(value.model_dump(by_alias=True))
        case _:
            return value


logger = logging.getLogger(__name__)

FILE_NAME = "journal.jsonl"
MARK_BYTES = 1 << 16
"""One index entry is kept in memory for about this many bytes of file."""

Visit = Callable[[str, bytes], None]
"""Called at start for each line with its type (`#kind` for a note) and its JSON."""


class JournalFile:
    """An open journal. `append` and `read` may run in threads, one `append` at a time."""

    def __init__(self, path: Path, visit: Visit) -> None:
        """Open or create the file, repair its end and call `visit` for every line.

        Raises:
            OSError: the directory is missing or cannot be written.
        """
        self.path = path
        self.last_index = 0
        self.lost = 0
        """How many lines could not be read."""
        self._marks: list[tuple[int, int]] = []
        self._size = 0
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
        if not path.is_file():  # reading a pipe might never end
            raise OSError(errno.EINVAL, "Not a file", str(path))
        found = read_lines(path)
        self.lost = found.lost
        if not found.is_whole:
            self._repair(found)
            found = read_lines(path)
        self._scan(found.lines, visit)
        self._descriptor = os.open(path, flags, 0o600)
        if (surplus := os.fstat(self._descriptor).st_size - self._size) > 0:
            logger.warning("cutting %d unreadable bytes off the journal's end", surplus)
            os.ftruncate(self._descriptor, self._size)

    def append(self, data: bytes, sync: bool) -> None:
        """Write whole lines at the end; `sync` forces them to the disk.

        Raises:
            OSError: nothing was written.
        """
        try:
            self._write_all(data)
            if sync:
                os.fdatasync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise

    def appended(self, lines: list[tuple[int, bytes]], size: int) -> None:
        """Count the result of `append`: `lines` are the numbered ones, `size` all bytes."""
        if lines:
            self._mark(lines[0][0], self._size)
            self.last_index = lines[-1][0]
        self._size += size

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return entries with an index above `after`, about `limit` bytes of them (at least one)."""
        entries: list[tuple[int, bytes]] = []
        size = 0
        with self.path.open("rb") as file:
            file.seek(self._offset_before(after))
            end = self._size
            while size < limit and file.tell() < end:
                line = file.readline()
                index = index_of(line)
                if index is not None and index > after:
                    entries.append((index, line[:-1]))
                    size += len(line)
        return entries

    def close(self) -> None:
        """Force everything to the disk and close.

        Raises:
            OSError: the disk refused.
        """
        try:
            os.fdatasync(self._descriptor)
        finally:
            os.close(self._descriptor)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def _offset_before(self, after: int) -> int:
        place = bisect_right(self._marks, after + 1, key=lambda mark: mark[0])
        return self._marks[place - 1][1] if place else 0

    def _mark(self, index: int, offset: int) -> None:
        if not self._marks or offset - self._marks[-1][1] >= MARK_BYTES:
            self._marks.append((index, offset))

    def _scan(self, lines: list[JournalLine], visit: Visit) -> None:
        with self.path.open("rb") as file:
            for place in lines:
                line = file.read(place.size)
                if place.number is not None:
                    self._mark(place.number, self._size)
                    self.last_index = place.number
                self._size += place.size
                try:
                    visit(place.type, line if place.number is not None else line[1:])
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    # Not damage: an engine of another version may have written it.
                    logger.error(
                        "a line %s of the journal is not understood: %r", place.type, error
                    )

    def _repair(self, found: JournalLines) -> None:
        repaired = self.path.with_suffix(".repaired")
        with self.path.open("rb") as file, _new_private(repaired) as new:
            for place in found.lines:
                file.seek(place.offset)
                new.write(file.read(place.size).rstrip(b"\n") + b"\n")
            new.flush()
            os.fsync(new.fileno())
        if found.lost:
            logger.error("%d lines of the journal cannot be read", found.lost)
            damaged = self.path.with_suffix(".damaged")
            with self.path.open("rb") as file, _new_private(damaged) as copy:
                shutil.copyfileobj(file, copy)
        repaired.replace(self.path)


def _new_private(path: Path) -> BinaryIO:
    """Open a new file that only its owner reads, in the place of an earlier one or of a link."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


RELAXED_ENTRIES = 256
RELAXED_BYTES = 16 << 10
"""This many entries of at most this size each may wait for the disk without a waiting writer."""
BATCH_BYTES = 1 << 20
RECENT_BYTES = 1 << 17
"""The newest entries are kept in memory up to this size, so live subscribers do not read the file."""
READ_BYTES = 1 << 18
UNSYNCED_ENTRIES = 10_000
INDEX_JUMP = 1_000_000
"""After a machine's crash numbers continue this much higher, so that entries which subscribers
have seen, but the disk lost, are not confused with new ones. More than `UNSYNCED_ENTRIES`."""
RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)

Line = tuple[int, bytes]
"""An entry's number and its JSON."""


@dataclass(eq=False)
class _Waiting:
    parts: tuple[JournalDraft | JournalNote, ...]
    durable: bool
    refusable: bool
    done: asyncio.Future[int]
    size: int


class Journal:
    """An open journal with its writing task. Created with `open`, ended with `close`."""

    def __init__(self, file: JournalFile, boot: str | None) -> None:
        self._file = file
        self._next = file.last_index + 1
        self._pending: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._published = asyncio.Event()
        self._recent: deque[Line] = deque()
        self._recent_bytes = 0
        self._unsynced = 0
        self._closing = False
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self.fault: str | None = None
        """Why the last write failed; None after a successful one."""
        self.subscribers = 0
        self.lost_lines = 0
        """How many lines could not be read when it was opened."""
        self.lost_end = False
        """Whether entries that the service has are missing at the end."""
        self.hide: Callable[[bytes], bytes] = bytes
        """Applied to every payload before it is written."""
        self._note_boot(boot)
        self._writer = asyncio.create_task(self._write_until_closed(), name="journal writer")

    @classmethod
    async def open(cls, directory: Path, visit: Visit, known_index: int = 0) -> "Journal":
        """Open the journal of a state directory, calling `visit` for every line in it.

        Numbers continue above `known_index` even when the file is damaged: entries that subscribers
        have seen must not be confused with new ones.

        Raises:
            OSError: the directory cannot be used.
        """
        boots: list[bytes] = []

        def visit_line(type: str, line: bytes) -> None:
            if type == "#boot":
                boots[:] = [line]
            visit(type, line)

        file = await asyncio.to_thread(_open_file, directory, visit_line)
        lost_end = file.last_index < known_index
        file.last_index = max(file.last_index, known_index)
        journal = cls(file, boots[0].decode() if boots else None)
        journal.lost_end, journal.lost_lines = lost_end, file.lost
        return journal

    @property
    def last_index(self) -> int:
        """Index of the newest published entry; 0 when there is none."""
        return self._file.last_index

    async def append(
        self, *parts: JournalDraft | JournalNote, durable: bool = False, refusable: bool = False
    ) -> int:
        """Write the parts together and publish them; return the last number.

        The order is fixed at once, before this first waits.

        Raises:
            JournalError: only with `refusable`: the write failed, and nothing was written.
        """
        return await self._line_up(parts, durable, refusable)

    async def append_relaxed(self, *parts: JournalDraft | JournalNote) -> None:
        """Append, but return at once unless much waits for the disk already.

        For an agent's streamed output: pieces that arrive while the disk is busy are written
        together, and an agent that is faster than the disk is still held back.

        Raises:
            JournalError: the engine is ending.
        """
        done = self._line_up(parts, durable=False, refusable=False)
        if (
            len(self._pending) > RELAXED_ENTRIES
            or sum(len(p.content) for p in parts) > RELAXED_BYTES
        ):
            await done

    def _line_up(
        self, parts: tuple[JournalDraft | JournalNote, ...], durable: bool, refusable: bool
    ) -> asyncio.Future[int]:
        if self._closing:
            raise JournalError("the engine is ending")
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        parts = tuple(map(self._without_keys, parts))
        size = sum(len(part.content) for part in parts)
        self._pending.append(_Waiting(parts, durable, refusable, done, size))
        self._wake.set()
        return done

    def _without_keys(self, part: JournalDraft | JournalNote) -> JournalDraft | JournalNote:
        content = self.hide(part.content)
        return part if content is part.content else replace(part, content=content)

    async def follow(self, after: int) -> AsyncGenerator[list[Line], None]:
        """Yield entries above `after` in order, then live ones, in groups; ends with the journal."""
        self.subscribers += 1
        try:
            while True:
                published = self._published
                if lines := await self._read(after):
                    after = lines[-1][0]
                    yield lines
                elif self._closed:
                    return
                else:
                    await published.wait()
        finally:
            self.subscribers -= 1

    async def close(self, seconds: float = 5.0) -> None:
        """Write waiting entries, for at most some seconds, and end all subscriptions."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        _, late = await asyncio.wait({self._writer}, timeout=seconds)
        if late:
            logger.error("the journal was closed with %d unwritten entries", len(self._pending))
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        for waiting in self._pending:
            if not waiting.done.done():
                waiting.done.set_exception(JournalError(self.fault or "the engine is ending"))
                waiting.done.exception()  # its writer may have been cancelled
        await self._close_file()
        self._closed = True
        self._publish()

    async def _close_file(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
        except OSError as error:
            logger.error("the journal could not be synced at its end: %s", error)
        self._thread.shutdown()

    # Writing

    def _note_boot(self, line: str | None) -> None:
        boot = boot_id()
        if line is not None and boot in line:
            return
        if line is not None and self._file.last_index:
            self._next += INDEX_JUMP
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pending.append(_Waiting((note("boot", {"id": boot}),), True, False, done, 0))
        self._wake.set()

    async def _write_until_closed(self) -> None:
        failures = 0
        while self._pending or not self._closing:
            batch = self._take()
            if not batch and self.fault is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            if await self._write(batch):
                failures = 0
                continue
            await self._pause(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
            failures += 1

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._pending and size < BATCH_BYTES:
            waiting = self._pending.popleft()
            batch.append(waiting)
            size += waiting.size
        return batch

    async def _write(self, batch: list[_Waiting]) -> bool:
        lines, data, ends = self._number(batch)
        if not batch:
            data = note("probe", {}).line() + b"\n"  # is the disk writable again?
        sync = any(w.durable for w in batch) or self._unsynced + len(lines) > UNSYNCED_ENTRIES
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._file.append, data, sync)
        except OSError as error:
            self._failed(batch, error)
            return False
        self._unsynced = 0 if sync else self._unsynced + len(lines)
        self._file.appended(lines, len(data))
        self._next = self._next + len(lines)
        self._remember(lines)
        self.fault = None
        for waiting, end in zip(batch, ends, strict=True):
            if not waiting.done.done():
                waiting.done.set_result(end)
        self._publish()
        return True

    def _number(self, batch: list[_Waiting]) -> tuple[list[Line], bytes, list[int]]:
        lines: list[Line] = []
        written: list[bytes] = []
        ends: list[int] = []
        index = self._next
        for waiting in batch:
            for part in waiting.parts:
                match part:
                    case JournalNote():
                        written.append(part.line())
                    case JournalDraft():
                        lines.append((index, part.line(index)))
                        written.append(lines[-1][1])
                        index += 1
            ends.append(index - 1)
        return lines, b"".join(line + b"\n" for line in written), ends

    def _failed(self, batch: list[_Waiting], error: OSError) -> None:
        self.fault = os.strerror(error.errno) if error.errno else str(error)
        logger.error("the journal cannot be written: %s", self.fault)
        self._pending.extendleft(reversed(batch))
        remaining = [waiting for waiting in self._pending if not waiting.refusable]
        for waiting in self._pending:
            if waiting.refusable and not waiting.done.done():
                waiting.done.set_exception(JournalError(self.fault))
        self._pending = deque(remaining)

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        try:
            # Python 3.11's wait_for loses a cancellation that comes together with the event.
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    # Reading

    async def _read(self, after: int) -> list[Line]:
        if after >= self.last_index:
            return []
        if self._recent and after >= self._recent[0][0] - 1:
            return self._newer(after)
        return await asyncio.to_thread(self._file.read, after, READ_BYTES)

    def _newer(self, after: int) -> list[Line]:
        lines: list[Line] = []
        for line in reversed(self._recent):
            if line[0] <= after:
                break
            lines.append(line)
        lines.reverse()
        return lines

    def _remember(self, lines: list[Line]) -> None:
        for line in lines:
            self._recent.append(line)
            self._recent_bytes += len(line[1])
        while self._recent and self._recent_bytes > RECENT_BYTES:
            self._recent_bytes -= len(self._recent.popleft()[1])

    def _publish(self) -> None:
        self._published.set()
        self._published = asyncio.Event()


def _open_file(directory: Path, visit: Visit) -> JournalFile:
    directory.mkdir(parents=True, exist_ok=True)
    return JournalFile(directory / FILE_NAME, visit)
