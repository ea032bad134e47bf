"""A replica that fills the disk is stopped; the service and the other replicas go on.

On a small disk of ext4, because the kernel counts what is written to disks, and not to memory.
"""

import asyncio
import errno
import json
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes import disk
from quarterdeck.sandboxes.disk import DiskWatch, room_of
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.sandboxes.processes import MARKER
from tests.sandboxes.conftest import ENGINE, Bench
from tests.support.disks import small_disk
from tests.support.waiting import eventually

MEGABYTES = 400


class Reports:
    """What the service is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self._changed = asyncio.Event()

    async def hear(self, workspace_id: str, message: str) -> None:
        self.heard.append((workspace_id, message))
        self._changed.set()

    async def next(self) -> tuple[str, str]:
        while not self.heard:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), 60)
        return self.heard.pop(0)


@pytest.fixture
async def bench(tmp_path: Path, require_tool: Callable[[str], str]) -> AsyncGenerator[Bench]:
    require_tool("bwrap")
    home = Home(tmp_path / "home")
    home.root.mkdir()
    with small_disk(home.root, MEGABYTES, require_tool):
        home.service.mkdir()
        bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0))
        assert (await bench.driver.isolation()).mode == "bubblewrap"
        yield bench
        await bench.close()


async def lit(bench: Bench, workspace: str, script: str) -> None:
    """Run a script in the background of a sandbox, after the first look at the disk."""
    await eventually((bench.home.service / "reserve").exists, "the first look")
    (places_of(bench.home, workspace).files / "script").write_text(script)
    await bench.said(workspace, "setsid sh script >/dev/null 2>&1 </dev/null & echo lit")


KILLED = "The programs of this replica that filled it were killed."
ENDED = "Programs of this replica that have ended filled it."


def fill(path: Path) -> None:
    """Fill the disk from outside of replicas."""
    with path.open("wb") as file:
        try:
            while True:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), 4 << 20)
        except OSError as e:
            assert e.errno == errno.ENOSPC


FILLERS = {
    "one file": ("cat /dev/zero > much", {KILLED, ENDED}),
    "a removed file": (
        "exec > much; rm much; while head -c 1M /dev/zero; do :; done; exec tail -f /dev/null",
        {KILLED},
    ),
    "many files": (
        "n=0; while n=$((n + 1)); do head -c 1M /dev/zero > much.$n; done",
        {KILLED},
    ),
}


@pytest.mark.parametrize(("script", "expected"), FILLERS.values(), ids=FILLERS)
async def test_programs_that_fill_the_disk_are_killed(
    bench: Bench, script: str, expected: set[str]
):
    victim, other = await bench.started(), await bench.started()
    reports = Reports()
    async with bench.driver.watching_disk(reports.hear):
        await lit(bench, victim, script)
        reported = await reports.next()
        assert reported in {
            (victim, f"The disk is full. {done} Remove files to make room.") for done in expected
        }
        assert await bench.said(other, "head -c 1M /dev/zero > more; sync more; echo ok") == "ok"
        (bench.home.service / "stored").write_bytes(bytes(1 << 20))
        ended = "while pgrep -x 'head|cat|tail' || pgrep -f '[s]h script'; do sleep 0.1; done"
        await bench.said(victim, f"{ended} >/dev/null; rm -f much*")
        room = room_of(bench.home)
        await eventually(lambda: room_of(bench.home).free > 3 * room.reserved, "room")
        await eventually((bench.home.service / "reserve").exists, "a new reserve")
    assert not reports.heard


async def test_every_fill_is_reported_and_counted_by_itself(bench: Bench):
    victim = await bench.started()
    reports = Reports()
    reserve = bench.home.service / "reserve"
    async with bench.driver.watching_disk(reports.hear):
        for number in range(disk.STRIKES):
            await lit(bench, victim, "head -c 10G /dev/zero > much")
            assert "Remove files to make room" in (await reports.next())[1], number
            await eventually(lambda: not reserve.exists(), "the release of the reserve")
            await bench.said(victim, "while pgrep -x head; do sleep 0.1; done >/dev/null; rm much")
            await eventually(reserve.exists, "a new reserve")
    assert await bench.driver.alive(victim)


@pytest.mark.long
async def test_a_program_with_the_mark_of_another_replica_is_known(bench: Bench):
    victim, other = await bench.started(), await bench.started()
    reports = Reports()
    mark = places_of(bench.home, other).mark
    async with bench.driver.watching_disk(reports.hear):
        await lit(bench, victim, f"{MARKER}={mark} sh -c 'head -c 10G /dev/zero > much; sleep 60'")
        assert (await reports.next())[0] == victim


@pytest.mark.long
async def test_a_replica_that_goes_on_is_stopped(bench: Bench):
    victim, other = await bench.started(), await bench.started()
    reports = Reports()
    # No program that is killed knows of the others: each is a child of init.
    first = "(head -c 10G /dev/zero > much &)"
    script = f"{first}; while :; do (head -c 8M /dev/zero >> part &); sleep 0.2; done"
    async with bench.driver.watching_disk(reports.hear):
        await lit(bench, victim, script)
        told = [await reports.next(), await reports.next()]
        assert [id for id, _ in told] == [victim, victim]
        assert "went on filling it" in told[1][1]
        assert not await bench.driver.alive(victim)
        assert await bench.said(other, "echo more > more; echo ok") == "ok"
        with pytest.raises(disk.DiskFullError, match="almost full"):
            await bench.driver.start(victim)


async def test_a_replica_whose_events_fill_the_disk_is_stopped(bench: Bench):
    """It writes nothing itself: the service stores what the engine, or what took its place, sends."""
    victim, other = await bench.started(), await bench.started()
    reports = Reports()
    async with bench.driver.watching_disk(reports.hear):
        await eventually((bench.home.service / "reserve").exists, "the first look")
        with (bench.home.service / "stored").open("wb", buffering=0) as stored:
            while await bench.driver.alive(victim):
                reader, writer = await bench.driver.connect(victim)
                writer.write(json.dumps("head -c 8M /dev/zero | tr '\\0' x").encode() + b"\n")
                with suppress(ConnectionError):  # stopped meanwhile
                    while data := await reader.read(1 << 18):
                        with suppress(OSError):  # full, until the reserve is released
                            stored.write(data)
                writer.close()
        told = "The disk is full. This replica was stopped: the events that it sent filled it."
        assert await reports.next() == (victim, told)
        assert room_of(bench.home).free
        assert await bench.driver.alive(other)


async def test_what_an_engine_sends_counts_as_far_as_it_can_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Output of terminals, and the packs of pushes, are passed on. Here others have filled the disk."""
    stopped, sent = list[str](), Counter[str]()
    room = disk.Room(16 << 20, 16 << 20, 0, 0)
    monkeypatch.setattr(disk, "room_of", lambda _: room)
    monkeypatch.setattr(disk, "CHANGED", 0)

    async def stop(id: str) -> None:
        stopped.append(id)

    watch, reports = DiskWatch(Home(tmp_path), stop, sent), Reports()
    Home(tmp_path).workspaces.mkdir()
    await watch.look(reports.hear)
    for free in (1 << 20, 1 << 20, 1 << 20, 1 << 20):
        room = replace(room, free=free)
        sent["replica"] += 2 << 20
        await watch.look(reports.hear)
    assert not stopped


