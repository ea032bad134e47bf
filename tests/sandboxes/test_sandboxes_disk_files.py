"""A disk can be full of files while bytes are free."""

import os
from pathlib import Path

import pytest

from quarterdeck.cli.doctor import check_home
from quarterdeck.cli.findings import Level
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.disk import RESERVED_FILES, require_room
from quarterdeck.sandboxes.git import DiskFullError

GIB = 1 << 30


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
    blocks = (1000 * GIB) // 4096
    told = (4096, 4096, blocks, blocks // 2, blocks // 2, files, free, free, 0, 255)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(told))
    if fits:
        require_room(Home(tmp_path))
    else:
        with pytest.raises(DiskFullError, match=f"room for {free:,} more files only"):
            require_room(Home(tmp_path))
    (finding,) = [one for one in check_home(Home(tmp_path)) if one.name == "disk"]
    assert finding.level == (Level.WARN if warned else Level.OK)
    assert ("more files" in finding.message) is warned
