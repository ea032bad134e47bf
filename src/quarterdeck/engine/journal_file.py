"""The journal's file: one JSON line an entry, only ever appended to. Blocking; no asyncio here.

A line is a `JournalEntry` with its fields in this order: `{"index":7,"ts":..,"type":..,"payload":..}`.
A line that starts with `#` is a note of the engine to itself (a message's content, an agent's
session id): it has no number and nobody else sees it, but it is as durable as the entry it stands
before, because both are written at once.

A process that dies while writing leaves at most a torn last line, which `open` cuts off; what is
unreadable further up (a disk that lost power) is set aside in `journal.damaged` first. `append`
either writes everything or leaves the file as it was.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from pydantic_core import from_json

logger = logging.getLogger(__name__)

FILE_NAME = "journal.jsonl"
MARK_BYTES = 1 << 16
"""One index entry is kept in memory for about this many bytes of file."""

Visit = Callable[[str, bytes], None]
"""Told of each line at start: its type (`#kind` for a note) and its JSON."""

_INDEX = b'{"index":'
_TYPE = b'"type":"'


class JournalFile:
    """An open journal. `append` and `read` may run in threads, one `append` at a time."""

    def __init__(self, path: Path, visit: Visit) -> None:
        """Opens the file, made if missing, repairs its end and tells `visit` of every line.

        Raises:
            OSError: the directory is missing or cannot be written.
        """
        self.path = path
        self.last_index = 0
        self._marks: list[tuple[int, int]] = []
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._size = self._scan(visit)
        if self._size < os.fstat(self._descriptor).st_size:
            self._cut_off()

    def append(self, data: bytes, sync: bool) -> None:
        """Writes whole lines at the end, with `sync` through to the disk.

        Raises:
            OSError: nothing of it is in the file.
        """
        try:
            self._write_all(data)
            if sync:
                os.fdatasync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise

    def appended(self, lines: list[tuple[int, bytes]], size: int) -> None:
        """Counts what `append` wrote: `lines` are the numbered ones, `size` all bytes."""
        if lines:
            self._mark(lines[0][0], self._size)
            self.last_index = lines[-1][0]
        self._size += size

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Entries with an index above `after`, about `limit` bytes of them (at least one)."""
        found: list[tuple[int, bytes]] = []
        taken = 0
        with self.path.open("rb") as file:
            file.seek(self._offset_before(after))
            end = self._size
            while taken < limit and file.tell() < end:
                line = file.readline()
                index = _index_of(line)
                if index is not None and index > after:
                    found.append((index, line[:-1]))
                    taken += len(line)
        return found

    def close(self) -> None:
        """Brings everything to the disk and closes.

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

    def _scan(self, visit: Visit) -> int:
        offset = 0
        with self.path.open("rb") as file:
            for line in file:
                if not self._scan_line(line, offset, visit):
                    break
                offset += len(line)
        return offset

    def _scan_line(self, line: bytes, offset: int, visit: Visit) -> bool:
        if not line.endswith(b"}\n"):
            return False
        if line.startswith(b"#"):
            return _tell_note(line, visit)
        index = _index_of(line)
        if index is None or index <= self.last_index:
            return False
        self._mark(index, offset)
        self.last_index = index
        start = line.find(_TYPE) + len(_TYPE)
        visit(line[start : line.index(b'"', start)].decode(), line)
        return True

    def _cut_off(self) -> None:
        lost = os.fstat(self._descriptor).st_size - self._size
        tail = os.pread(self._descriptor, lost, self._size)
        logger.warning("cutting %d unreadable bytes off the journal's end", lost)
        if b"\n" in tail[:-1]:
            self.path.with_suffix(".damaged").write_bytes(tail)
        os.ftruncate(self._descriptor, self._size)


def _index_of(line: bytes) -> int | None:
    if not line.startswith(_INDEX):
        return None
    digits = line[len(_INDEX) : line.find(b",", len(_INDEX))]
    return int(digits) if digits.isdigit() else None


def _tell_note(line: bytes, visit: Visit) -> bool:
    try:
        kind = from_json(line[1:])["kind"]
    except (ValueError, KeyError, TypeError):
        return False
    visit(f"#{kind}", line[1:])
    return True
