"""Bringing branches and patches into the person's repository, all or nothing."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from quarterdeck.local.checkout import (
    PENDING,
    START_REF,
    LocalCheckout,
    MergeStrategy,
    OverlapError,
)
from quarterdeck.local.git import CheckoutError, NoRepositoryError, read_patch, run_git
from tests.support.git import git, make_repository


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with a branch `qd/work` that changes, adds and removes files."""
    place = make_repository(tmp_path / "shop")
    git(place, "config", "user.name", "Me")
    git(place, "config", "user.email", "me@localhost")
    for name in ("changed", "removed", "untouched"):
        (place / name).write_text(f"{name}\n" * 30)
    (place / "directory").mkdir()
    (place / "directory" / "only").write_text("only\n")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "Base")
    git(place, "checkout", "-q", "-b", "qd/work")
    (place / "changed").write_text("changed\n" * 29 + "by the agent\n")
    (place / "removed").unlink()
    (place / "directory" / "only").unlink()
    (place / "directory").rmdir()
    (place / "directory").write_bytes(b"\0 a file now")
    (place / "new").mkdir()
    (place / "new" / "deep").write_text("new\n")
    (place / "link").symlink_to("changed")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "Work")
    git(place, "checkout", "-q", "main")
    return place


def patch_of(place: Path, range: str = "main...qd/work") -> bytes:
    command = ["git", "diff", "--binary", "--full-index", range]
    return subprocess.run(command, cwd=place, check=True, capture_output=True).stdout


def contents(place: Path) -> dict[str, bytes]:
    """Every file of the work tree."""
    return {
        str(path.relative_to(place)): (
            os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        )
        for path in place.rglob("*")
        if ".git" not in path.parts and (path.is_symlink() or path.is_file())
    }


def contents_of(place: Path, commit: str) -> dict[str, bytes]:
    """Every file of a commit."""
    copy = place.parent / f"copy-of-{commit.replace('/', '-')}"
    git(place, "worktree", "add", "--quiet", "--detach", str(copy), commit)
    found = contents(copy)
    git(place, "worktree", "remove", str(copy))
    return found


def nothing_is_left(place: Path) -> bool:
    left = ("index.lock", "index.lock.lock", PENDING, "qd-pending.new")
    return not any((place / ".git" / name).exists() for name in left) and not list(
        (place / ".git").glob("qd-rebase-*")
    )


async def test_a_patch_is_applied_without_staging_it(place: Path) -> None:
    expected = contents_of(place, "qd/work")
    (place / "untouched").write_text("mine\n")
    (place / "mine").write_text("mine\n")
    git(place, "add", "mine")
    index = git(place, "ls-files", "--stage")
    checkout = await LocalCheckout.find(place / "new" if (place / "new").is_dir() else place)
    changed = await checkout.apply(patch_of(place))
    assert set(changed) == {
        "changed", "removed", "directory", "directory/only", "new/deep", "link",
    }  # fmt: skip
    assert contents(place) == {**expected, "untouched": b"mine\n", "mine": b"mine\n"}
    assert git(place, "ls-files", "--stage") == index
    assert git(place, "log", "-1", "--format=%s") == "Base"
    assert nothing_is_left(place)
    assert await checkout.apply(patch_of(place)) == []
    assert contents(place) == {**expected, "untouched": b"mine\n", "mine": b"mine\n"}


async def test_files_that_are_already_as_they_would_become_are_left(place: Path) -> None:
    expected = contents_of(place, "qd/work")
    (place / "changed").write_bytes(expected["changed"])
    (place / "new").mkdir()
    (place / "new" / "deep").write_bytes(expected["new/deep"])
    checkout = await LocalCheckout.find(place)
    changed = await checkout.apply(patch_of(place))
    assert set(changed) == {"removed", "directory", "directory/only", "link"}
    assert contents(place) == expected
    assert nothing_is_left(place)


@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
async def test_what_was_applied_is_merged(place: Path, strategy: MergeStrategy) -> None:
    checkout = await LocalCheckout.find(place)
    await checkout.apply(patch_of(place))
    (place / "untouched").write_text("mine\n")
    git(place, "add", "changed")  # staged is as good as not
    await checkout.merge("qd/work", strategy, "Bring it in")
    assert contents(place) == {**contents_of(place, "qd/work"), "untouched": b"mine\n"}
    assert git(place, "status", "--porcelain").split() == ["M", "untouched"]
    assert nothing_is_left(place)


