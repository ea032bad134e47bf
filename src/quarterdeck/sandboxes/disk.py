"""The disk that replicas share with the service: one that fills it is stopped, like one that uses up memory.

No quota is needed. What programs of replicas have written is counted by the kernel for each process; it is
read only when the free space has changed. What an engine sends counts too, because the service stores its
events. When hardly any is left, the programs that wrote most recently are
killed, and a reserve is released: a file that held some room, so that the service can store what it accepts.

Files are not counted by the kernel, so those of replicas are counted when the file system can hold few more.
"""

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.local.processes import (
    PROC,
    ProcessRef,
    ProcessStat,
    process_ids,
    read_environment,
    read_stat,
    send,
)
from quarterdeck.sandboxes.errors import DiskFullError, SandboxError
from quarterdeck.sandboxes.layout import Places, places_of, workspace_ids
from quarterdeck.sandboxes.processes import MARKER
from quarterdeck.sandboxes.record import load_record

RESERVED = 256 << 20
RESERVED_FILES = 65_536
RESERVED_PART, RESERVED_FILES_PART = 10, 50
"""No replica starts when less than this many bytes or files, or this part of the disk if that is less, is
free: the service stores events and messages on it. What is written between two looks does not get less on a small disk."""
CRITICAL_PART = 4
"""Programs that write are killed when less than this part of that is free. The reserve is as large."""
LEAST_RESERVE = 1 << 20
"""Bytes below which a reserve is of no use."""
NEAR = 16
"""Multiple of `RESERVED` below which the disk is looked at more often, until it is full."""
SECONDS, SECONDS_NEAR = 2.0, 0.25
"""Between two looks at the free space."""
CHANGED = 32 << 20
"""Bytes by which it has to change until what replicas wrote is counted again; on a disk that is looked at more
often, it is also counted every `SECONDS`."""
WRITTEN = 1 << 20
"""Bytes that a program must have written between two looks to be killed."""
SHARE = 4
"""A replica is responsible when it wrote at least this part of what became used."""
STRIKES = 3
"""Looks in a row with the same responsible replica, after which all of it is stopped."""

NEAR_FILES = 4
"""Multiple of `RESERVED_FILES` below which the files of replicas are counted, to know later who made more."""
STEP_FILES = 16
"""Part of `RESERVED_FILES` that must have been made since until they are counted again."""
COUNTING_SECONDS = 600.0
"""Limit of one count, by a program with low priority; a million files take seconds."""

