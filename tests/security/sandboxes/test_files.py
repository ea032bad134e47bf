"""What a program leaves in its replica for the service to remove, pack or adopt."""

import gzip
import os
import stat
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes import layout, processes, trees
from quarterdeck.sandboxes.archive import packing
from quarterdeck.sandboxes.archive.packing import PATH_LIMIT, pack
from quarterdeck.sandboxes.layout import Places, list_files, places_of
from quarterdeck.sandboxes.trees import Entered, open_below, remove_tree, walk

PYTHON = sys.executable
DEPTH = 2_500
DIG = f"""
import os
for top, depth in (("/workspace/pit", {DEPTH}), ("/home/agent/.quarterdeck/canvas/pit", 200)):
    os.makedirs(top)
    os.chdir(top)
    for _ in range(depth):
        os.mkdir("down")
        os.chdir("down")
    with open("bottom", "w") as file:
        file.write("reached")
    os.link("bottom", "again")
    os.symlink("bottom", "link")
    os.chmod(".", 0o500)
"""


def bottom(top: Path) -> dict[str, str]:
    """The files at the bottom of a pit, and its mode."""
    descriptor = os.open(top, os.O_RDONLY)
    deep = open_below(descriptor, "/".join(["down"] * DEPTH))
    try:
        names = os.listdir(deep)  # noqa: PTH208
        read = {name: Path(f"/proc/self/fd/{deep}/{name}").read_text() for name in names}
        return read | {".": oct(stat.S_IMODE(os.fstat(deep).st_mode))}
    finally:
        os.close(deep)
        os.close(descriptor)


@pytest.mark.long
async def test_directories_of_any_depth_are_packed_and_removed(walled):
    workspace = await walled.started()
    places = places_of(walled.home, workspace)
    (places.files / "dig.py").write_text(DIG)
    await walled.said(workspace, f"{PYTHON} dig.py")
    before = bottom(places.files / "pit")
    assert before == {"bottom": "reached", "again": "reached", "link": "reached", ".": "0o500"}
    assert await walled.driver.kept_files(workspace, ".quarterdeck/canvas") == []
    await walled.driver.pack(workspace)
    assert not places.root.exists()
    await walled.driver.unpack(workspace, packed=True)
    assert bottom(places.files / "pit") == before
    await walled.driver.start(workspace)
    assert await walled.said(workspace, "head -c 7 dig.py | wc -c") == "7"
    await walled.driver.destroy(workspace)
    assert [path.name for path in walled.home.workspaces.iterdir()] == []


async def test_a_closed_repository_comes_back_from_its_archive(walled, checkout):
    source = await walled.connect(checkout)
    workspace = await walled.started(source)
    places = places_of(walled.home, workspace)
    await walled.said(workspace, "chmod 000 tools/.git tools/file.txt tools ~/.gitconfig")
    for _ in range(2):
        await walled.said(workspace, "mkdir -p -m 000 ~/shut; chmod 000 ~ /workspace")
        await walled.driver.pack(workspace)
        await walled.driver.unpack(workspace, packed=True)
        directories = (places.files, places.home)
        assert [stat.S_IMODE(path.stat().st_mode) for path in directories] == [0, 0]
        (repository,) = await walled.driver.provision(workspace, [source], "qd/one", print)
        assert repository.name == "tools"
        await walled.driver.write_config(workspace, "{}")
        await walled.driver.start(workspace)
        assert stat.S_IMODE((places.files / "tools").stat().st_mode) == 0
    opened = "chmod 700 tools && chmod -R u+rwX tools"
    assert await walled.said(workspace, f"{opened} && cd tools && git status --short") == ""


def test_the_walk_leaves_modes_as_they_were(tmp_path):
    """Also when it is given up, and without following links."""
    (tmp_path / "tree/shut/inner").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").write_text("mine")
    (tmp_path / "tree/link").symlink_to(tmp_path / "outside")
    (tmp_path / "tree/shut/inner").chmod(0)
    (tmp_path / "tree/shut").chmod(0o100)
    seen = [visit.path for visit in walk(tmp_path / "tree") if isinstance(visit, Entered)]
    assert seen == ["", "shut", "shut/inner"]
    for number in range(1, 4):
        walking = walk(tmp_path / "tree")
        for _ in range(number):
            next(walking)
        walking.close()
        assert stat.S_IMODE((tmp_path / "tree/shut").stat().st_mode) == 0o100
    (tmp_path / "tree/shut").chmod(0o700)
    assert stat.S_IMODE((tmp_path / "tree/shut/inner").stat().st_mode) == 0
    (tmp_path / "tree/shut").chmod(0)
    remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    assert (tmp_path / "outside/kept").read_text() == "mine"


def test_a_directory_that_is_moved_meanwhile_leads_nowhere_else(tmp_path: Path) -> None:
    """What is above it then is not of the tree."""
    (tmp_path / "tree/one/two").mkdir(parents=True)
    (tmp_path / "outside/one").mkdir(parents=True)
    with pytest.raises(OSError, match="moved"):
        for visit in walk(tmp_path / "tree"):
            if isinstance(visit, Entered) and visit.path == "one/two":
                (tmp_path / "tree/one/two").rename(tmp_path / "outside/two")
    assert (tmp_path / "outside/one").is_dir()


