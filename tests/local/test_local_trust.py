"""Files that another user could have written."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from quarterdeck.local import trust
from quarterdeck.local.trust import why_file_untrusted, why_untrusted

OTHER = 43210

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def no_group(_gid: int) -> bool:
    return False


@pytest.fixture
def file(tmp_path: Path) -> Path:
    directory = tmp_path / "deck"
    directory.mkdir(mode=0o700)
    file = directory / "config.toml"
    file.touch(mode=0o600)
    return file


def test_own_files_are_trusted(file: Path) -> None:
    assert why_untrusted(file) is None
    assert why_file_untrusted(file) is None
    assert why_untrusted(file.parent / "absent") is None
    file.chmod(0o644)
    assert why_file_untrusted(file) is None


@pytest.mark.parametrize(("mode", "who"), [(0o666, "every user"), (0o2770, "its group")])
def test_others_that_can_write_are_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, mode: int, who: str
) -> None:
    monkeypatch.setattr(trust, "_is_own_group", no_group)
    for path in (file, file.parent):
        before = path.stat().st_mode
        path.chmod(mode)
        assert why_file_untrusted(file) == (path, f"can be written by {who}")
        path.chmod(before)
    assert why_file_untrusted(file) is None


@only_root
def test_another_owner_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = file.parent.parent / "link"
    link.symlink_to(file)
    assert why_file_untrusted(link) is None
    os.chown(file.parent, OTHER, 0)
    assert why_file_untrusted(file) == (file.parent, f"belongs to user {OTHER}")
    assert why_file_untrusted(link) == (file.parent, f"belongs to user {OTHER}")
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert why_file_untrusted(file) is None  # the file is root's, who could do anything


def test_a_shared_directory_in_which_users_change_their_own_files_only(file: Path) -> None:
    file.parent.chmod(0o1777)
    assert why_file_untrusted(file) is None
    assert why_untrusted(file.parent) == "can be written by every user"


def test_the_group_of_a_user_alone_is_that_user(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ubuntu and Fedora make such a group for each user, and files that it can write."""
    file.chmod(0o664)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    members = list[str]()
    group = grp.struct_group(("ann", "x", file.stat().st_gid, members))

    def group_of(_gid: int) -> grp.struct_group:
        return group

    def user_of(uid: int) -> pwd.struct_passwd:
        return pwd.struct_passwd(("ann", "x", uid, file.stat().st_gid, "", "/", "/bin/sh"))

    monkeypatch.setattr(grp, "getgrgid", group_of)
    monkeypatch.setattr(pwd, "getpwuid", user_of)
    named = "can be written by its group"
    found = None if file.stat().st_uid == 0 else "belongs to ann"
    assert why_untrusted(file) == found
    members.append("bob")
    assert why_untrusted(file) == (found or named)
