"""The numbered, durable record of everything an engine tells.

Writers wait in `append` until their entries are in the file (with `durable` on the disk); what
arrives meanwhile goes into the next write, so one `fdatasync` serves everyone who waits. Only then
are entries published. A disk that refuses is tried again until it takes them: producers are held
back, nothing is dropped and nothing half-written; entries marked `refusable` are given back to
their caller as a `JournalFault` instead.

Subscribers hold a number, not a queue: one that is slow reads from the file later.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from quarterdeck.engine.drafts import Draft, Note, note
from quarterdeck.engine.errors import JournalFault
from quarterdeck.engine.journal_file import FILE_NAME, JournalFile, Visit
from quarterdeck.engine.machine import boot_id

logger = logging.getLogger(__name__)

BEHIND_ENTRIES = 256
BEHIND_BYTES = 16 << 10
"""So many entries, of at most this size each, may wait for the disk without anybody waiting for
them."""
BATCH_BYTES = 1 << 20
RECENT_BYTES = 1 << 17
"""The newest entries are kept in memory up to this size, so that live subscribers need no file."""
READ_BYTES = 1 << 18
UNSYNCED_ENTRIES = 10_000
INDEX_JUMP = 1_000_000
"""After a machine's crash numbers go on this much higher: entries that subscribers have seen, but
the disk lost, must not be taken for those that come now. More than `UNSYNCED_ENTRIES`."""
RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)

Line = tuple[int, bytes]
"""An entry's number and its JSON."""


@dataclass(eq=False)
class _Waiting:
    parts: tuple[Draft | Note, ...]
    durable: bool
    refusable: bool
    done: asyncio.Future[int]
    size: int


class Journal:
    """An open journal with its writing task. Made with `open`, ended with `close`."""

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
        """Why the last write failed; None once one worked again."""
        self.subscribers = 0
        self.hide: Callable[[bytes], bytes] = bytes
        """What every payload goes through before it is kept."""
        self._note_boot(boot)
        self._writer = asyncio.create_task(self._write_for_ever(), name="journal writer")

    @classmethod
    async def open(cls, directory: Path, visit: Visit) -> "Journal":
        """Opens the journal of a state directory, telling `visit` of every line in it.

        Raises:
            OSError: the directory cannot be used.
        """
        boots: list[bytes] = []

        def look(type: str, line: bytes) -> None:
            if type == "#boot":
                boots[:] = [line]
            visit(type, line)

        file = await asyncio.to_thread(_open_file, directory, look)
        return cls(file, boots[0].decode() if boots else None)

    @property
    def last_index(self) -> int:
        """Number of the newest published entry; 0 when there is none."""
        return self._file.last_index

    async def append(
        self, *parts: Draft | Note, durable: bool = False, refusable: bool = False
    ) -> int:
        """Writes the parts together and publishes them; returns the last number.

        The place in the order is taken at once, before this first waits.

        Raises:
            JournalFault: only with `refusable`: the disk does not take it, nothing was kept.
        """
        return await self._line_up(parts, durable, refusable)

    async def append_behind(self, *parts: Draft | Note) -> None:
        """As `append`, but returns at once unless much waits for the disk already.

        For what an agent says piece by piece: pieces that come while the disk is busy are written
        together, and an agent that is faster than the disk is held back all the same.

        Raises:
            JournalFault: the engine is ending.
        """
        done = self._line_up(parts, durable=False, refusable=False)
        if len(self._pending) > BEHIND_ENTRIES or sum(len(p.content) for p in parts) > BEHIND_BYTES:
            await done

    def _line_up(
        self, parts: tuple[Draft | Note, ...], durable: bool, refusable: bool
    ) -> asyncio.Future[int]:
        if self._closing:
            raise JournalFault("the engine is ending")
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        parts = tuple(map(self._without_keys, parts))
        size = sum(len(part.content) for part in parts)
        self._pending.append(_Waiting(parts, durable, refusable, done, size))
        self._wake.set()
        return done

    def _without_keys(self, part: Draft | Note) -> Draft | Note:
        content = self.hide(part.content)
        return part if content is part.content else replace(part, content=content)

    async def follow(self, after: int) -> AsyncGenerator[list[Line], None]:
        """Entries above `after` in order, then live ones, in groups; ends with the journal."""
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
        """Writes what waits, for at most some seconds, and ends all subscriptions."""
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
                waiting.done.set_exception(JournalFault(self.fault or "the engine is ending"))
                waiting.done.exception()  # its writer may be gone; that is no news
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

    async def _write_for_ever(self) -> None:
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
            data = note("probe", {}).line() + b"\n"  # is the disk well again?
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
                    case Note():
                        written.append(part.line())
                    case Draft():
                        lines.append((index, part.line(index)))
                        written.append(lines[-1][1])
                        index += 1
            ends.append(index - 1)
        return lines, b"".join(line + b"\n" for line in written), ends

    def _failed(self, batch: list[_Waiting], error: OSError) -> None:
        self.fault = os.strerror(error.errno) if error.errno else str(error)
        logger.error("the journal cannot be written: %s", self.fault)
        self._pending.extendleft(reversed(batch))
        kept = [waiting for waiting in self._pending if not waiting.refusable]
        for waiting in self._pending:
            if waiting.refusable and not waiting.done.done():
                waiting.done.set_exception(JournalFault(self.fault))
        self._pending = deque(kept)

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
        found: list[Line] = []
        for line in reversed(self._recent):
            if line[0] <= after:
                break
            found.append(line)
        found.reverse()
        return found

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
