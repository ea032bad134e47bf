"""Packing a workspace's files away and bringing them back."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes import layout
from quarterdeck.sandboxes.archive.packing import DamagedError, pack, unpack
from quarterdeck.sandboxes.errors import ArchiveError, SandboxError
from quarterdeck.sandboxes.layout import Places, list_files, packed_file, packed_files, places_of
from tests.support.installation import command_of, pids
from tests.support.tools import require
from tests.support.waiting import eventually

PACKER = """
import asyncio, sys
from pathlib import Path
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver

async def main():
    driver = ProcessDriver(Home(Path(sys.argv[1])))
    print("begun", flush=True)
    await getattr(driver, sys.argv[2])(sys.argv[3], *([True] if sys.argv[2] == "unpack" else []))

asyncio.run(main())
"""
PASSING = {"sandbox.json", "status.jsonl", "parts"}
"""What a start makes anew."""


def seen(root: Path) -> dict[str, Any]:
    """Everything below a directory with all that could be changed in it."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/")[0] in PASSING or path.is_socket():
            continue
        kept = path.lstat()
        content: Any = None
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = (path.read_bytes(), kept.st_nlink, os.listxattr(path))
        # A link's time differs where the system cannot set it; every other one is exact.
        found[name] = (kept.st_mode, kept.st_uid, kept.st_gid, kept.st_mtime_ns, content)
    return found


