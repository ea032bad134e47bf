"""Files that are replaced in one step."""

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.cli.config_file import write_config
from quarterdeck.cli.target import store_key
from quarterdeck.local.files import write_file
from quarterdeck.service.vault import write_key_file
from quarterdeck.store.disk import ClientDisk
from tests.support.disks import limited_files

Writer = Callable[[Path, str], None]

CHAT = UUID(int=1)


def _draft(path: Path, text: str) -> None:
    ClientDisk(path.parent).save_draft(CHAT, text)


writers = pytest.mark.parametrize(
    "write", [write_file, write_config, store_key, write_key_file, _draft]
)


@writers
def test_several_may_write_one_file_at_once(write: Writer, tmp_path: Path) -> None:
    texts = [character * 5_000 for character in "abcd"]

    def often(text: str) -> None:
        for _ in range(50):
            write(tmp_path / "file", text)

    with ThreadPoolExecutor() as pool:
        list(pool.map(often, texts))
    (path,) = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert path.read_text().strip() in texts


@writers
def test_a_full_disk_keeps_the_previous_version_and_nothing_else(
    write: Writer, tmp_path: Path
) -> None:
    write(tmp_path / "file", "before")
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    with limited_files(1_000), pytest.raises(Exception, match="File too large"):
        write(tmp_path / "file", "after" * 1_000)
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == files
    assert files[0].read_text().strip() == "before"


@pytest.mark.parametrize(("mode", "result"), [(0o600, 0o600), (0o666, 0o666), (None, 0o640)])
def test_the_mode_is_exact_or_left_to_the_umask(
    mode: int | None, result: int, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write_file(path, b"data", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == result