@pytest.mark.parametrize("name", ["new/deep", "changed", "mode", "staged", "removed"])
async def test_what_was_edited_after_it_was_applied_is_named(place: Path, name: str) -> None:
    checkout = await LocalCheckout.find(place)
    await checkout.apply(patch_of(place))
    if name == "mode":
        name = "new/deep"
        (place / name).chmod(0o755)
    elif name == "staged":
        name = "changed"
        text = (place / name).read_text()
        (place / name).write_text("only staged\n")
        git(place, "add", name)
        (place / name).write_text(text)
    else:
        with (place / name).open("a") as file:
            file.write("mine\n")
    index, before = git(place, "ls-files", "--stage"), contents(place)
    with pytest.raises(OverlapError) as caught:
        await checkout.merge("qd/work", "merge", "Bring it in")
    assert caught.value.files == [name]
    assert contents(place) == before
    assert git(place, "ls-files", "--stage") == index
    assert git(place, "log", "-1", "--format=%s") == "Base"
    assert nothing_is_left(place)


@pytest.fixture
def started(place: Path) -> Path:
    """The checkout with uncommitted changes that a replica, beside it, started with and went on from.

    All of its work is on `qd/work`.
    """
    (place / "mode").write_text("mode\n")
    git(place, "add", "mode")
    git(place, "commit", "-q", "-m", "Base")
    (place / "changed").write_text("by me\n" + "changed\n" * 29)
    (place / "mode").chmod(0o755)
    (place / "notes").write_text("mine\n")
    (place / "kept").write_text("mine\n")
    (place / "removed").unlink()
    replica = place.parent / "replica"
    git(place.parent, "clone", "-q", str(place), "replica")
    for name in ("changed", "mode", "notes", "kept"):
        shutil.copy2(place / name, replica / name)
    (replica / "removed").unlink()
    git(replica, "add", ".")
    git(replica, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "Start")
    git(replica, "update-ref", START_REF, "HEAD")
    for name in ("changed", "mode", "notes"):
        with (replica / name).open("a") as file:
            file.write("by the agent\n")
    (replica / "removed").write_text("made again by the agent\n")
    (replica / "new").write_text("new\n")
    git(replica, "add", ".")
    git(replica, "reset", "-q", "--soft", "HEAD^")
    git(replica, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "Work")
    git(place, "fetch", "-q", str(replica), "+HEAD:qd/work")
    return place


async def brought(place: Path, how: str) -> None:
    """Apply or merge all that the replica has made."""
    checkout = await LocalCheckout.find(place)
    if how == "apply":
        await checkout.apply(patch_of(place), "../replica")
    else:
        await checkout.merge("qd/work", how, "Bring it in", "../replica")  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["apply", "merge", "squash", "rebase"])
async def test_files_that_are_as_the_replica_started_with_them_change(
    started: Path, how: str
) -> None:
    git(started, "add", "notes")  # staged is as good as not
    (started / "untouched").write_text("staged\n")
    git(started, "add", "untouched")
    (started / "other").write_text("mine\n")
    index = git(started, "ls-files", "--stage")
    await brought(started, how)
    expected = {**contents_of(started, "qd/work"), "untouched": b"staged\n", "other": b"mine\n"}
    assert contents(started) == expected
    assert os.access(started / "mode", os.X_OK)
    assert (started / "changed").read_text().startswith("by me\n")
    if how == "apply":
        assert git(started, "ls-files", "--stage") == index
    else:
        assert git(started, "status", "--porcelain").split() == ["M", "untouched", "??", "other"]
    assert nothing_is_left(started)


@pytest.mark.long
@pytest.mark.parametrize("how", ["apply", "merge"])
@pytest.mark.parametrize("name", ["changed", "mode", "notes", "removed", "new", "mode of mode"])
async def test_what_was_edited_since_the_start_is_named(started: Path, how: str, name: str) -> None:
    if name == "mode of mode":
        (started / "mode").chmod(0o644)
        (started / "mode").write_text("again\n")
    else:
        with (started / name).open("a") as file:
            file.write("once more\n")
    index, before = git(started, "ls-files", "--stage"), contents(started)
    with pytest.raises(OverlapError) as caught:
        await brought(started, how)
    assert caught.value.files == [name.split(" ")[0]]
    assert contents(started) == before
    assert git(started, "ls-files", "--stage") == index
    assert nothing_is_left(started)


