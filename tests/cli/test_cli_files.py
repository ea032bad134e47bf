"""The verbs on canvas, files and previews: the real program, service and engine."""

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.replica import files
from quarterdeck.cli.replica.files import _output_file
from tests.support.disks import limited_files


def test_put_ls_and_get(deck: Any, tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text("# Plan\n\033[31mred\n")
    done = deck.qd("replica", "canvas", "put", "probe", str(plan))
    assert (done.code, done.out) == (0, "~/.quarterdeck/canvas/plan.md\n"), done.err
    named = deck.qd("replica", "canvas", "put", "probe", str(plan), "--name", "a/b.md", "--json")
    assert named.json["originalName"] == "a/b.md"
    lines = deck.qd("replica", "canvas", "ls", "probe").out.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "BYTES"]
    assert ["plan.md", "markdown", "16"] in [line.split() for line in lines]
    got = deck.qd("replica", "canvas", "get", "probe", "plan.md")
    assert (got.code, got.out) == (0, "# Plan\nred\n")
    written = tmp_path / "copy.md"
    assert deck.qd("replica", "canvas", "get", "probe", "plan.md", "-o", str(written)).code == 0
    assert written.read_bytes() == plan.read_bytes()
    missing = deck.qd("replica", "canvas", "get", "probe", "nothing")
    assert missing.code == 1 and missing.out == ""


def test_what_is_no_text_goes_to_disk_only(deck: Any, tmp_path: Path) -> None:
    picture, copy = tmp_path / "x.png", tmp_path / "y.png"
    picture.write_bytes(b"\x89PNG\0\xff")
    assert deck.qd("replica", "canvas", "put", "probe", str(picture)).code == 0
    printed = deck.qd("replica", "canvas", "get", "probe", "x.png")
    assert (printed.code, printed.out) == (1, "") and "--output" in printed.err
    assert deck.qd("replica", "canvas", "get", "probe", "x.png", "-o", str(copy)).code == 0
    assert copy.read_bytes() == picture.read_bytes()
    large = tmp_path / "large"
    large.write_bytes(b"x" * ((5 << 20) + 1))
    refused = deck.qd("replica", "canvas", "put", "probe", str(large))
    assert refused.code == 1 and "too large" in refused.err
    assert deck.qd("replica", "canvas", "put", "probe", str(tmp_path / "none")).code == 2


def test_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(FailedError, match="No such file") as missing:
        _output_file("text", None, tmp_path / "no where" / "x")
    assert missing.value.next_step == f"Create its directory: mkdir -p '{tmp_path}/no where'"
    monkeypatch.setattr(files, "write_file", refuse)
    with pytest.raises(FailedError, match="x cannot be written: Permission denied") as refused:
        _output_file("text", None, tmp_path / "x")
    assert refused.value.next_step == (
        f"You cannot create files in {tmp_path}: give another --output."
    )


def test_a_full_disk_keeps_what_the_file_had(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("before")
    kept.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(kept)
    with limited_files(3), pytest.raises(FailedError, match="cannot be written: File too large"):
        _output_file("after", None, link)
    assert kept.read_text() == "before"
    _output_file("after", None, link)
    assert (kept.read_text(), link.is_symlink(), kept.stat().st_mode & 0o777) == (
        "after",
        True,
        0o640,
    )
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    _output_file("after", None, pipe)
    assert os.read(reading, 100) == b"after"
    os.close(reading)
    ends = os.pipe()
    _output_file("after", None, Path(f"/dev/fd/{ends[1]}"))
    assert os.read(ends[0], 100) == b"after"
    for end in ends:
        os.close(end)


@pytest.mark.long
def test_search_and_cat(deck: Any) -> None:
    assert deck.qd("replica", "exec", "probe", "--", "echo new > new.txt").code == 0
    found = deck.qd("replica", "files", "search", "probe", "--refresh")
    assert found.code == 0, found.err
    assert set(found.out.splitlines()) == {"  shop/README", "? shop/new.txt"}
    one = deck.qd("replica", "files", "search", "probe", "readme", "--json").json
    assert [file["path"] for file in one["files"]] == ["README"]
    some = deck.qd("replica", "files", "search", "probe", "--limit", "1")
    assert len(some.out.splitlines()) == 1 and "more" in some.err
    assert deck.qd("replica", "files", "cat", "probe", "shop/README").out == "A shop.\n"
    whole = deck.qd("replica", "files", "cat", "probe", "shop/README", "--json").json
    assert whole == {"content": "A shop.\n", "base64": None, "sizeBytes": 8, "truncated": False}
    assert deck.qd("replica", "files", "cat", "probe", "shop/../x").code == 1
    assert deck.qd("replica", "files", "cat", "probe", "README").code == 2


@pytest.mark.long
def test_an_upload_for_one_that_sleeps(deck: Any, tmp_path: Path) -> None:
    assert deck.qd("replica", "create", "--name", "dozing", "--wait").code == 0
    assert deck.qd("replica", "sleep", "dozing").code == 0
    (tmp_path / "later.md").write_text("later")
    done = deck.qd("replica", "canvas", "put", "dozing", str(tmp_path / "later.md"))
    assert done.code == 0
    assert re.search(r"upload [0-9a-f-]{36}", done.err)
    listed = deck.qd("replica", "canvas", "ls", "dozing")
    assert listed.code == 0 and "later.md" not in listed.out  # it is written at the next start
    assert deck.qd("replica", "files", "search", "dozing").code == 0
    assert deck.qd("replica", "previews", "dozing").out.split() == ["PORT", "ADDRESS"]
    assert deck.qd("replica", "rm", "--yes", "dozing").code == 0
