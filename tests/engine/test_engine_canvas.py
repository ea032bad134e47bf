"""Uploads are written whole and once, whatever was cut short before."""

import contextlib
import os
from pathlib import Path, PurePosixPath
from uuid import uuid4

import pytest

from quarterdeck.engine.canvas import CanvasDirectory, CanvasStore
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.wire.engine import WriteCanvas
from quarterdeck.wire.files import CANVAS_LEVELS, kind_of, type_of
from tests.support.disks import limited_files

NAME = PurePosixPath("plan.md")


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    return tmp_path / "canvas", tmp_path / "uploads", tmp_path / "canvas.jsonl"


def test_the_same_upload_again_changes_nothing(places: tuple[Path, Path, Path]) -> None:
    root, aside, _ = places
    assert CanvasStore(*places).write("one", NAME, b"1") == "plan.md"
    (root / "plan.md").write_text("edited")
    for _ in range(2):
        assert CanvasStore(*places).write("one", NAME, b"1") == "plan.md"
    assert (root / "plan.md").read_text() == "edited"
    assert CanvasStore(*places).write("two", NAME, b"2") == "plan-2.md"
    assert list(aside.iterdir()) == []


def test_one_that_was_removed_is_not_written_again(places: tuple[Path, Path, Path]) -> None:
    CanvasStore(*places).write("one", NAME, b"1")
    (places[0] / "plan.md").unlink()
    assert CanvasStore(*places).write("one", NAME, b"1") == "plan.md"
    assert list(places[0].iterdir()) == []


def test_cut_short_while_the_copy_was_written(places: tuple[Path, Path, Path]) -> None:
    root, aside, _ = places
    aside.mkdir()
    (aside / "one").write_bytes(b"ha")
    assert CanvasStore(*places).write("one", NAME, b"half") == "plan.md"
    assert (root / "plan.md").read_bytes() == b"half"


def test_cut_short_between_the_name_and_the_note(places: tuple[Path, Path, Path]) -> None:
    root, aside, notes = places
    for directory in (root / "a", aside):
        directory.mkdir(parents=True)
    (aside / "one").write_bytes(b"whole")
    os.link(aside / "one", root / "a" / "plan-2.md")
    notes.write_bytes(b'["other", "x.md"]\n["one", "a/pl')
    assert CanvasStore(*places).write("one", PurePosixPath("a/plan.md"), b"whole") == "a/plan-2.md"
    assert [path.name for path in (root / "a").iterdir()] == ["plan-2.md"]
    assert CanvasStore(*places).write("one", NAME, b"whole") == "a/plan-2.md"


def test_cut_short_between_the_note_and_the_end(places: tuple[Path, Path, Path]) -> None:
    root, aside, _ = places
    CanvasStore(*places).write("one", NAME, b"1")
    os.link(root / "plan.md", aside / "one")
    assert CanvasStore(*places).write("one", NAME, b"1") == "plan.md"
    assert list(aside.iterdir()) == []


def test_a_note_that_the_disk_cuts_short_is_made_again(places: tuple[Path, Path, Path]) -> None:
    root, _, notes = places
    notes.write_bytes(b"\n" * 1_000)
    with limited_files(1_003), pytest.raises(OSError, match="File too large"):
        CanvasStore(*places).write("one", NAME, b"1")
    for _ in range(2):
        assert CanvasStore(*places).write("one", NAME, b"1") == "plan.md"
    assert [path.name for path in root.iterdir()] == ["plan.md"]


def test_a_link_in_the_way_is_not_followed(places: tuple[Path, Path, Path], tmp_path: Path) -> None:
    root, aside, _ = places
    root.mkdir()
    aside.mkdir()
    (root / "plan.md").symlink_to(tmp_path / "elsewhere")
    (aside / "one").symlink_to(tmp_path / "elsewhere")
    assert CanvasStore(*places).write("one", NAME, b"1") == "plan-2.md"
    assert not (tmp_path / "elsewhere").exists()


def test_long_names_keep_their_ending(places: tuple[Path, Path, Path]) -> None:
    name = PurePosixPath("é" * 125 + ".html")
    given = [CanvasStore(*places).write(str(n), name, b"") for n in range(12)]
    assert len(set(given)) == 12
    assert all(len(one.encode()) <= 255 and one.endswith(".html") for one in given)


@pytest.mark.parametrize(
    ("name", "kind", "type"),
    [
        ("a.MD", "markdown", "text/markdown"),
        ("a.htm", "html", "text/html"),
        ("a.svg", "image", "image/svg+xml"),
        ("a.webm", "video", "video/webm"),
        ("a.wav", "audio", "audio/x-wav"),
        ("a.json", "other", "application/json"),
        ("a.tar.gz", "other", "application/octet-stream"),
        ("Makefile", "other", "application/octet-stream"),
        (".md", "other", "application/octet-stream"),
        ("a.md/b", "other", "application/octet-stream"),
    ],
)
def test_kinds(name: str, kind: str, type: str) -> None:
    assert (kind_of(name), type_of(name)) == (kind, type)


async def test_directories_of_any_depth_do_not_hide_the_canvas(tmp_path: Path) -> None:
    canvas = CanvasDirectory(tmp_path, tmp_path)
    root = tmp_path / ".quarterdeck" / "canvas"
    name = "d/" * CANVAS_LEVELS + "x"
    (root / name).parent.mkdir(parents=True)
    (root / name).touch()
    top = os.open(root, os.O_RDONLY)
    for _ in range(1100):
        with contextlib.suppress(FileExistsError):
            os.mkdir("d", dir_fd=top)
        below = os.open("d", os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
    os.close(top)
    try:
        assert [item.filename for item in (await canvas.list()).items] == [name]
        upload = WriteCanvas(upload_id=uuid4(), filename="y", base64="")
        aside = tmp_path / ".quarterdeck" / "uploads"
        aside.mkdir()
        (aside / str(upload.upload_id)).touch()  # cut short before its note was written
        os.link(aside / str(upload.upload_id), root / "y")
        assert (await canvas.put(upload)).filename == "y"
    finally:
        remove_tree(root)