@pytest.mark.parametrize("how", ["apply", "merge"])
async def test_an_edit_that_the_result_does_not_have_is_kept(started: Path, how: str) -> None:
    git(started, "worktree", "add", "-q", "../other", "qd/work")
    other = started.parent / "other"
    (other / "changed").write_text("changed\n" * 29 + "by the agent\n")
    (other / "mode").chmod(0o644)
    git(other, "commit", "-q", "-a", "-m", "Without the edits")
    git(started, "worktree", "remove", str(other))
    before = contents(started)
    with pytest.raises(OverlapError) as caught:
        await brought(started, how)
    assert set(caught.value.files) == {"changed", "mode"}
    assert contents(started) == before


@pytest.mark.long
async def test_a_merge_keeps_what_only_the_index_has(started: Path) -> None:
    text = (started / "changed").read_text()
    (started / "changed").write_text("only staged\n")
    git(started, "add", "changed")
    (started / "changed").write_text(text)
    with pytest.raises(OverlapError) as caught:
        await brought(started, "merge")
    assert caught.value.files == ["changed"]
    await brought(started, "apply")
    assert git(started, "show", ":changed") == "only staged"


@pytest.mark.parametrize("how", ["apply", "merge"])
async def test_without_a_start_of_the_replica_local_changes_are_named(
    started: Path, how: str
) -> None:
    git(started.parent / "replica", "update-ref", "-d", START_REF)
    with pytest.raises(
        OverlapError, match="Nothing was changed here: these files have local changes"
    ):
        await brought(started, how)
    shutil.rmtree(started.parent / "replica")
    with pytest.raises(OverlapError, match="local changes"):
        await brought(started, how)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("changed", "mine\n"),
        ("removed", "mine\n"),
        ("new/deep", "mine\n"),
        ("new", "mine\n"),
        ("link", "mine\n"),
    ],
)
@pytest.mark.parametrize("how", ["apply", "merge"])
async def test_files_with_changes_are_named_and_nothing_happens(
    place: Path, name: str, text: str, how: str
) -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text(text)
    (place / ".git" / "info").mkdir(exist_ok=True)
    (place / ".git" / "info" / "exclude").write_text("new\nlink\n")  # an ignored file counts, too
    before = contents(place)
    checkout = await LocalCheckout.find(place)
    with pytest.raises(OverlapError) as caught:
        if how == "apply":
            await checkout.apply(patch_of(place))
        else:
            await checkout.merge("qd/work", "merge", "Merge")
    assert caught.value.files[0].startswith(name)
    assert contents(place) == before
    assert git(place, "log", "-1", "--format=%s") == "Base"
    assert nothing_is_left(place)


async def test_a_patch_is_merged_with_later_commits(place: Path) -> None:
    (place / "changed").write_text("first line\n" + "changed\n" * 30)
    git(place, "commit", "-q", "-a", "-m", "Mine")
    checkout = await LocalCheckout.find(place)
    await checkout.apply(patch_of(place))
    text = (place / "changed").read_text()
    assert text.startswith("first line\n") and text.endswith("by the agent\n")


@pytest.mark.parametrize("how", ["apply", "merge", "squash", "rebase"])
async def test_a_conflict_changes_nothing(place: Path, how: str) -> None:
    (place / "changed").write_text("changed\n" * 29 + "by me\n")
    git(place, "commit", "-q", "-a", "-m", "Mine")
    before, head = contents(place), git(place, "rev-parse", "HEAD")
    checkout = await LocalCheckout.find(place)
    with pytest.raises(OverlapError) as caught:
        if how == "apply":
            await checkout.apply(patch_of(place))
        else:
            await checkout.merge("qd/work", how, "Merge")  # type: ignore[arg-type]
    assert caught.value.files == ["changed"]
    assert contents(place) == before
    assert git(place, "rev-parse", "HEAD") == head
    assert git(place, "status", "--porcelain") == ""
    assert len(git(place, "worktree", "list").splitlines()) == 1
    assert nothing_is_left(place)


