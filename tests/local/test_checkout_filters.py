"""Filters of the person, such as git-lfs, when the work of a replica is brought in: what runs, and what fails."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from quarterdeck.local.checkout import PENDING, LocalCheckout, MergeStrategy
from quarterdeck.local.git import CheckoutError
from quarterdeck.local.tree_changes import TreeChange
from tests.support.git import git, make_repository

LFS = """\
[filter "lfs"]
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge -- %f
\trequired = true
"""
FAKE_LFS = """\
#!/bin/sh
echo "$@" >> {calls}
cat
case "$1 $3" in
    "smudge "*missing*) exit 2;;
    "smudge "*killed*)
        git=$PPID
        grep -q "^Name:.git$" /proc/$git/status || git=$(awk '/^PPid/ {{ print $2 }}' /proc/$git/status)
        kill -9 $git
esac
"""
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
HOSTILE_LFS = '[lfs]\n\turl = http://169.254.169.254/\n[lfs "customtransfer.x"]\n\tpath = ./evil\n'


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The calls of a git-lfs that the person has installed; it has no object of a file `missing`."""
    calls = tmp_path / "calls"
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git-lfs").write_text(FAKE_LFS.format(calls=calls))
    (programs / "git-lfs").chmod(0o755)
    configuration = tmp_path / "gitconfig"
    configuration.write_text(f"{LFS}[user]\n\tname = Me\n\temail = me@localhost\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return calls


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = make_repository(tmp_path / "shop")
    (place / "directory").mkdir()
    for name in ("changed", "removed", "directory/only", "file", "untouched", "zz"):
        (place / name).write_text(f"{name}\n")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "Base")
    return place


def replica(place: Path, pointer: str) -> Path:
    """A copy of the repository whose branch `qd/work` adds a file of git-lfs, and changes others."""
    copy = place.parent / "replica"
    git(place.parent, "clone", "-q", str(place), str(copy))
    git(copy, "checkout", "-q", "-b", "qd/work")
    (copy / ".gitattributes").write_text("*.bin filter=lfs\nzz filter=lfs\n")
    (copy / ".lfsconfig").write_text(HOSTILE_LFS)
    (copy / pointer).parent.mkdir(exist_ok=True)
    (copy / pointer).write_text(POINTER)
    for name in ("changed", "zz"):
        (copy / name).write_text("by the agent\n")
    (copy / "removed").unlink()
    (copy / "directory/only").unlink()
    (copy / "directory").rmdir()
    (copy / "directory").write_text("a file now\n")
    (copy / "file").unlink()
    (copy / "file").mkdir()
    (copy / "file/deep").write_text("a directory now\n")
    git(copy, "-c", "filter.lfs.clean=cat", "add", ".")
    git(copy, "-c", "filter.lfs.clean=cat", "commit", "-q", "-m", "Work")
    return copy


def state(place: Path) -> object:
    """Everything but git's own directory, and what git says of it."""
    files = {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else None
        for path in place.rglob("*")
        if ".git" not in path.relative_to(place).parts
    }
    index, head = git(place, "ls-files", "--stage"), git(place, "rev-parse", "HEAD")
    left = [(place / ".git" / name).exists() for name in ("index.lock", "index.lock.lock", PENDING)]
    return files, index, head, left, git(place, "status", "--porcelain")


@pytest.mark.parametrize(
    "pointer", ["aaa-missing.bin", "missing.bin", "zzz/missing.bin", "killed.bin"]
)
@pytest.mark.parametrize("how", ["apply", "merge", "squash", "rebase"])
async def test_a_filter_that_fails_leaves_the_checkout_as_it_was(
    place: Path, calls: Path, how: str, pointer: str
) -> None:
    copy = replica(place, pointer)
    (place / "untouched").write_text("mine\n")
    (place / "new").write_text("mine\n")
    before = state(place)
    checkout = await LocalCheckout.find(place)
    await checkout.fetch(str(copy), "qd/work", "qd/work")
    assert not ran(calls)
    with pytest.raises(CheckoutError) as refused:
        await bring_in(checkout, copy, how)
    assert pointer == "killed.bin" or "smudge filter lfs failed" in (refused.value.details or "")
    assert "smudge" in ran(calls)
    assert state(place) == before


@pytest.mark.parametrize("name", ["changed", "fresh"])
async def test_what_is_written_before_git_begins_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """git refuses to write over it; putting files back must not do so either."""
    copy = replica(place, "aaa.bin")
    (copy / "fresh").write_text("by the agent\n")
    git(copy, "add", "fresh")
    git(copy, "commit", "-q", "-m", "More")
    checkout = await LocalCheckout.find(place)
    await checkout.fetch(str(copy), "qd/work", "qd/work")
    looked = checkout._refuse_large  # pyright: ignore[reportPrivateUsage]

    async def edit(changes: Sequence[TreeChange]) -> None:
        await looked(changes)
        (place / name).write_text("mine\n")

    monkeypatch.setattr(checkout, "_refuse_large", edit)
    with pytest.raises(CheckoutError):
        await checkout.merge("qd/work", "merge", "Bring it in")
    assert (place / name).read_text() == "mine\n"
    assert git(place, "status", "--porcelain").split()[-1] == name


async def test_what_is_written_while_git_fails_is_kept(place: Path, calls: Path) -> None:
    copy = replica(place, "edited-missing.bin")
    edited = {"changed": "by the agent\nand mine\n", "zz": "zz\nand mine\n"}
    lines = "".join(f"printf {text!r} > {place / name}; " for name, text in edited.items())
    lfs = Path(os.environ["PATH"].split(os.pathsep)[0]) / "git-lfs"
    lfs.write_text(lfs.read_text().replace("exit 2", f"{lines}exit 2"))
    checkout = await LocalCheckout.find(place)
    await checkout.fetch(str(copy), "qd/work", "qd/work")
    with pytest.raises(CheckoutError):
        await checkout.merge("qd/work", "merge", "Bring it in")
    assert {name: (place / name).read_text() for name in edited} == edited
    assert (place / "removed").exists()


async def test_a_change_that_cannot_be_completed_names_the_way_out(
    place: Path, calls: Path
) -> None:
    copy = replica(place, "missing.bin")
    checkout = await LocalCheckout.find(place)
    commit = await checkout.fetch(str(copy), "qd/work", "qd/work")
    head = git(place, "rev-parse", "HEAD")
    trees = [git(place, "rev-parse", f"{each}^{{tree}}") for each in (head, commit)]
    note = {"tree_from": trees[0], "tree_to": trees[1], "commit_from": head, "commit_to": commit}
    (place / ".git" / PENDING).write_text(json.dumps(note))
    with pytest.raises(CheckoutError, match="refuses to complete") as refused:
        await checkout.merge("qd/work", "merge", "Bring it in")
    assert f"remove {place / '.git' / PENDING}" in (refused.value.details or "")
    assert "smudge filter lfs failed" in (refused.value.details or "")
    assert ran(calls)


def ran(calls: Path) -> str:
    """What git-lfs was called with."""
    return calls.read_text() if calls.exists() else ""


async def bring_in(checkout: LocalCheckout, copy: Path, how: str) -> None:
    if how == "apply":
        await checkout.apply((git(copy, "diff", "--binary", "main...HEAD") + "\n").encode())
    else:
        strategy: MergeStrategy = how  # type: ignore[assignment]
        await checkout.merge("qd/work", strategy, "Bring it in")