def test_a_directory_that_becomes_a_link_is_not_removed_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree/below").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").write_text("mine")
    usual = os.stat

    def look(path: Any, **named: Any) -> os.stat_result:
        found = usual(path, **named)
        if path == "below":
            (tmp_path / "tree/below").rename(tmp_path / "moved")
            (tmp_path / "tree/below").symlink_to(tmp_path / "outside")
        return found

    monkeypatch.setattr(os, "stat", look)
    with pytest.raises(OSError, match="below"):
        remove_tree(tmp_path / "tree")
    assert (tmp_path / "outside/kept").read_text() == "mine"


@pytest.mark.parametrize("user", [0, 1])
def test_a_directory_that_becomes_a_link_leaves_the_mode_of_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    """The service of an ordinary user opens directories that are closed to their owner."""
    (tmp_path / "tree/below").mkdir(parents=True)
    (tmp_path / "tree/below").chmod(0o077)
    (tmp_path / "outside").mkdir(mode=0o700)
    usual = os.stat

    def look(path: Any, **named: Any) -> os.stat_result:
        found = usual(path, **named)
        if path == "below":
            (tmp_path / "tree/below").rename(tmp_path / "moved")
            (tmp_path / "tree/below").symlink_to(tmp_path / "outside")
        return found

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "stat", look)
    with pytest.raises(OSError, match="below"):
        remove_tree(tmp_path / "tree")
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o700


@pytest.mark.parametrize("user", [0, 1])
def test_a_file_that_becomes_a_link_is_not_packed_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    """A command that the service runs in a replica may begin while that is packed."""
    (tmp_path / "tree").mkdir()
    inside, secret = tmp_path / "tree/file", tmp_path / "secret"
    inside.write_text("inside")
    inside.chmod(0o044)
    secret.write_text("secret")
    secret.chmod(0o600)
    usual = packing.describe

    def describe(*arguments: Any) -> tarfile.TarInfo | None:
        member = usual(*arguments)
        inside.unlink()
        inside.symlink_to(secret)
        return member

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(packing, "describe", describe)
    with pytest.raises(OSError, match="changed"):
        pack(tmp_path / "tree", tmp_path / "archive", frozenset())
    assert b"secret" not in gzip.decompress((tmp_path / "archive").read_bytes())
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_directories_with_any_number_of_names_take_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are hard links here, of which a million takes few files."""
    places = Places(tmp_path / "tree", Home(tmp_path))
    canvas = places.home / "canvas"
    for directory in (canvas, canvas / "below"):
        directory.mkdir(parents=True)
        (directory / "first").symlink_to("nowhere")
        for number in range(10_000):
            os.link(directory / "first", directory / f"{number:0100}", follow_symlinks=False)
    monkeypatch.setattr(layout, "_MOST_FILES", 500)
    monkeypatch.setattr(trees, "REMOVED_AT_ONCE", 500, raising=False)
    assert peak(lambda: list_files(places, tmp_path / "none", "canvas")) < 1
    assert peak(lambda: remove_tree(places.root)) < 1
    assert not places.root.exists()


def peak(work: Callable[[], object]) -> int:
    """The megabytes that are in use at the same time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] >> 20
    finally:
        tracemalloc.stop()


def test_an_archive_has_no_path_of_any_length(tmp_path: Path) -> None:
    """Each member names its own in full: without a bound an archive would grow with the square of the depth."""
    top = tmp_path / "tree"
    top.mkdir()
    current = os.open(top, os.O_RDONLY)
    for length in (*[254] * 255, 255, 255, 1):  # 64 KiB, and a directory below
        os.mkdir("d" * length, dir_fd=current)
        below = os.open("d" * length, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = below
    os.close(current)
    with pytest.raises(OSError, match="too long"):
        pack(top, tmp_path / "archive", frozenset())
    for visit in walk(top):
        if isinstance(visit, Entered) and len(visit.path) == PATH_LIMIT:
            os.rmdir("d", dir_fd=visit.descriptor)
            break
    pack(top, tmp_path / "again", frozenset())
    remove_tree(top)


def test_a_process_that_ends_while_it_is_recognized_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its number may by then be another's."""
    with subprocess.Popen(["sleep", "600"]) as process:

        def is_marked(*_: object) -> bool:
            process.kill()
            return process.wait() != 0

        monkeypatch.setattr(processes, "is_marked", is_marked)
        assert processes.find_marked(process.pid, "mark") is None


LISTEN = """
import os, socket, sys
os.chdir(sys.argv[1])
listener = socket.socket(socket.AF_UNIX)
listener.bind("engine.sock")
listener.listen()
print("listening", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def stranger():
    """Start a program of this machine that listens where an engine would.

    So it looks when an engine leaves its socket to another process and ends, and its number is
    given to a program of the machine.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(directory: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [PYTHON, "-c", LISTEN, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout and process.stdout.readline() == b"listening\n"
        return process

    yield start
    for process in started:
        process.communicate()


async def test_a_process_of_the_machine_is_never_taken_for_an_engine(bench, stranger):
    workspace = await bench.provision()
    places = places_of(bench.home, workspace)
    process = stranger(places.run)
    assert not await bench.driver.alive(workspace)
    assert not places.record.exists()
    await bench.driver.stop(workspace)
    await bench.driver.pack(workspace)
    assert process.poll() is None
    await bench.driver.unpack(workspace, packed=True)
    await bench.driver.start(workspace)
    assert await bench.driver.alive(workspace)
    await bench.driver.stop(workspace)
    assert process.poll() is None


async def test_an_engine_that_is_in_no_record_is_found(bench):
    workspace = await bench.started()
    places_of(bench.home, workspace).record.unlink()
    assert await bench.driver.alive(workspace)
    await bench.driver.stop(workspace)
    assert not await bench.driver.alive(workspace)