async def test_a_patch_that_is_none_is_refused(place: Path) -> None:
    checkout = await LocalCheckout.find(place)
    with pytest.raises(CheckoutError) as caught:
        await checkout.apply(b"no patch\n")
    assert "No valid patches" in (caught.value.details or "")
    hostile = b"diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\n--- /dev/null\n"
    hostile += b"+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n"
    for prefix in (b".git/hooks", b"../outside", b"/tmp"):
        with pytest.raises(CheckoutError):
            await checkout.apply(hostile.replace(b".git/hooks", prefix))
    assert git(place, "status", "--porcelain") == ""
    assert not (place / ".git" / "hooks" / "x").exists()


@pytest.mark.parametrize(
    ("strategy", "titles"),
    [
        ("merge", ["Bring it in", "Mine", "Work", "Base"]),
        ("squash", ["Bring it in", "Mine", "Base"]),
        ("rebase", ["Work", "Mine", "Base"]),
    ],
)
async def test_a_branch_is_merged(place: Path, strategy: str, titles: list[str]) -> None:
    (place / "mine").write_text("mine\n")
    git(place, "add", "mine")
    git(place, "commit", "-q", "-m", "Mine")
    hook = place / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hook-ran\n")
    hook.chmod(0o755)
    (place / "untouched").write_text("mine\n")
    checkout = await LocalCheckout.find(place)
    commit = await checkout.merge("qd/work", strategy, "Bring it in")  # type: ignore[arg-type]
    assert commit == git(place, "rev-parse", "main")
    log = git(place, "log", "--topo-order", "--format=%s").splitlines()
    assert sorted(log[: len(titles)]) == sorted(titles) and log[0] == titles[0]
    assert git(place, "status", "--porcelain").split() == ["M", "untouched"]
    assert not (place / "removed").exists() and (place / "new" / "deep").exists()
    assert not (place / "hook-ran").exists()
    assert len(git(place, "worktree", "list").splitlines()) == 1
    again = await checkout.merge("qd/work", "merge", "Again")
    assert (again is None) is (strategy == "merge")
    assert nothing_is_left(place)


async def test_a_branch_is_fast_forwarded(place: Path) -> None:
    checkout = await LocalCheckout.find(place)
    assert await checkout.merge("qd/work", "merge", "") == git(place, "rev-parse", "qd/work")
    assert git(place, "status", "--porcelain") == ""