Report = Callable[[str, str], Awaitable[object]]
"""Tells what was done to a replica: its id, and a sentence."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Room:
    """The free space of a disk, and the levels below which something is done, in bytes."""

    free: int
    reserved: int
    free_files: int
    reserved_files: int
    """Files that can still be made, and the level below which no replica starts; both 0 without a limit."""

    @property
    def critical(self) -> int:
        return self.reserved // CRITICAL_PART


def room_of(home: Home) -> Room:
    """Return the room on the disk of an installation."""
    return room_at(home.root)


def room_at(path: Path) -> Room:
    """Return the room on the disk of an existing path."""
    disk = os.statvfs(path)
    size = disk.f_blocks * disk.f_frsize
    return Room(
        disk.f_bavail * disk.f_frsize,
        min(RESERVED, size // RESERVED_PART),
        disk.f_favail,
        min(RESERVED_FILES, disk.f_files // RESERVED_FILES_PART),
    )


def require_room(home: Home) -> None:
    """Refuse to start work on a disk that is almost full.

    Raises:
        DiskFullError: it is.
    """
    room = room_of(home)
    if room.free < room.reserved:
        raise DiskFullError(
            f"The disk is almost full: {room.free >> 20} MiB are free. Make room, and try again."
        )
    if room.free_files < room.reserved_files:
        raise DiskFullError(
            f"The disk has room for {room.free_files:,} more files only. Remove files, and try again."
        )


Counts = dict[ProcessRef, int]

_ENGINE_LINKS = ProcessRef(0, 0)
"""In `Counts`: no process, but what the engine sent. The service stores events, and passes on other things."""


@dataclass
class DiskWatch:
    """Watches the disk of an installation. `stop` ends everything in a replica.

    `sent` counts the bytes that came from each replica's engine.
    """

    home: Home
    stop: Callable[[str], Awaitable[None]]
    sent: Mapping[str, int] = field(default_factory=dict[str, int])
    _free: int = field(default=0, init=False)
    """The free space when programs were counted."""
    _counted: float = field(default=0.0, init=False)
    _counts: dict[str, Counts] | None = field(default=None, init=False)
    _strikes: tuple[str, int] = field(default=("", 0), init=False)

    async def run(self, report: Report) -> None:
        """Look again and again until cancelled."""
        while True:
            near = False
            try:
                room = await self.look(report)
                near = room.critical <= room.free < NEAR * room.reserved
            except (OSError, SandboxError) as e:
                log.warning("The disk of %s cannot be watched: %s", self.home.root, e)
            await asyncio.sleep(SECONDS_NEAR if near else SECONDS)

    async def look(self, report: Report) -> Room:
        """Look once; act when hardly any room is left."""
        room = room_of(self.home)
        if room.free > 2 * room.reserved:
            self._strikes = ("", 0)
            await asyncio.to_thread(self._keep_reserve, room.critical)
        used = self._free - room.free
        near = room.free < NEAR * room.reserved
        fresh = not near or time.monotonic() - self._counted < SECONDS
        same = abs(used) < CHANGED and fresh
        if self._counts is not None and room.free >= room.critical and same:
            return room
        before, since = self._counts, self._free
        now, room = await self._count()
        if room.free >= room.critical or before is None:
            return room
        most = _responsible(before, now, since - room.free)
        if not most:  # one that ended or began meanwhile may not have been counted
            now, room = await self._count()
            most = _responsible(before, now, since - room.free)
        done = await self._act(most, before, now, room)
        if room_of(self.home).free < room.critical:
            self._release_reserve()
        if done is not None:
            await report(*done)
        return room

    async def _count(self) -> tuple[dict[str, Counts], Room]:
        """Count what programs wrote, and then the room: much may be written meanwhile."""
        counts = self._counts = await asyncio.to_thread(_count, self.home)
        for id, size in self.sent.items():
            counts.setdefault(id, {})[_ENGINE_LINKS] = size
        room = room_of(self.home)
        self._free, self._counted = room.free, time.monotonic()
        return counts, room

    async def _act(
        self, most: str, before: dict[str, Counts], now: dict[str, Counts], room: Room
    ) -> tuple[str, str] | None:
        """Kill what fills the disk; return the replica, and what to report.

        `most` is the replica that is responsible, or "".
        """
        if not most:
            if self._strikes[1] != STRIKES - 1 or room.free > room.critical // 2:
                self._strikes = ("", 0)
                return None
            # It used up the reserve, and only writes less because nothing is left.
            most = self._strikes[0]
        strikes = self._strikes[1] + 1 if self._strikes[0] == most else 1
        self._strikes = (most, strikes)
        spared = _spared(places_of(self.home, most))
        written = _difference(now.get(most, {}), before.get(most, {}))
        writing = {ref for ref, size in written.items() if size >= WRITTEN} - spared
        by_events = writing == {_ENGINE_LINKS}
        if strikes == STRIKES or by_events:
            log.warning("Replica %s fills the disk, and is stopped", most)
            await self.stop(most)
            how = "the events that it sent filled it" if by_events else "it went on filling it"
            return most, f"The disk is full. This replica was stopped: {how}."
        writing.discard(_ENGINE_LINKS)
        for ref in writing:
            send(ref, signal.SIGKILL)
        log.warning("Replica %s fills the disk: %d programs were killed", most, len(writing))
        if strikes > 1:
            return None
        done = (
            "The programs of this replica that filled it were killed."
            if writing
            else "Programs of this replica that have ended filled it."
        )
        return most, f"The disk is full. {done} Remove files to make room."

    def _keep_reserve(self, size: int) -> None:
        if size < LEAST_RESERVE or self.home.reserve.exists():
            return
        descriptor = os.open(self.home.reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError:
            self._release_reserve()
            raise
        finally:
            os.close(descriptor)

    def _release_reserve(self) -> None:
        with suppress(FileNotFoundError):
            self.home.reserve.unlink()
            log.warning("The disk is full: the reserve of %s is released", self.home.root)


@dataclass
class FileWatch:
    """Stops the replica that made most files when the disk has room for few more. `stop` ends all in it."""

    home: Home
    stop: Callable[[str], Awaitable[None]]
    _free: int = field(default=0, init=False)
    """How many files could be made when they were counted, or when the disk had room; 0 before that."""
    _counts: dict[str, int] | None = field(default=None, init=False)

    async def run(self, report: Report) -> None:
        """Look again and again until cancelled."""
        failed = False
        while True:
            near = False
            try:
                near = await self.look(report)
                failed = False
            except (OSError, SandboxError) as e:
                if not failed:  # it may fail each time
                    log.warning("The files of %s cannot be counted: %s", self.home.root, e)
                failed = True
            await asyncio.sleep(SECONDS_NEAR if near else SECONDS)

    async def look(self, report: Report) -> bool:
        """Look once; act when few more files can be made. Return whether that is near."""
        room = room_of(self.home)
        if room.free_files >= NEAR_FILES * room.reserved_files:
            self._counts, self._free = None, room.free_files
            return False
        made, few = self._free - room.free_files, room.free_files < room.reserved_files
        if self._counts is not None and not (few and made > room.reserved_files // STEP_FILES):
            return True
        before, since = self._counts, self._free
        now = self._counts = await count_files(self.home)
        room = room_of(self.home)
        self._free = room.free_files
        if room.free_files >= room.reserved_files or not since:
            return True
        # Without an earlier count they were made faster than that: all that a replica has may be new.
        grown = {id: count - (before or {}).get(id, 0) for id, count in now.items()}
        most = max(grown, key=lambda id: grown[id], default="")
        if most and grown[most] >= max(1, (since - self._free) // SHARE):
            log.warning("Stopping replica %s: it has %d files", most, now[most])
            await self.stop(most)
            await report(
                most,
                "The disk is almost out of room for files. This replica was stopped because it created "
                "most of the new ones. Remove files to make room.",
            )
        return True


async def count_files(home: Home) -> dict[str, int]:
    """Return the number of files and directories of each replica.

    Raises:
        OSError: they cannot be counted here, or not in time.
    """
    ids = workspace_ids(home)
    if not ids:
        return {}
    counting = await asyncio.create_subprocess_exec(
        *("nice", "-n", "19", "du", "--inodes", "--summarize", "--one-file-system", "--", *ids),
        cwd=home.workspaces,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # of directories that were removed meanwhile, or are closed
    )
    try:
        async with asyncio.timeout(COUNTING_SECONDS):
            output, _ = await counting.communicate()
    finally:
        if counting.returncode is None:
            counting.kill()
            await counting.wait()
    if not output:
        raise OSError(f"du --inodes counted nothing (exit status {counting.returncode})")
    lines = [line.split("\t") for line in output.decode().splitlines()]
    return {id: int(count) for count, id in lines}


def _responsible(before: dict[str, Counts], now: dict[str, Counts], used: int) -> str:
    """Return the replica that wrote most of what became used, or "" if none wrote its share."""
    # By replica, not by program: one that ends is counted for its parent from then on.
    sums = {
        id: sum(one.values()) - sum(earlier.values()) - _not_stored(one, earlier, used)
        for id, one in now.items()
        for earlier in [before.get(id, {})]
    }
    most = max(sums, key=lambda id: sums[id], default="")
    return most if most and sums[most] >= max(WRITTEN, used // SHARE) else ""


def _not_stored(now: Counts, before: Counts, used: int) -> int:
    """Return how many bytes that an engine sent cannot be on the disk: terminals and pushes are passed on."""
    sent = now.get(_ENGINE_LINKS, 0) - before.get(_ENGINE_LINKS, 0)
    return max(0, sent - max(0, used))


def _difference(now: Counts, before: Counts) -> Counts:
    return {ref: bytes - before.get(ref, 0) for ref, bytes in now.items()}


def _spared(places: Places) -> set[ProcessRef]:
    """Return the processes whose end is the replica's: they have the sum of what ended below them."""
    record = load_record(places.record)
    return {ref for ref in (record.init, record.engine) if ref} if record else set()


