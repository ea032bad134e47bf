"""Submodules that a replica adds, moves or replaces: nothing of them is run, fetched or written here."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from quarterdeck.local.checkout import LocalCheckout, MergeStrategy, OverlapError
from quarterdeck.local.git import CheckoutError
from tests.support.git import git, make_repository

CONFIGURATION = """\
[user]
\tname = Me
\temail = me@localhost
[submodule]
\trecurse = true
\tactive = .
[fetch]
\trecurseSubmodules = true
[diff]
\tsubmodule = log
[status]
\tsubmoduleSummary = true
[protocol]
\tallow = always
"""
GITMODULES = '[submodule "{name}"]\n\tpath = {path}\n\turl = {url}\n\tupdate = {update}\n'
HOSTILE = {
    "a helper": {"url": "ext::sh -c 'touch {mark}'"},
    "an option": {"url": "--upload-pack=touch {mark}"},
    "a path": {"url": "file://{other}"},
    "a command": {"update": "!touch {mark}"},
    "a path upwards": {"path": "../outside"},
    "a name upwards": {"name": "../../outside"},
    "the name of another": {"name": "lib"},
}


@pytest.fixture
def lib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository of a submodule; the person has configured git to follow submodules everywhere."""
    (tmp_path / "gitconfig").write_text(CONFIGURATION)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    return make_repository(tmp_path / "lib")


@pytest.fixture
def place(tmp_path: Path, lib: Path) -> Path:
    """A checkout with that submodule, whose hooks leave a mark."""
    place = make_repository(tmp_path / "shop")
    git(place, "submodule", "add", "-q", str(lib), "lib")
    git(place, "commit", "-q", "-m", "Add lib")
    hooks = place / ".git/modules/lib/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'mark'}\n")
        (hooks / name).chmod(0o755)
    return place


@pytest.fixture
def copy(tmp_path: Path, place: Path) -> Path:
    """The repository in the replica, on its branch."""
    copy = tmp_path / "replica"
    git(tmp_path, "clone", "-q", str(place), str(copy))
    git(copy, "config", "core.hooksPath", os.devnull)
    git(copy, "checkout", "-q", "-b", "qd/work")
    return copy


def commit(copy: Path, *changes: Sequence[str]) -> None:
    """Commit changes of the index, which are arguments of git, and of a file."""
    (copy / "README").write_text("by the agent\n")
    git(copy, "add", "README")
    for change in changes:
        git(copy, *change)
    git(copy, "commit", "-q", "-m", "Work")


def state(place: Path) -> object:
    """The files of the checkout and of its submodule, and where that is."""
    files = {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else None
        for path in place.rglob("*")
        if ".git" not in path.relative_to(place).parts[:-1] and path.name != ".git"
    }
    return files, git(place / "lib", "rev-parse", "HEAD"), git(place, "rev-parse", "HEAD")


async def bring_in(place: Path, copy: Path, how: str) -> None:
    """Bring the branch in, as `qd replica apply` and `merge` do; it may be refused."""
    checkout = await LocalCheckout.find(place)
    await checkout.state()
    await checkout.fetch(str(copy), "qd/work", "qd/work")
    if how == "apply":
        patch = git(copy, "diff", "--binary", "--full-index", "--submodule=short", "main...HEAD")
        await checkout.apply(f"{patch}\n".encode())
    else:
        strategy: MergeStrategy = how  # type: ignore[assignment]
        await checkout.merge("qd/work", strategy, "Bring it in")
    await checkout.snapshot(1 << 20)


@pytest.mark.parametrize("how", ["apply", "merge", "squash", "rebase"])
async def test_a_submodule_stays_as_it_is_when_its_commit_changes(
    place: Path, lib: Path, copy: Path, tmp_path: Path, how: str
) -> None:
    """Also where git follows submodules: their files are not changed together with the others'."""
    earlier = git(lib, "rev-parse", "HEAD~1")
    commit(copy, ("update-index", "--cacheinfo", f"160000,{earlier},lib"))
    head = git(place / "lib", "rev-parse", "HEAD")
    await bring_in(place, copy, how)
    assert (place / "README").read_text() == "by the agent\n"
    assert git(place / "lib", "rev-parse", "HEAD") == head
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("how", ["apply", "merge", "squash", "rebase"])
@pytest.mark.parametrize("mode", ["100644", "120000"])
@pytest.mark.parametrize("embedded", [False, True])
async def test_a_submodule_with_files_is_not_replaced_by_a_file(
    place: Path, copy: Path, how: str, mode: str, embedded: bool
) -> None:
    """git would remove its directory, with ignored files and with a repository that is there."""
    if embedded:
        (place / "lib/.git").unlink()
        (place / ".git/modules/lib").rename(place / "lib/.git")
        git(place, "config", "--file", "lib/.git/config", "--unset", "core.worktree")
        git(place / "lib", "branch", "only-here")
    (place / ".git/info/exclude").write_text("*.env\n")
    (place / "lib/own.env").write_text("mine\n")
    blob = git(copy, "hash-object", "-w", "README")
    new = ("update-index", "--add", "--cacheinfo", f"{mode},{blob},lib")
    commit(copy, ("rm", "-q", "--cached", "lib"), new)
    exclude = git(place / "lib", "rev-parse", "--git-path", "info/exclude")
    (place / "lib" / exclude).write_text("*.env\n")
    before = state(place)
    with pytest.raises(OverlapError) as refused:
        await bring_in(place, copy, how)
    assert refused.value.files == ["lib"]
    assert state(place) == before


