"""Files of this machine: written wholly or not at all, and never over another by mistake."""

import os
from pathlib import Path

import pytest

from quarterdeck.store.files import (
    FileThereError,
    LocalFileError,
    completed,
    local_path,
    read_local,
    save_local,
)


def test_a_file_is_replaced_only_when_that_was_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    save_local(path, b"one")
    with pytest.raises(FileThereError):
        save_local(path, b"two")
    assert path.read_bytes() == b"one"
    save_local(path, b"two", replace=True)
    assert path.read_bytes() == b"two"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("where", ["missing/a.txt", "."])
def test_what_cannot_be_written_says_why(tmp_path: Path, where: str) -> None:
    with pytest.raises(LocalFileError, match=r"\.$|name in it"):
        save_local(tmp_path / where, b"x")


def test_only_files_are_read_and_no_large_ones(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_local(tmp_path / "a", 5) == b"12345"
    with pytest.raises(LocalFileError, match="Larger"):
        read_local(tmp_path / "a", 4)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "none", "a\0b"):
        with pytest.raises(LocalFileError):
            read_local(tmp_path / name, 5)


def test_a_path_is_completed_as_far_as_it_is_clear(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "plan-a").touch()
    (tmp_path / "docs" / "plan-b").touch()
    (tmp_path / ".hidden").touch()
    assert completed("", tmp_path) == "docs/"
    assert completed("docs/p", tmp_path) == "docs/plan-"
    assert completed("docs/plan-", tmp_path) is None
    assert completed("none/x", tmp_path) is None
    assert completed(f"{tmp_path}/.h", tmp_path) == f"{tmp_path}/.hidden"


def test_a_home_is_told_by_its_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert local_path("~/a ", tmp_path) == Path("/home/me/a")
    assert local_path("a/b", tmp_path) == tmp_path / "a/b"
    with pytest.raises(LocalFileError, match="nobody's home"):
        local_path("~nobody-of-this-name/a", tmp_path)