def _count(home: Home) -> dict[str, Counts]:
    """Return the bytes that each process of each replica caused to be written to disks."""
    marks = {f"{MARKER}={places_of(home, id).mark}".encode(): id for id in workspace_ids(home)}
    # Also of those that have ended and are not counted for their parents yet.
    stats = {pid: stat for pid in process_ids() if (stat := read_stat(pid))}
    owners: dict[int, str] = {}
    counts: dict[str, Counts] = {}
    for pid, stat in stats.items():
        if owner := _owner(pid, stats, marks, owners):
            counts.setdefault(owner, {})[ProcessRef(pid, stat.started)] = _written_by(pid)
    return counts


def _owner(
    pid: int, stats: dict[int, ProcessStat], marks: dict[bytes, str], owners: dict[int, str]
) -> str:
    """Return the replica of a process: that of the topmost one above with a mark; or "".

    A program may set the mark of another replica, but has the launcher of its own above it.
    """
    below: list[int] = []
    while pid in stats and pid not in owners:
        owners[pid] = ""
        below.append(pid)
        pid = stats[pid].parent
    owner = owners.get(pid, "")
    for one in reversed(below):
        owner = owner or next((marks[mark] for mark in read_environment(one) if mark in marks), "")
        owners[one] = owner
    return owner


def _written_by(pid: int) -> int:
    """Return what a process and its children that have ended wrote to disks."""
    try:
        lines = (PROC / str(pid) / "io").read_text().splitlines()
    except OSError:
        return 0  # it ended
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes")), 0)
