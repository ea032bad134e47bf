"""Checkpoints of a checkout, and going back to one."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.engine.git import GitError, read_repository, run_git
from quarterdeck.engine.git_operations import NOTE, CheckoutOperations, make_ready, read_diff
from quarterdeck.service.git import inside
from quarterdeck.wire.git import GitCall, GitFailure
from quarterdeck.wire.git_state import EngineRepository, GitDiff

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