async def test_an_empty_repository_takes_the_first_commit(place: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    git(empty, "fetch", "-q", str(place), "qd/work:qd/work")
    checkout = await LocalCheckout.find(empty)
    await checkout.merge("qd/work", "merge", "")
    assert git(empty, "status", "--porcelain") == ""
    assert (empty / "new" / "deep").exists()


WORKER = """
import asyncio, sys
from pathlib import Path
from quarterdeck.local.checkout import LocalCheckout

async def main():
    checkout = await LocalCheckout.find(Path.cwd())
    if sys.argv[1] == "apply":
        await checkout.apply(sys.stdin.buffer.read(), "../replica")
    else:
        await checkout.merge("qd/work", sys.argv[1], "Bring it in", "../replica")

asyncio.run(main())
"""
KILLER = """#!/bin/sh
cat
echo . >> {count}
[ $(wc -l < {count}) = {at} ] || exit 0
[ {at} -lt 9 ] || exit 0
rm -f {armed}
kill -9 $(cat {pid}) $PPID
"""


def killed_at(place: Path, how: str, at: int) -> None:
    """Run an operation that is killed, with its git, when the n-th file is written."""
    outside = place.parent
    names = {name: outside / name for name in ("count", "pid", "armed")}
    killer = outside / "killer"
    killer.write_text(KILLER.format(at=at, **names))
    killer.chmod(0o755)
    (place / ".git" / "info").mkdir(exist_ok=True)
    (place / ".git" / "info" / "attributes").write_text("* filter=killer\n")
    git(place, "config", "filter.killer.smudge", str(killer))
    command = f"echo $$ > {names['pid']}; exec {sys.executable} -c '{WORKER}' {how}"
    patch = patch_of(place)
    done = subprocess.run(["sh", "-c", command], cwd=place, input=patch, capture_output=True)
    assert done.returncode == -9, done.stderr
    git(place, "config", "filter.killer.smudge", "cat")


@pytest.mark.long
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("how", ["apply", "merge", "squash"])
async def test_what_was_killed_is_completed(place: Path, how: str, at: int) -> None:
    expected = contents_of(place, "qd/work")
    (place / "untouched").write_text("mine\n")
    killed_at(place, how, at)
    assert (place / ".git" / PENDING).exists()
    assert contents(place) != {**expected, "untouched": b"mine\n"}
    checkout = await LocalCheckout.find(place)
    assert await checkout.complete()
    assert contents(place) == {**expected, "untouched": b"mine\n"}
    title = git(place, "log", "-1", "--format=%s")
    assert title == {"apply": "Base", "merge": "Work", "squash": "Bring it in"}[how]
    if how != "apply":
        assert git(place, "status", "--porcelain").split() == ["M", "untouched"]
    assert nothing_is_left(place)
    assert not await checkout.complete()


@pytest.mark.long
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("how", ["apply", "merge", "squash"])
async def test_what_was_killed_over_uncommitted_files_is_completed(
    started: Path, how: str, at: int
) -> None:
    expected = {**contents_of(started, "qd/work"), "untouched": b"mine\n"}
    (started / "untouched").write_text("mine\n")
    git(started, "add", "untouched")
    index = git(started, "ls-files", "--stage")
    killed_at(started, how, at)
    assert contents(started) != expected
    checkout = await LocalCheckout.find(started)
    assert await checkout.complete()
    assert contents(started) == expected
    assert os.access(started / "mode", os.X_OK)
    if how == "apply":
        assert git(started, "ls-files", "--stage") == index
    else:
        assert git(started, "status", "--porcelain") == "M  untouched"
    assert nothing_is_left(started)
    assert not await checkout.complete()


async def test_edits_after_a_kill_are_not_overwritten(place: Path) -> None:
    killed_at(place, "apply", 2)
    (place / "changed").write_text("edited since\n")
    checkout = await LocalCheckout.find(place)
    with pytest.raises(OverlapError) as caught:
        await checkout.apply(patch_of(place))
    assert caught.value.files == ["changed"]
    assert (place / "changed").read_text() == "edited since\n"


async def test_another_git_process_is_not_disturbed(place: Path) -> None:
    (place / ".git" / "index.lock").touch()
    before = contents(place)
    checkout = await LocalCheckout.find(place)
    with pytest.raises(CheckoutError, match="Another git process"):
        await checkout.apply(patch_of(place))
    assert contents(place) == before
    assert (place / ".git" / "index.lock").exists()


async def test_a_branch_that_moved_after_a_kill_is_left_alone(place: Path) -> None:
    killed_at(place, "merge", 2)
    git(place, "update-ref", "HEAD", git(place, "commit-tree", "-m", "x", "HEAD^{tree}"))
    checkout = await LocalCheckout.find(place)
    with pytest.raises(CheckoutError, match="the branch has moved since"):
        await checkout.complete()
    assert json.loads((place / ".git" / PENDING).read_text())["commit_to"]


@pytest.fixture
def huge(place: Path, tmp_path: Path) -> Path:
    """A clone whose branch `large` adds a file of 100 MB, a thousandth of that when compressed."""
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(place), str(theirs))
    with (theirs / "large").open("wb") as file:
        file.truncate(100 << 20)
    git(theirs, "checkout", "-q", "-b", "large")
    git(theirs, "add", "large")
    git(theirs, "commit", "-q", "-m", "Large")
    return theirs


