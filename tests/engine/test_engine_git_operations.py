"""Checkpoints of a checkout, and going back to one."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.engine.git import GitError, large_files, read_repository, run_git
from quarterdeck.engine.git_operations import (
    NOTE,
    CheckoutOperations,
    MergeConflictError,
    make_ready,
    read_diff,
)
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.service.git import inside
from quarterdeck.wire.git import GitCall, GitFailure
from quarterdeck.wire.git_state import EngineRepository, GitDiff
from tests.support.waiting import eventually

IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
ENVIRONMENT = {
    **os.environ,
    **IDENTITY,
    **{name.replace("AUTHOR", "COMMITTER"): value for name, value in IDENTITY.items()},
}

PATCH = Path(inside.__file__).with_name("patch.sh")


def git(path: Path, *words: str) -> str:
    command = ["git", *words]
    done = subprocess.run(
        command, cwd=path, env=ENVIRONMENT, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def patch(path: Path) -> str:
    command = ["sh", str(PATCH), "uncommitted", "main", ""]
    return subprocess.run(command, cwd=path, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "kept").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Start")
    return tmp_path


async def test_files_and_branch_are_what_they_were(path: Path) -> None:
    checkout = CheckoutOperations(path, ENVIRONMENT)
    (path / "kept").write_text("two\n")
    (path / "new").write_text("new\n")
    (path / "ignored").write_text("mine\n")
    before = git(path, "status", "--porcelain"), git(path, "rev-parse", "HEAD")
    commit = await checkout.checkpoint("turns/1", "A turn")
    assert (git(path, "status", "--porcelain"), git(path, "rev-parse", "HEAD")) == before
    assert git(path, "rev-parse", "refs/qd/turns/1") == commit
    git(path, "add", "-A")
    git(path, "commit", "-qm", "More")
    (path / "kept").unlink()
    (path / "later").write_text("later\n")
    assert await checkout.rewind("turns/1", "rewinds/1")
    assert (git(path, "status", "--porcelain"), git(path, "rev-parse", "HEAD")) == before
    assert (path / "kept").read_text() == "two\n" and not (path / "later").exists()
    assert (path / "ignored").read_text() == "mine\n"
    await checkout.rewind("rewinds/1", "rewinds/2")
    assert not (path / "kept").exists() and (path / "later").read_text() == "later\n"
    assert git(path, "log", "-1", "--format=%s") == "More"


async def test_an_unknown_checkpoint_changes_nothing(path: Path) -> None:
    (path / "kept").write_text("two\n")
    assert not await CheckoutOperations(path, ENVIRONMENT).rewind("turns/none", "rewinds/1")
    assert (path / "kept").read_text() == "two\n"


async def test_a_refusal_names_the_file_in_the_way(path: Path) -> None:
    (path / "kept").write_text("two\n")
    (path / ".git/index.lock").touch()
    with pytest.raises(GitError, match=r"index\.lock': File exists"):
        await CheckoutOperations(path, ENVIRONMENT).commit("More", None)


async def test_a_refusal_names_the_files_in_the_way(path: Path) -> None:
    git(path, "switch", "-qc", "theirs")
    for name in ("a", "b"):
        (path / name).write_text("theirs\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "Theirs")
    git(path, "switch", "-q", "main")
    for name in ("a", "b"):
        (path / name).write_text("mine\n")
    base = git(path, "rev-parse", "theirs")
    with pytest.raises(GitError, match=r"would be overwritten by merge: a, b$"):
        await CheckoutOperations(path, ENVIRONMENT).update("main", base, rebase=False, stash=False)


async def test_reading_leaves_the_index_to_agents(path: Path) -> None:
    repository = EngineRepository(
        id=uuid4(),
        name="tool",
        path=str(path),
        default_branch="main",
        base_commit=git(path, "rev-parse", "HEAD"),
    )
    # With the same content, which git notices only when it reads the file.
    (path / "kept").unlink()
    (path / "kept").write_text("one\n")
    index = path / ".git/index"
    before = index.lstat().st_ino
    state = await read_repository(repository, ENVIRONMENT, hooks_completed=True)
    assert state.git_diff == GitDiff(added=0, removed=0)
    assert await read_diff(repository, ENVIRONMENT) == ""
    assert patch(path) == ""
    assert index.lstat().st_ino == before
    await make_ready([repository], ENVIRONMENT)
    git(path, "diff-files", "--quiet")


async def test_a_change_of_the_second_in_which_the_index_was_written_is_seen(path: Path) -> None:
    kept = path / "kept"
    begun, ended = 0, 1
    while begun != ended:
        begun = int(time.time())
        kept.write_text("one\n")
        git(path, "add", "kept")
        kept.write_text("two\n")
        ended = int(time.time())
    await eventually(lambda: int(time.time()) > ended, "the next second")
    assert "+two" in patch(path)
    commit = await CheckoutOperations(path, ENVIRONMENT).checkpoint("turns/1", "A turn")
    assert git(path, "show", f"{commit}:kept") == "two"


@pytest.mark.parametrize(
    "lock",
    [
        "HEAD.lock",
        "refs/heads/main.lock",
        "refs/heads/a/b.lock",
        "refs/stash.lock",
        "packed-refs.new",
        "worktrees/other/index.lock",
    ],
)
async def test_locks_of_an_earlier_engine_are_removed(path: Path, lock: str) -> None:
    repository = EngineRepository(id=uuid4(), name="tool", path=str(path), default_branch="main")
    place = path / ".git" / lock
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    await make_ready([repository], ENVIRONMENT)
    assert not place.exists()


async def test_a_lock_of_a_living_git_is_kept_after_a_killed_operation(path: Path) -> None:
    """git closes the file of a lock, and keeps the lock while its hook runs."""
    (path / ".git" / NOTE).write_text("commit")
    left = path / ".git/refs/heads/left.lock"
    left.touch()
    os.utime(left, (0, 0))
    hook = path / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\n[ ! -e .git/waiting ] || exit 0\n"
        "touch .git/waiting; until [ -e .git/go ]; do sleep 0.02; done\n"
    )
    hook.chmod(0o755)
    (path / "kept").write_text("two\n")
    agents = ("git", "commit", "-qam", "Agent")
    agent = await asyncio.create_subprocess_exec(*agents, cwd=path, env=ENVIRONMENT)
    await eventually((path / ".git/waiting").exists)
    checkout = CheckoutOperations(path, ENVIRONMENT)
    (path / "more").touch()
    try:
        with pytest.raises(GitError, match=r"index\.lock': File exists"):
            await checkout.commit("More", None)
    finally:
        (path / ".git/go").touch()
        assert await agent.wait() == 0
    assert not left.exists()
    await checkout.commit("More", None)
    assert git(path, "log", "--format=%s").split() == ["More", "Agent", "Start"]


async def test_a_directory_of_any_depth_below_the_refs_is_no_error(path: Path) -> None:
    repository = EngineRepository(id=uuid4(), name="tool", path=str(path), default_branch="main")
    deep = first = path / ".git/refs/d"
    while len(str(deep)) < 3000:
        deep.mkdir()
        deep /= "d"
    await make_ready([repository], ENVIRONMENT)
    remove_tree(first)  # pytest cannot


async def test_an_unfinished_merge_is_made_ready(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    repository = EngineRepository(id=uuid4(), name="tool", path=str(path), default_branch="main")
    conflict(path, "kept")
    await make_ready([repository], ENVIRONMENT)
    assert not caplog.records


async def test_conflict_markers_are_found_whatever_the_user_configured(path: Path) -> None:
    (path / "d\u00fc.txt").write_text("one\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "More")
    git(path, "config", "grep.patternType", "fixed")
    conflict(path, "d\u00fc.txt")
    with pytest.raises(MergeConflictError) as refusal:
        await CheckoutOperations(path, ENVIRONMENT).commit("Merged", None)
    assert refusal.value.conflicts == ["d\u00fc.txt"]
    (path / "d\u00fc.txt").write_text("both\n")
    await CheckoutOperations(path, ENVIRONMENT).commit("Merged", None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("rebase", "other"), "cannot rebase: You have unstaged changes."),
        (("merge", "other"), "would be overwritten by merge: kept"),
        (("checkout", "nowhere"), "pathspec 'nowhere' did not match"),
    ],
)
async def test_a_refusal_is_what_git_said(path: Path, words: tuple[str, ...], reason: str) -> None:
    git(path, "checkout", "-qb", "other")
    (path / "kept").write_text("other\n")
    git(path, "commit", "-qam", "Other")
    git(path, "checkout", "-q", "main")
    (path / "kept").write_text("two\n")
    with pytest.raises(GitError) as refusal:
        await run_git(path, ENVIRONMENT, *words)
    assert reason in str(refusal.value)


def conflict(path: Path, name: str) -> None:
    """Begins a merge that changes the same line of a file as this branch."""
    for branch, text in (("other", "other\n"), ("main", "main\n")):
        git(path, "checkout", "-q", *(["-b"] if branch == "other" else []), branch)
        (path / name).write_text(text)
        git(path, "commit", "-qam", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git(path, "merge", "other")


async def test_a_refresh_that_takes_too_long_leaves_no_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = EngineRepository(id=uuid4(), name="tool", path=str(path), default_branch="main")
    (path / "slow").write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    (path / "slow").chmod(0o755)
    git(path, "config", "filter.slow.clean", str(path / "slow"))
    (path / ".gitattributes").write_text("kept filter=slow\n")
    (path / "kept").write_text("two\n")
    monkeypatch.setattr(
        run_git, "__kwdefaults__", {**(run_git.__kwdefaults__ or {}), "seconds": 1.0}
    )
    await make_ready([repository], ENVIRONMENT)
    assert not (path / ".git/index.lock").exists()


@pytest.mark.parametrize(
    "name",
    [
        *("HEAD", "config", "index", "packed-refs", "shallow", "commondir", "refs/heads/main"),
        *("info/exclude", "info/grafts", "objects/info/alternates", "objects/info/commit-graph"),
        *("objects/pack/multi-pack-index", NOTE, "../.gitignore", "../.mailmap"),
    ],
)
async def test_git_does_not_wait_for_a_pipe_in_the_place_of_a_file(path: Path, name: str) -> None:
    place = path / ".git" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    with pytest.raises(GitError, match=rf"{place.name} is a named pipe, so git is not run there\."):
        await run_git(path, ENVIRONMENT, "status", seconds=1.0)


async def test_a_push_says_why_git_is_not_run(path: Path) -> None:
    (path / ".git/packed-refs").unlink(missing_ok=True)
    os.mkfifo(path / ".git/packed-refs")
    with pytest.raises(GitError, match="packed-refs is a named pipe"):
        await CheckoutOperations(path, ENVIRONMENT).pack_branch(None, None)


async def test_git_does_not_read_what_no_repository_has(path: Path) -> None:
    index = path / ".git/index"
    size = index.stat().st_size
    os.truncate(index, 5 << 30)
    with pytest.raises(
        GitError, match=r"index is too large \(5,368,709,120 bytes\), .* try again\."
    ):
        await CheckoutOperations(path, ENVIRONMENT).commit("More", None)
    os.truncate(index, size)
    index.rename(path / ".git/real")
    index.symlink_to("real")
    (path / ".git/info/attributes").symlink_to(os.devnull)
    assert not await run_git(path, ENVIRONMENT, "status", "--porcelain")
    index.unlink()
    index.symlink_to("/dev/zero")
    with pytest.raises(GitError, match="index is a device"):
        await run_git(path, ENVIRONMENT, "status", seconds=1.0)


async def test_files_of_holes_are_not_read_to_compare_them(path: Path) -> None:
    repository = EngineRepository(
        id=uuid4(),
        name="tool",
        path=str(path),
        default_branch="main",
        base_commit=git(path, "rev-parse", "HEAD"),
    )
    (path / "small").write_text("new\n")
    for name in ("kept", "new file", 'a "quoted"\n*'):
        (path / name).touch()
        os.truncate(path / name, 1 << 40)  # reading one takes many minutes
    difference = await read_diff(repository, ENVIRONMENT)
    assert "+new" in difference
    assert "Binary files a/kept and b/kept differ" in difference
    assert "diff --git a/new file b/new file" in difference
    assert difference.count("Binary files ") == 3
    assert '"a/\\141\\040\\042' in difference
    state = await read_repository(repository, ENVIRONMENT, hooks_completed=True)
    assert state.git_diff == GitDiff(added=1, removed=0)
    assert state.uncommitted is not None and state.uncommitted.files == 4


async def test_too_many_large_files_are_refused_unread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.engine.git.LARGE_FILES", 0)
    os.truncate(path / "kept", 1 << 40)
    with pytest.raises(
        GitError, match=r"More than 0 changed files are larger than 64 MiB\. Remove"
    ):
        await large_files(path, "HEAD", ENVIRONMENT)


def test_a_repository_that_cannot_be_written_is_refused_in_a_sentence(path: Path) -> None:
    (path / ".git" / NOTE).mkdir()
    repository = EngineRepository(id=uuid4(), name="tool", path=str(path), default_branch="main")
    call = GitCall(operation="commit", repositories=[repository], message="More")
    command = [sys.executable, "-m", "quarterdeck.engine.git_tool"]
    data = call.model_dump_json(by_alias=True)
    done = subprocess.run(command, input=data, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    failure = GitFailure.model_validate_json(done.stderr)
    assert failure.message == "The repository cannot be written: Is a directory."
