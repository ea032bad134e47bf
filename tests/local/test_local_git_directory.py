"""What git must not read."""

import os
from pathlib import Path

import pytest

from quarterdeck.local.git_directory import unreadable_file


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    (tmp_path / "objects/pack").mkdir(parents=True)
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    return tmp_path


def test_a_bare_repository_is_looked_at(bare: Path) -> None:
    assert unreadable_file(bare) is None
    os.mkfifo(bare / "config")
    assert unreadable_file(bare) == (
        f"{bare}/config is a named pipe, so git is not run there. Remove it, or put the right file in its place, and"
        " try again."
    )


def test_what_git_maps_may_be_of_any_size(bare: Path) -> None:
    for name, refused in (("objects/pack/multi-pack-index", False), ("packed-refs", True)):
        with (bare / name).open("wb") as file:
            file.truncate(2 << 30)
        assert bool(unreadable_file(bare)) is refused


def test_nothing_is_said_of_what_cannot_be_looked_at(tmp_path: Path) -> None:
    """git says it; such as a directory of another user, or a name that the file system refuses."""
    assert unreadable_file(tmp_path / ("x" * 300)) is None