@pytest.mark.long
async def test_what_a_replica_sent_takes_no_more_memory_than_it_may(
    huge: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(huge, "main...large")
    assert len(patch) < 1 << 20
    before, checkout = contents(place), await LocalCheckout.find(place)
    monkeypatch.setattr("quarterdeck.local.git.GIT_MEMORY", 64 << 20)
    with pytest.raises(CheckoutError, match="too much memory: git may have 64 MB") as caught:
        await checkout.fetch(str(huge), "large", "qd/large")
    assert "Ask the replica's agent" in (caught.value.details or "")
    assert "qd/large" not in await checkout.branches()
    with pytest.raises(CheckoutError, match="too much memory"):
        await checkout.apply(patch)
    with pytest.raises(CheckoutError, match="too much memory"):
        await run_git("apply", "--stat", "-", directory=Path("/"), data=patch)
    assert contents(place) == before
    assert nothing_is_left(place)
    monkeypatch.undo()
    await checkout.fetch(str(huge), "large", "qd/large")
    assert "qd/large" in await checkout.branches()
    monkeypatch.setattr("quarterdeck.local.checkout.FILE_BYTES", 64 << 20)
    with pytest.raises(CheckoutError, match=r"the replica.s files have 0\.1 GB"):
        await checkout.merge("qd/large", "merge", "Merge")
    assert contents(place) == before
    assert nothing_is_left(place)


async def test_what_a_replica_sent_takes_no_more_time_than_it_may(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.local.git.GIT_SECONDS", 1)
    spin = "!while :; do :; done"
    for alias in (spin, f"!git -c 'alias.spin={spin}' spin"):
        with pytest.raises(CheckoutError, match="takes too long: git may work for 1 seconds"):
            await run_git("-c", f"alias.work={alias}", "work", directory=place)


async def test_what_a_replica_sent_has_only_so_many_files_names_and_messages(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, checkout = contents(place), await LocalCheckout.find(place)
    monkeypatch.setattr("quarterdeck.local.checkout.MOST_FILES", 5)
    with pytest.raises(CheckoutError, match="more than 5 files"):
        await checkout.merge("qd/work", "merge", "Merge")
    monkeypatch.undo()
    monkeypatch.setattr("quarterdeck.local.git.OUTPUT_BYTES", 300)
    with pytest.raises(CheckoutError, match="git printed more than 0 MB"):
        await checkout.merge("qd/work", "merge", "Merge")
    assert contents(place) == before
    assert nothing_is_left(place)
    monkeypatch.setattr("quarterdeck.local.git.ERROR_BYTES", 10)
    say = r"!printf '\033]0;title\007\302\233 \342\202\254\n' >&2; exit 3"
    with pytest.raises(CheckoutError) as caught:
        await run_git("-c", f"alias.say={say}", "say", directory=place, printed=True)
    assert capsys.readouterr().err == "?]0;title?? \u20ac\n"
    assert len(caught.value.details or "") <= 10


async def test_a_patch_has_only_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def parts() -> AsyncGenerator[bytes]:
        for _ in range(4):
            yield b"x" * 10

    assert len(await read_patch(parts())) == 40
    monkeypatch.setattr("quarterdeck.local.git.PATCH_BYTES", 39)
    with pytest.raises(CheckoutError, match="The replica's changes are more than"):
        await read_patch(parts())


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".g\u200cit", "git~1", ".git ", ".git::$INDEX_ALLOCATION"]
)
async def test_no_file_of_a_patch_is_one_of_gits_own(place: Path, name: str) -> None:
    """Whatever the file system takes for the same name, such as one that folds case."""
    lines = f"--- /dev/null\n+++ b/{name}/config\n@@ -0,0 +1 @@\n+[core]\n"
    patch = f"diff --git a/{name}/config b/{name}/config\nnew file mode 100644\n{lines}"
    before = contents(place)
    with pytest.raises(CheckoutError) as refusal:
        await (await LocalCheckout.find(place)).apply(patch.encode())
    assert "invalid path" in (refusal.value.details or "")
    assert contents(place) == before and nothing_is_left(place)


async def test_what_a_replica_says_while_its_branch_is_fetched_is_text(
    place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Programs inside answer for git, and name the branches: a terminal must not obey either."""
    hook = tmp_path / "hook"
    said = r"\033]52;c;c3RvbGVu\007 \302\2332J \342\200\256 \303\251"
    hook.write_text(f"#!/bin/sh\nprintf '{said}\\n' >&2\nexec \"$@\"\n")
    hook.chmod(0o755)
    configuration = tmp_path / "configuration"
    configuration.write_text(f"[uploadpack]\n\tpackObjectsHook = {hook}\n")
    named = "qd/\x9b2J\u202ework"
    replica = make_repository(tmp_path / "replica")
    git(replica, "commit", "-q", "--allow-empty", "-m", "Inside")
    git(replica, "branch", named)
    checkout = await LocalCheckout.find(place, {"GIT_CONFIG_GLOBAL": str(configuration)})
    await checkout.fetch(str(replica), named, named, progress=True)
    printed = capfd.readouterr().err
    assert "remote: " in printed and "\u00e9" in printed and "work" in printed
    assert all(one.isprintable() or one in "\n\r\t" for one in printed), repr(printed)


async def test_a_linked_work_tree_is_a_checkout_of_its_own(place: Path) -> None:
    linked = place.parent / "linked"
    git(place, "worktree", "add", "-q", "-b", "side", str(linked))
    checkout = await LocalCheckout.find(linked)
    await checkout.merge("qd/work", "merge", "")
    assert git(linked, "status", "--porcelain") == ""
    assert git(place, "log", "-1", "--format=%s") == "Base"
    state = await checkout.state()
    assert (state.branch, state.uncommitted) == ("side", 0)


async def test_a_directory_without_a_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoRepositoryError, match="nowhere does not exist"):
        await LocalCheckout.find(tmp_path / "nowhere")
    with pytest.raises(NoRepositoryError, match="is not in a git repository"):
        await LocalCheckout.find(tmp_path)


async def test_a_cancelled_operation_leaves_no_lock(place: Path) -> None:
    checkout = await LocalCheckout.find(place)
    task = asyncio.create_task(checkout.apply(patch_of(place)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await checkout.complete()
    assert nothing_is_left(place)


async def test_a_git_that_cannot_be_started_is_told(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "git could not be started: Permission denied."
    checkout = await LocalCheckout.find(place)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text("not executable")
    checkout = replace(checkout, environment={"PATH": str(programs)})
    with pytest.raises(CheckoutError) as caught:
        await checkout.state()
    assert str(caught.value) == reason
    (programs / "git").unlink()
    with pytest.raises(CheckoutError) as caught:
        await checkout.state()
    assert str(caught.value) == "git is not installed."
    (programs / "git").write_text("not executable")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(NoRepositoryError) as caught:
        await LocalCheckout.find(place)
    assert caught.value.details == reason


@pytest.mark.parametrize(
    "name",
    ["a\0b", "\ud800", "x" * 200_000, "--upload-pack=touch pwned", "-x", "x:refs/heads/main", "*",
     "../main", "a..b", "$(touch pwned)", "a\nb", ""],
)  # fmt: skip
async def test_names_of_a_server_are_refused_or_only_names(place: Path, name: str) -> None:
    checkout, source = await LocalCheckout.find(place), str(place)
    before = git(place, "rev-parse", "main")
    for theirs, ours in ((name, "qd/fetched"), ("qd/work", f"qd/{name}")):
        try:
            await checkout.fetch(source, theirs, ours, force=True)
        except CheckoutError as error:
            assert error.details or "Argument list too long" in str(error)
    assert git(place, "rev-parse", "main") == before
    assert not (place / "pwned").exists()


async def test_no_program_of_a_checkout_is_run(place: Path, tmp_path: Path) -> None:
    """It may be somebody else's: unpacked from an archive, or on a shared disk."""
    ran = tmp_path / "ran"
    git(place, "clone", "-q", "--bare", "--shared", str(place), str(tmp_path / "lender.git"))
    (place / ".git/objects/info").mkdir(exist_ok=True)
    (place / ".git/objects/info/alternates").write_text(f"{tmp_path}/lender.git/objects\n")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 >> {ran}\n")
    program.chmod(0o755)
    git(place, "config", "core.fsmonitor", str(program))
    git(place, "config", "core.alternateRefsCommand", str(program))
    git(place, "config", "core.hooksPath", str(tmp_path))
    checkout = await LocalCheckout.find(place)
    assert (await checkout.state()).branch == "main"
    await run_git("fetch", "-q", str(tmp_path / "lender.git"), "main", directory=place)
    assert not ran.exists()
    git(place, "status")
    git(place, "fetch", "-q", str(tmp_path / "lender.git"), "main")
    assert ran.exists()  # by git alone


def test_no_program_of_the_current_directory_is_started(tmp_path: Path) -> None:
    for name in ("git", "ssh", "npm"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        program.chmod(0o755)
    variables = {**os.environ, "PATH": f".::{os.environ['PATH']}", "HOME": str(tmp_path)}
    variables["QUARTERDECK_HOME"] = str(tmp_path / "home")
    command = (sys.executable, "-m", "quarterdeck", "doctor")
    subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, check=False)
    assert not (tmp_path / "ran").exists()
