"""What a replica starts from: the person's branch and uncommitted changes, the repository untouched."""

import os
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.local.repository import (
    CheckoutError,
    CheckoutStart,
    LocalRepository,
    TooLargeError,
)
from tests.local.test_checkout import contents
from tests.support.git import git, make_repository
from tests.support.installation import snapshot

LIMIT = 1 << 20


def state_of(place: Path) -> dict[str, Any]:
    """Everything of a repository; git may touch, not change, objects that it needs."""
    found = snapshot(place)
    return {
        name: kept[3] if name.startswith(".git/objects/") else kept for name, kept in found.items()
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with changes of every kind, staged and not, and hooks that would be noticed."""
    place = make_repository(tmp_path / "shop")
    for name in ("edited", "staged", "removed", "executable", "both"):
        (place / name).write_text(f"{name}\n" * 30)
    (place / ".gitignore").write_text("ignored\n")
    (place / "link").symlink_to("edited")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "Base")
    (place / "both").write_text("stashed\n")
    git(place, "stash")
    for hook in ("post-index-change", "pre-commit", "post-commit", "fsmonitor"):
        path = place / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{hook}\n")
        path.chmod(0o755)
    git(place, "config", "core.fsmonitor", str(place / ".git" / "hooks" / "fsmonitor"))
    (place / "edited").write_text("edited\n" * 29 + "by hand\n")
    (place / "staged").write_text("staged\n")
    (place / "both").write_text("in the index\n")
    (place / "directory").mkdir()
    (place / "directory" / "new and staged").write_bytes(b"\0binary\xff" * 1000)
    git(place, "-c", "core.fsmonitor=false", "add", "staged", "both", "directory")
    (place / "both").write_text("in the files\n")
    (place / "removed").unlink()
    (place / "executable").chmod(0o755)
    (place / "link").unlink()
    (place / "link").symlink_to("staged")
    (place / "new*?").write_text("new\n")
    (place / "ignored").write_text("ignored\n")
    (place / "directory" / "dangling").symlink_to("nowhere")
    for ran in tmp_path.glob("ran-*"):
        ran.unlink()
    return place


def received(place: Path, bundle: bytes) -> Path:
    """Put the commit of a bundle into a clone; return its work tree."""
    clone = place.parent / "clone"
    git(place.parent, "clone", "-q", str(place), str(clone))
    (clone.parent / "changes.bundle").write_bytes(bundle)
    git(clone, "bundle", "verify", "../changes.bundle")
    git(clone, "fetch", "-q", "../changes.bundle", "refs/heads/uncommitted")
    git(clone, "checkout", "-q", "FETCH_HEAD")
    return clone


async def test_a_snapshot_has_everything_and_changes_nothing(place: Path) -> None:
    before, expected = state_of(place), contents(place)
    checkout = await LocalRepository.find(place / "directory")
    taken = await checkout.snapshot(LIMIT)
    assert state_of(place) == before
    assert not list(place.parent.glob("ran-*"))
    assert (await checkout.state()).uncommitted == 9
    assert state_of(place) == before
    assert taken is not None
    assert taken.base == git(place, "rev-parse", "HEAD")
    clone = received(place, taken.bundle)
    assert expected.pop("ignored")
    assert contents(clone) == expected
    assert os.access(clone / "executable", os.X_OK)
    assert git(clone, "rev-parse", "HEAD^") == taken.base


async def test_without_changes_there_is_no_snapshot(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "shop")
    (place / "README").touch()
    assert await (await LocalRepository.find(place)).snapshot(LIMIT) is None


async def test_files_are_taken_through_the_filters_of_the_person(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "shop")
    git(place, "config", "filter.upper.clean", "tr a-z A-Z")
    (place / ".gitattributes").write_text("*.up filter=upper\n")
    (place / "one.up").write_text("text\n")
    taken = await (await LocalRepository.find(place)).snapshot(LIMIT)
    assert taken is not None
    assert (received(place, taken.bundle) / "one.up").read_text() == "TEXT\n"


async def test_a_repository_below_is_left_out(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "shop")
    make_repository(place / "below")
    git(place, "init", "-q", "empty")
    checkout = await LocalRepository.find(place)
    assert await checkout.snapshot(LIMIT) is None
    (place / "new").write_text("new\n")
    taken = await checkout.snapshot(LIMIT)
    assert taken is not None
    assert not (received(place, taken.bundle) / "below").exists()


@pytest.mark.parametrize(
    ("part", "size"),
    [(os.urandom(1 << 20), 2 << 20), (bytes(1 << 20), 40 << 20)],
    ids=["random", "zeros"],
)
async def test_what_is_too_large_is_named(tmp_path: Path, part: bytes, size: int) -> None:
    """Also what would be small when it is packed: it has to be read before that is known."""
    place = make_repository(tmp_path / "shop")
    (place / "large").write_bytes(part * ((size >> 20) + 1))
    before = state_of(place)
    with pytest.raises(TooLargeError, match="at most 1 MB") as caught:
        await (await LocalRepository.find(place)).snapshot(LIMIT)
    assert caught.value.details == f"large ({(size >> 20) + 1} MB)"
    assert state_of(place) == before


async def test_before_the_first_commit_there_is_nothing_to_start_from(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "shop")
    checkout = await LocalRepository.find(tmp_path / "shop")
    assert await checkout.start(str(tmp_path / "shop")) is None
    with pytest.raises(CheckoutError, match="before the first commit"):
        await checkout.snapshot(LIMIT)


async def test_a_replica_of_the_checkout_starts_from_its_branch(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "shop")
    git(place, "checkout", "-q", "-b", "never/pushed")
    checkout = await LocalRepository.find(place)
    assert await checkout.start(str(place)) == CheckoutStart("never/pushed")
    assert await checkout.start(str(tmp_path)) is None
    assert await checkout.branches() == ["main", "never/pushed"]
    git(place, "worktree", "add", "-q", "-b", "beside", str(tmp_path / "beside"))
    beside = await LocalRepository.find(tmp_path / "beside")
    assert await beside.start(str(place)) == CheckoutStart("beside")
    git(place, "checkout", "-q", "--detach")
    assert await checkout.start(str(place)) == CheckoutStart(git(place, "rev-parse", "HEAD"))


async def test_a_replica_of_a_remote_starts_from_what_it_has(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    url = f"file://{source}"
    git(tmp_path, "clone", "-q", url, "shop")
    place = tmp_path / "shop"
    git(place, "remote", "set-url", "origin", "https://host/team/shop.git")
    checkout = await LocalRepository.find(place)
    assert await checkout.start("https://host/team/shop") == CheckoutStart("main")
    assert await checkout.start("https://host/team/other") is None
    git(place, "commit", "-q", "--allow-empty", "-m", "Not pushed")
    assert await checkout.start("https://host/team/shop.git") == CheckoutStart("main", unpushed=1)
    git(place, "checkout", "-q", "-b", "local")
    assert await checkout.start("https://host/team/shop.git") is None
    git(place, "checkout", "-q", "--detach")
    assert await checkout.start("https://host/team/shop.git") is None
    git(place, "checkout", "-q", "--detach", "HEAD^")
    head = git(place, "rev-parse", "HEAD")
    assert await checkout.start("https://host/team/shop.git") == CheckoutStart(head)


@pytest.mark.parametrize(
    ("remote", "source", "same"),
    [
        ("https://host.example/team/shop.git", "git@host.example:team/shop", True),
        ("ssh://git@host.example:2222/team/shop", "https://me:key@Host.example/team/shop/", True),
        ("https://host.example/team/other", "https://host.example/team/shop", False),
        ("https://else.example/team/shop", "https://host.example/team/shop", False),
    ],
)
async def test_a_clone_is_known_by_its_remote(
    place: Path, remote: str, source: str, same: bool
) -> None:
    git(place, "remote", "add", "origin", remote)
    here = await LocalRepository.find(place)
    assert await here.is_clone(source, "1" * 40) is same
    assert await here.is_clone(source, None)
    assert await here.is_clone(str(place), "1" * 40)


async def test_a_clone_is_known_by_a_commit(place: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    (other / "README").write_text("Other.\n")
    git(other, "commit", "-qam", "Other")
    here, head = await LocalRepository.find(place), git(other, "rev-parse", "HEAD")
    assert not await here.is_clone(str(other), head)
    git(place, "fetch", "-q", str(other), "main")
    assert await here.is_clone(str(other), head)
