"""A disk can be full of files while bytes are free."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.cli.doctor import check_home
from quarterdeck.cli.findings import Level
from quarterdeck.local.home import Home
from quarterdeck.sandboxes import disk
from quarterdeck.sandboxes.disk import (
    RESERVED_FILES,
    FileWatch,
    count_files,
    require_room,
    room_of,
)
from quarterdeck.sandboxes.errors import DiskFullError
from tests.support.disks import small_disk
from tests.support.waiting import eventually

GIB = 1 << 30


def tell_files(monkeypatch: pytest.MonkeyPatch, files: int, free: int) -> None:
    """Let every disk have room for so many files, of which so many are free, and for many bytes."""
    blocks = (1000 * GIB) // 4096
    told = (4096, 4096, blocks, blocks // 2, blocks // 2, files, free, free, 0, 255)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(told))


@pytest.mark.parametrize(
    ("files", "free", "fits", "warned"),
    [
        (100_000_000, 1_000_000, True, False),
        (100_000_000, 100_000, True, True),
        (100_000_000, RESERVED_FILES - 1, False, True),
        (1_000_000, 50_000, True, False),
        (1_000_000, 30_000, True, True),
        (1_000_000, 10_000, False, True),
        (1_000_000, 0, False, True),
        (0, 0, True, False),  # btrfs has no limit
    ],
)
def test_files_that_fit_are_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: int,
    free: int,
    fits: bool,
    warned: bool,
) -> None:
    tell_files(monkeypatch, files, free)
    if fits:
        require_room(Home(tmp_path))
    else:
        with pytest.raises(DiskFullError, match=f"room for {free:,} more files only"):
            require_room(Home(tmp_path))
    (finding,) = [one for one in check_home(Home(tmp_path)) if one.name == "disk"]
    assert finding.level == (Level.WARN if warned else Level.OK)
    assert ("more files" in finding.message) is warned


class Replicas:
    """Directories of replicas on a small disk, and which of them were stopped."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.stopped: list[str] = []
        self.said: list[tuple[str, str]] = []
        self.watch = FileWatch(self.home, self._stop)
        for id in ("a", "b"):
            (self.home.workspaces / id).mkdir(parents=True)

    async def _stop(self, id: str) -> None:
        self.stopped.append(id)

    async def look(self) -> bool:
        async def report(id: str, sentence: str) -> None:
            self.said.append((id, sentence))

        return await self.watch.look(report)

    def make(self, id: str, count: int) -> None:
        place = self.home.workspaces / id / str(len(list((self.home.workspaces / id).iterdir())))
        place.mkdir()
        for number in range(count - 1):
            (place / f"{number}\n1\tb").touch()

    def leave(self, id: str, free: int) -> None:
        """Make files until so many more can be made."""
        self.make(id, room_of(self.home).free_files - free)


@pytest.fixture
def replicas(tmp_path: Path, require_tool: Callable[[str], str]) -> Iterator[Replicas]:
    point = tmp_path / "disk"
    point.mkdir()
    with small_disk(point, 64, require_tool):
        yield Replicas(point)


async def test_the_replica_that_makes_most_files_is_stopped(replicas: Replicas) -> None:
    reserved = room_of(replicas.home).reserved_files
    assert not await replicas.look()
    replicas.leave("a", 3 * reserved)  # it has most, and made them earlier
    assert await replicas.look()
    replicas.leave("b", reserved + 10)
    assert await replicas.look()
    assert not replicas.stopped
    replicas.leave("b", reserved // 2)
    assert await replicas.look()
    assert replicas.stopped == ["b"]
    assert replicas.said[0][0] == "b" and "created most" in replicas.said[0][1]
    for _ in range(3):  # it is not counted again while nothing changes
        await replicas.look()
    assert replicas.stopped == ["b"]
    shutil.rmtree(replicas.home.workspaces / "a")
    assert not await replicas.look()


async def test_one_that_makes_all_files_between_two_looks_is_stopped(replicas: Replicas) -> None:
    await replicas.look()
    replicas.make("a", 100)
    replicas.leave("b", 0)
    await replicas.look()
    assert replicas.stopped == ["b"]


async def test_nobody_is_stopped_for_files_of_others(replicas: Replicas) -> None:
    reserved = room_of(replicas.home).reserved_files
    await replicas.look()
    replicas.make("a", 100)
    other = replicas.home.root / "other"
    other.mkdir()
    for number in range(room_of(replicas.home).free_files - reserved // 2):
        (other / str(number)).touch()
    await replicas.look()
    # A service that starts on a full disk does not know who made the files.
    replicas.watch = FileWatch(replicas.home, replicas._stop)
    await replicas.look()
    assert not replicas.stopped


async def test_a_du_that_cannot_count_files_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home, calls = Home(tmp_path / "home"), tmp_path / "calls"
    (home.workspaces / "a").mkdir(parents=True)
    program = tmp_path / "du"  # such as busybox's
    program.write_text(f"#!/bin/sh\necho >>{calls}\necho 'unrecognized option' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(OSError, match="du --inodes"):
        await count_files(home)
    tell_files(monkeypatch, 1_000_000, 30_000)
    monkeypatch.setattr(disk, "SECONDS", 0)

    async def nothing(*_: str) -> None: ...

    watching = asyncio.create_task(FileWatch(home, nothing).run(nothing))
    await eventually(lambda: len(calls.read_text()) > 3)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    warnings = [record.message for record in caplog.records if record.name == disk.__name__]
    assert warnings == [
        f"The files of {home.root} cannot be counted: du --inodes counted nothing (exit status 1)"
    ]