async def test_a_submodule_without_files_is_replaced(place: Path, copy: Path) -> None:
    git(place, "submodule", "deinit", "-q", "--force", "lib")
    blob = git(copy, "hash-object", "-w", "README")
    new = ("update-index", "--add", "--cacheinfo", f"100644,{blob},lib")
    commit(copy, ("rm", "-q", "--cached", "lib"), new)
    await bring_in(place, copy, "merge")
    assert (place / "lib").is_file()


async def test_a_directory_with_ignored_files_is_not_replaced(place: Path, copy: Path) -> None:
    (place / ".git/info/exclude").write_text("*.env\n")
    for at in (place, copy):
        (at / "deep").mkdir()
        (at / "deep/file").write_text("x\n")
        git(at, "add", ".")
        git(at, "commit", "-q", "-m", "Deep", "--date=2026-01-01", "--no-verify")
    git(copy, "rm", "-q", "deep/file")
    (copy / "deep").write_text("a file\n")
    commit(copy, ("add", "deep"))
    (place / "deep/own.env").write_text("mine\n")
    before = state(place)
    with pytest.raises(CheckoutError):
        await bring_in(place, copy, "squash")
    assert state(place) == before


@pytest.mark.parametrize("how", ["apply", "merge", "rebase"])
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_submodule_is_neither_run_nor_fetched(
    place: Path, copy: Path, lib: Path, tmp_path: Path, hostile: dict[str, str], how: str
) -> None:
    mark = tmp_path / "mark"
    given = {"name": "evil", "path": "evil", "url": "./evil", "update": "checkout"} | {
        key: value.format(mark=mark, other=lib) for key, value in hostile.items()
    }
    (copy / ".gitmodules").write_text(GITMODULES.format(**given))
    head = git(lib, "rev-parse", "HEAD~1")
    link = ("update-index", "--add", "--cacheinfo", f"160000,{head},evil")
    commit(copy, ("add", ".gitmodules"), link)
    before = git(place / "lib", "rev-parse", "HEAD"), sorted(place.parent.iterdir())
    config = (place / ".git/config").read_text()
    try:
        await bring_in(place, copy, how)
        assert (place / "README").read_text() == "by the agent\n"
    except CheckoutError as refused:
        assert "fsck" in str(refused.details) or "gitmodules" in str(refused.details)
    assert not mark.exists()
    assert (git(place / "lib", "rev-parse", "HEAD"), sorted(place.parent.iterdir())) == before
    assert (place / ".git/config").read_text() == config
    assert sorted(path.name for path in (place / ".git/modules").iterdir()) == ["lib"]
    assert not (place / "evil").exists() or not list((place / "evil").iterdir())


async def test_no_packs_at_other_addresses_are_asked_for(
    place: Path, copy: Path, tmp_path: Path
) -> None:
    """A replica could name any address to fetch them from, also in the user's own network."""
    git(place, "config", "fetch.uriProtocols", "http,https")
    offered = f"{'0' * 40} {'0' * 40} http://127.0.0.1:1/x"
    git(copy, "config", "uploadpack.blobPackfileUri", offered)
    commit(copy)
    trace = tmp_path / "trace"
    checkout = await LocalCheckout.find(place, {"GIT_TRACE_PACKET": str(trace)})
    await checkout.fetch(f"file://{copy}", "qd/work", "qd/work")
    asked = await asyncio.to_thread(trace.read_text)
    assert "fetch> command=fetch" in asked
    assert "packfile-uris" in asked and "fetch> packfile-uris" not in asked