def start(*words: str) -> subprocess.Popen[bytes]:
    """Begins packing or unpacking in a service of its own."""
    process = subprocess.Popen([sys.executable, "-c", PACKER, *words], stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"begun\n"
    return process


def succeeds(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def is_packing(pid: int, workspace: str) -> bool:
    command = command_of(pid)
    return "sandboxes.archive " in command and workspace in command


def small_disk(place: Path, size: str) -> None:
    require("mount")
    if os.geteuid() != 0 or not succeeds(
        "mount", "-t", "tmpfs", "-o", f"size={size}", "quarterdeck", str(place)
    ):
        pytest.skip("only root may mount a small disk")


def fill(files: Path) -> None:
    """All kinds of files there are."""
    (files / "plain").write_text("hello\n")
    os.link(files / "plain", files / "hard")
    (files / "soft").symlink_to("/nowhere/at all")
    os.mkfifo(files / "pipe")
    (files / "run").write_text("#!/bin/sh\n")
    (files / "run").chmod(0o4755)
    (files / "closed").mkdir()
    (files / "closed" / "in").write_text("x")
    (files / "closed").chmod(0o500)
    (files / "empty").mkdir(mode=0o711)
    (files / ("long" * 60)).write_text("a long name")
    Path(os.fsdecode(os.fsencode(files) + b"/\xff\xfe\n")).write_text("no text at all")
    os.utime(files / "plain", ns=(1, 1_234_567_890_123_456_789))
    os.utime(files / "run", ns=(1, -7))
    for name in ("plain", "run", "empty"):
        os.chown(files / name, 12345, 54321) if os.geteuid() == 0 else None
    (files / "run").chmod(0o4755)
    with (files / "holes").open("wb") as file:
        file.seek(1 << 30)
        file.write(b"data")
        file.truncate(1 << 31)


async def test_files_come_back_exactly(bench, tmp_path):
    workspace = await bench.started()
    await bench.driver.stop(workspace)
    places = places_of(bench.home, workspace)
    fill(places.files)
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(places.files):
        listener.bind("socket")  # its whole path would be too long
    holes = (places.files / "holes").stat()
    (places.files / "holes").rename(tmp_path / "holes")
    before = seen(places.root)
    (tmp_path / "holes").rename(places.files / "holes")

    await bench.driver.pack(workspace)
    assert not places.root.exists()
    archive = bench.home.archives / f"{workspace}.tar.gz"
    assert archive.stat().st_mode & 0o777 == 0o600
    assert archive.stat().st_size < 1 << 20
    assert [path.name for path in bench.home.archives.iterdir()] == [archive.name]

    await bench.driver.unpack(workspace, True)
    assert not archive.exists()
    back = (places.files / "holes").stat()
    assert (back.st_size, back.st_mtime_ns) == (holes.st_size, holes.st_mtime_ns)
    assert back.st_blocks * 512 < 1 << 20
    with (places.files / "holes").open("rb") as file:
        file.seek(1 << 30)
        assert file.read(5) == b"data\0"
    (places.files / "holes").unlink()
    after = seen(places.root)
    before["files"] = after["files"]  # its time has just been changed by the unlink
    assert after == before


@pytest.mark.long
async def test_borrowed_git_objects_are_found_again(bench, checkout):
    source = await bench.connect(checkout)
    workspace = await bench.started(source)
    await bench.said(workspace, "cd tools && echo new >> file.txt && git commit -qam mine")
    said = await bench.said(workspace, "cd tools && git log --format=%s && git status --short")
    await bench.driver.stop(workspace)
    await bench.driver.pack(workspace)
    await bench.driver.unpack(workspace, True)
    await bench.provision(source, workspace_id=workspace)
    await bench.driver.start(workspace)
    again = await bench.said(workspace, "cd tools && git log --format=%s && git status --short")
    assert again == said
    assert again.splitlines()[0] == "mine"
    assert (
        await bench.said(workspace, "cd tools && git fsck --full 2>&1 | grep -c missing; true")
        == "0"
    )


async def test_packing_twice_and_unpacking_twice(bench):
    workspace = await bench.provision()
    await bench.driver.pack(workspace)
    await bench.driver.pack(workspace)
    await bench.driver.unpack(workspace, True)
    await bench.driver.unpack(workspace, True)
    assert places_of(bench.home, workspace).files.is_dir()
    with pytest.raises(SandboxError, match="no files"):
        await bench.driver.pack("11111111-2222-3333-4444-555555555555")


async def test_a_missing_archive(bench):
    workspace = await bench.provision()
    (places_of(bench.home, workspace).files / "kept").write_text("kept")
    await bench.driver.pack(workspace)
    archive = bench.home.archives / f"{workspace}.tar.gz"
    archive.rename(bench.home.root / "elsewhere")
    with pytest.raises(ArchiveError, match="missing") as caught:
        await bench.driver.unpack(workspace, True)
    assert str(archive) in caught.value.details
    await bench.driver.unpack(workspace, False)  # never packed: nothing to bring back
    assert not places_of(bench.home, workspace).root.exists()
    (bench.home.root / "elsewhere").rename(archive)
    await bench.driver.unpack(workspace, True)
    assert (places_of(bench.home, workspace).files / "kept").read_text() == "kept"


@pytest.mark.long
@pytest.mark.parametrize("harm", ["cut", "half", "flip", "last", "text", "empty"])
async def test_a_damaged_archive(bench, harm):
    workspace = await bench.provision()
    places = places_of(bench.home, workspace)
    (places.files / "kept").write_bytes(os.urandom(300_000))
    await bench.driver.pack(workspace)
    archive = bench.home.archives / f"{workspace}.tar.gz"
    whole = archive.read_bytes()
    middle = len(whole) // 2
    archive.write_bytes(
        {
            "cut": whole[:-1],
            "half": whole[:middle],
            "flip": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "last": whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:],
            "text": b"this is no archive\n",
            "empty": b"",
        }[harm]
    )
    with pytest.raises(ArchiveError, match="damaged"):
        await bench.driver.unpack(workspace, True)
    assert not places.root.exists()
    assert not list(bench.home.workspaces.glob(".unpacking*"))
    assert archive.exists()
    archive.write_bytes(whole)
    await bench.driver.unpack(workspace, True)
    assert (places.files / "kept").stat().st_size == 300_000


async def test_a_workspace_that_is_destroyed_leaves_no_archive(bench):
    workspace = await bench.provision()
    await bench.driver.pack(workspace)
    await bench.driver.destroy(workspace)
    assert list(bench.home.archives.iterdir()) == []
    assert list(bench.home.workspaces.iterdir()) == []


@pytest.mark.long
async def test_packing_that_is_cancelled(bench):
    workspace = await bench.provision()
    places = places_of(bench.home, workspace)
    (places.files / "big").write_bytes(os.urandom(30_000_000))
    before = seen(places.root)
    packing = asyncio.create_task(bench.driver.pack(workspace))
    part = bench.home.archives / f"{workspace}.part"
    await eventually(part.exists)
    packing.cancel()
    await asyncio.gather(packing, return_exceptions=True)
    assert not part.exists()
    assert seen(places.root) == before


TURNS = 6


@pytest.mark.long
@pytest.mark.parametrize("step", ["pack", "unpack"])
async def test_killed_anywhere(bench, step):
    """Wherever it is killed, the files are there or in the archive, and it can be done again."""
    workspace = await bench.provision()
    places = places_of(bench.home, workspace)
    for number in range(200):
        (places.files / f"file {number}").write_bytes(os.urandom(20_000))
    before = seen(places.root)
    ended = 0
    for turn in range(TURNS):
        if step == "unpack":
            await bench.driver.pack(workspace)
        with start(str(bench.home.root), step, workspace) as process:
            try:
                process.wait(0.05 + 0.08 * turn)
            except subprocess.TimeoutExpired:
                process.kill()
            ended += process.wait() == 0
        assert places.root.exists() or (bench.home.archives / f"{workspace}.tar.gz").exists()
        await bench.driver.tidy(())
        left = [path.name for path in bench.home.workspaces.glob(".*")]
        assert left == [], left
        assert not list(bench.home.archives.glob("*.part"))
        await bench.driver.unpack(workspace, True)
        after = seen(places.root)
        assert after == before
    assert ended < TURNS


@pytest.mark.long
async def test_the_packing_program_ends_with_the_service(bench):
    workspace = await bench.provision()
    places = places_of(bench.home, workspace)
    (places.files / "big").write_bytes(os.urandom(100_000_000))
    part = bench.home.archives / f"{workspace}.part"
    with start(str(bench.home.root), "pack", workspace) as process:
        await eventually(part.exists)
        process.kill()
    await eventually(lambda: not any(is_packing(pid, workspace) for pid in pids()))
    assert (places.files / "big").exists()


@pytest.mark.long
async def test_no_room_for_the_archive(bench):
    workspace = await bench.provision()
    places = places_of(bench.home, workspace)
    (places.files / "big").write_bytes(os.urandom(4_000_000))
    before = seen(places.root)
    bench.home.archives.mkdir()
    small_disk(bench.home.archives, "1m")
    try:
        with pytest.raises(SandboxError, match="disk is full"):
            await bench.driver.pack(workspace)
        assert seen(places.root) == before
        assert list(bench.home.archives.iterdir()) == []
    finally:
        assert succeeds("umount", str(bench.home.archives))
    await bench.driver.pack(workspace)
    assert not places.root.exists()


@pytest.mark.long
async def test_no_room_for_the_files(bench):
    workspace = await bench.provision()
    places = places_of(bench.home, workspace)
    (places.files / "big").write_bytes(bytes(8_000_000))
    await bench.driver.pack(workspace)
    small_disk(bench.home.workspaces, "2m")
    try:
        with pytest.raises(SandboxError, match="disk is full"):
            await bench.driver.unpack(workspace, True)
        assert list(bench.home.workspaces.iterdir()) == []
    finally:
        assert succeeds("umount", str(bench.home.workspaces))
    await bench.driver.unpack(workspace, True)
    assert (places.files / "big").stat().st_size == 8_000_000


@pytest.mark.parametrize("name", [b"user.a=b", b"user.=", b"user.\xff\xfe", "user.é %41".encode()])
async def test_attributes_of_any_name_are_kept(tmp_path: Path, name: bytes) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("x")
    os.setxattr(tree / "file", name, b"value")
    pack(tree, tmp_path / "archive", frozenset())
    unpack(tmp_path / "archive", tmp_path / "new")
    assert os.listxattr(tmp_path / "new" / "file") == [os.fsdecode(name)]
    assert os.getxattr(tmp_path / "new" / "file", name) == b"value"


@pytest.mark.parametrize("kind", ["file", "directory", "link", "hard link"])
@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "in/..", "../file", "/file", "out/file", "in/out/file", "no/file", "in//x"],
)
def test_nothing_is_unpacked_beside_the_tree(tmp_path: Path, name: str, kind: str) -> None:
    """Not even by a link that the archive makes before."""
    outside = tmp_path / "outside"
    outside.mkdir()
    made = [("in", tarfile.DIRTYPE, ""), ("first", tarfile.REGTYPE, "")]
    made += [("out", tarfile.SYMTYPE, str(outside)), ("in/out", tarfile.SYMTYPE, str(outside))]
    if kind == "hard link":
        made.append(("second", tarfile.LNKTYPE, name))
    else:
        types = {"file": tarfile.REGTYPE, "directory": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}
        made.append((name, types[kind], "target"))
    archive = tmp_path / "archive"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as writer:
        for member, type, target in made:
            info = tarfile.TarInfo(member)
            info.type, info.linkname, info.mode = type, target, 0o755
            info.uid, info.gid = os.geteuid(), os.getegid()
            info.pax_headers = {"mtime": "1.0"}
            writer.addfile(info)
    with pytest.raises(DamagedError, match="strange place"):
        unpack(archive, tmp_path / "new")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, b"?"])