async def test_directories_that_are_no_replicas_do_not_matter(bench: Bench):
    """Such as those of a file system, and copies that a person made."""
    victim = await bench.started()
    others = [bench.home.workspaces / name for name in ("lost+found", f"{victim}.old")]
    for other in others:
        other.mkdir()
    assert (await disk.count_files(bench.home)).keys() == {victim}
    reports = Reports()
    async with bench.driver.watching_disk(reports.hear):
        await lit(bench, victim, "cat /dev/zero > much")
        assert (await reports.next())[0] == victim
    await bench.driver.tidy([])
    for other in others:
        other.rmdir()


async def test_others_that_write_a_little_are_left_alone(bench: Bench):
    """The disk is filled from outside, while a replica writes."""
    writing = await bench.started()
    reports = Reports()
    watch = DiskWatch(bench.home, bench.driver.stop)
    await watch.look(reports.hear)
    await lit(bench, writing, "while :; do head -c 2M /dev/zero > part; sync part; done")
    fill(bench.home.root / "filler")
    await watch.look(reports.hear)
    assert not reports.heard
    assert await bench.said(writing, "pgrep -f script >/dev/null; echo $?") == "0"
    assert not (bench.home.service / "reserve").exists()


async def test_what_a_program_wrote_long_ago_is_not_blamed_on_its_parent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(disk, "SECONDS", 0.0)
    quiet = await bench.started()
    reports = Reports()
    watch = DiskWatch(bench.home, bench.driver.stop)
    await watch.look(reports.hear)
    wrote = "(head -c 150M /dev/zero > part; sync part; rm part; touch wrote; cat go)"
    await lit(bench, quiet, f"mkfifo go; {wrote} > /dev/null & wait; touch over; sleep 600")
    files = places_of(bench.home, quiet).files
    await eventually((files / "wrote").exists, "what it writes")
    await watch.look(reports.hear)
    await bench.said(quiet, "echo > go")
    await eventually((files / "over").exists, "the end of the program")
    fill(bench.home.root / "filler")
    await watch.look(reports.hear)
    assert not reports.heard
    assert await bench.said(quiet, "pgrep -f script >/dev/null; echo $?") == "0"
