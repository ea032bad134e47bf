"""Copying a replica's files for a fork, while programs inside may change them."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.sandboxes.archive import copying
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.layout import places_of
from tests.sandboxes.test_sandboxes_archives import fill, seen


async def test_files_are_copied_exactly(bench):
    source, fork = await bench.provision(), await bench.provision()
    files, copied = (places_of(bench.home, one).files for one in (source, fork))
    copied.rmdir()
    fill(files)
    (files / "holes").rename(files.parent / "holes")  # reading all of it takes seconds
    before = seen(files)
    (files.parent / "holes").rename(files / "holes")

    assert await bench.driver.copy_files(source, fork)
    holes = (copied / "holes").stat()
    assert (holes.st_size, holes.st_mtime_ns) == (1 << 31, (files / "holes").stat().st_mtime_ns)
    assert holes.st_blocks * 512 < 1 << 20
    with (copied / "holes").open("rb") as file:
        file.seek(1 << 30)
        assert file.read(5) == b"data\0"
    (copied / "holes").unlink()
    assert seen(copied) == before
    assert (copied / "hard").samefile(copied / "plain")
    assert not (copied / "hard").samefile(files / "hard")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A tree to copy, and beside it a directory that is not for it."""
    (tmp_path / "tree/below").mkdir(parents=True)
    (tmp_path / "tree/below/own").write_text("own")
    (tmp_path / "tree/file").write_text("own")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/key").write_text("secret")
    return tmp_path


def change_after_look(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[], None]):
    """Let a program change something between the look at a name and what follows from it."""
    real: Any = os.stat

    def look(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        status = real(path, *arguments, **options)
        if path == name:
            monkeypatch.setattr(os, "stat", real)
            change()
        return status

    monkeypatch.setattr(os, "stat", look)


def replace(path: Path, target: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(target)


def test_a_directory_that_becomes_a_link_is_not_followed(place, monkeypatch):
    below = place / "tree/below"
    change_after_look(monkeypatch, "below", lambda: replace(below, place / "outside"))
    copying.copy(place / "tree", place / "copy")
    assert below.is_symlink()
    assert [path.name for path in (place / "copy").rglob("*")] == ["file"]


def test_a_file_that_becomes_a_link_is_not_followed(place, monkeypatch):
    file = place / "tree/file"
    change_after_look(monkeypatch, "file", lambda: replace(file, place / "outside/key"))
    copying.copy(place / "tree", place / "copy")
    assert file.is_symlink()
    assert sorted(path.name for path in (place / "copy").rglob("*")) == ["below", "own"]


def test_a_file_that_becomes_a_pipe_is_not_waited_for(place, monkeypatch):
    file = place / "tree/file"

    def pipe() -> None:
        file.unlink()
        os.mkfifo(file)

    change_after_look(monkeypatch, "file", pipe)
    copying.copy(place / "tree", place / "copy")
    assert not (place / "copy/file").exists()


@pytest.mark.parametrize("name", ["below", "file"])
def test_what_is_removed_meanwhile_is_left_out(place, monkeypatch, name):
    change_after_look(
        monkeypatch, name, lambda: (place / "tree" / name).rename(place / "elsewhere")
    )
    copying.copy(place / "tree", place / "copy")
    assert not (place / "copy" / name).exists()
    assert len(list((place / "copy").iterdir())) == 1


def test_a_directory_that_is_moved_meanwhile_is_copied_from_where_it_is(place, monkeypatch):
    (place / "outside/below").mkdir()
    (place / "outside/below/later").write_text("secret")

    def move() -> None:
        (place / "tree/below").rename(place / "elsewhere")
        (place / "tree/below").symlink_to(place / "outside/below")

    change_after_look(monkeypatch, "own", move)
    copying.copy(place / "tree", place / "copy")
    assert (place / "copy/below/own").read_text() == "own"
    assert not (place / "copy/below/later").exists()


async def test_what_lies_too_deep_is_refused(bench):
    source, fork = await bench.provision(), await bench.provision()
    files, copied = (places_of(bench.home, one).files for one in (source, fork))
    copied.rmdir()
    current = os.open(files, os.O_RDONLY)
    for _ in range(copying.DEEPEST + 1):
        os.mkdir("d", dir_fd=current)
        below = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = below
    os.close(current)
    with pytest.raises(SandboxError, match=os.strerror(errno.ENAMETOOLONG)) as refused:
        await bench.driver.copy_files(source, fork)
    assert str(refused.value.details).count(os.strerror(errno.ENAMETOOLONG)) == 1
    assert not copied.exists()
    assert list(places_of(bench.home, fork).parts.iterdir()) == []