def test_nothing_but_files_directories_links_and_pipes_is_unpacked(
    tmp_path: Path, kind: bytes
) -> None:
    archive = tmp_path / "archive"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as writer:
        info = tarfile.TarInfo("device")
        info.type, info.devmajor, info.devminor = kind, 1, 3
        info.pax_headers = {"mtime": "1.0"}
        writer.addfile(info)
    with pytest.raises(DamagedError, match="not a file"):
        unpack(archive, tmp_path / "new")


def test_an_archive_of_many_files_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    canvas = tree / "home" / "canvas"
    canvas.mkdir(parents=True)
    for number in range(3_000):
        (canvas / str(number)).touch()
    archive = tmp_path / "archive"

    def peak(work: Callable[[], object]) -> int:
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1] >> 20
        finally:
            tracemalloc.stop()

    pack(tree, archive, frozenset())  # the library's modules are loaded
    archive.unlink()
    assert peak(lambda: pack(tree, archive, frozenset())) < 3
    assert peak(lambda: packed_file(archive, "home/canvas/2999", 1)) < 2
    assert peak(lambda: unpack(archive, tmp_path / "new")) < 2
    monkeypatch.setattr(layout, "_MOST_FILES", 10)
    assert len(list(packed_files(archive, "home/canvas/"))) == 10
    assert len(list_files(Places(tree, Home(tmp_path)), archive, "canvas")) == 10
