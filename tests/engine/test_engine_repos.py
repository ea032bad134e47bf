import asyncio
import os
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.terminals import CreateTerminal, ExecRequest

GIT = {
    **os.environ,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=path, env=GIT, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
async def repository(place):
    place.workspace.mkdir()
    path = place.workspace / "tool"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "code.txt").write_text("one\ntwo\nthree\n")
    (path / ".gitignore").write_text("ignored\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "start")
    base = git(path, "rev-parse", "HEAD")
    git(path, "checkout", "-qb", "qd/mine")
    place.repositories = [
        EngineRepository(
            id=uuid4(), name="tool", path=str(path), default_branch="main", base_commit=base
        )
    ]
    place.environment |= {k: v for k, v in GIT.items() if k.startswith("GIT_")}
    return path


async def test_the_state_is_discovered_and_told_when_it_changed(place, repository: Path):
    await place.start()
    entries, link = await place.entries(), await place.link()
    found = await entries.wait("repo.discovered")
    (repo,) = found.payload["repos"]
    assert (repo["name"], repo["currentBranch"], repo["defaultBranch"]) == (
        "tool",
        "qd/mine",
        "main",
    )
    assert repo["gitDiff"] | {"fullDiff": None} == {"added": 0, "removed": 0, "fullDiff": None}
    command = "cd tool && printf 'a\\nb\\nc' > new.txt && echo x > ignored && sed -i 1d code.txt"
    await link.exec(ExecRequest(command=command))
    (changed,) = (await entries.wait("repo.status.changed")).payload["repos"]
    assert (changed["gitDiff"]["added"], changed["gitDiff"]["removed"]) == (3, 1)
    assert changed["untracked"] == ["new.txt"]
    await link.exec(ExecRequest(command="cd tool && git add -A && git commit -qm more"))
    (kept,) = (await entries.wait("repo.status.changed", 2)).payload["repos"]
    assert kept["gitDiff"] == changed["gitDiff"] and kept["untracked"] == []


async def test_the_whole_difference_with_new_files_and_without_ignored_ones(
    place, repository: Path
):
    await place.start()
    link = await place.link()
    assert (await link.repos_diffs()).diffs[0].diff == ""
    (repository / "code.txt").write_text("one\nthree\n")
    git(repository, "commit", "-qam", "less")
    (repository / "new.txt").write_text("fresh\n")
    (repository / "ignored").write_text("unseen\n")
    (repository / "code.txt").write_text("one\nthree\nfour\n")
    before = git(repository, "status", "--porcelain"), snapshot(repository / ".git")
    (told,) = (await link.repos_diffs()).diffs
    assert told.name == "tool"
    lines = told.diff.splitlines()
    assert {"-two", "+four", "+fresh", "--- /dev/null", "+++ b/new.txt"} <= set(lines)
    assert "unseen" not in told.diff
    assert (git(repository, "status", "--porcelain"), snapshot(repository / ".git")) == before
    (repository / "new.txt").write_text("a long line of a large file\n" * 100_000)
    (told,) = (await link.repos_diffs()).diffs
    assert len(told.diff) <= 1 << 20 and told.diff.endswith("a long line of a large file\n")
    (repository / ".git").rename(repository / "not a repository any more")
    assert (await link.repos_diffs()).diffs == []


def snapshot(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


async def test_an_unchanged_state_is_not_told_again(place, repository: Path):
    await place.start()
    entries, link = await place.entries(), await place.link()
    await entries.wait("repo.discovered")  # told again when the start hooks are done
    answers = await asyncio.gather(*(link.repos_refresh() for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    (repository / "more.txt").write_text("1\n")
    after = await link.repos_refresh()
    assert after.repos[0].git_diff is not None and after.repos[0].git_diff.added == 1
    assert entries.types().count("repo.discovered") == 1
    await entries.wait("repo.status.changed")


async def test_work_in_a_terminal_is_noticed_when_it_goes_quiet(place, repository: Path, keys):
    await place.start()
    entries, link = await place.entries(), await place.link()
    await entries.wait("repo.discovered")
    session = (await link.terminal_create(CreateTerminal(cols=80, rows=24))).session
    await keys(link, session.id)("cd tool; git rm -q code.txt; git checkout -q --detach\r")
    (repo,) = (await entries.wait("repo.status.changed")).payload["repos"]
    while repo["gitDiff"]["removed"] != 3 or repo["currentBranch"] is not None:
        seen = entries.types().count("repo.status.changed")
        (repo,) = (await entries.wait("repo.status.changed", seen + 1)).payload["repos"]


async def test_a_checkout_that_is_gone_is_told_without_numbers(place, repository: Path):
    git(repository.parent, "clone", "-q", "tool", "elsewhere")
    place.repositories[0].path = str(repository.parent / "not there")
    await place.start()
    entries = await place.entries()
    (repo,) = (await entries.wait("repo.discovered")).payload["repos"]
    assert repo["currentBranch"] is None and repo["gitDiff"] is None


async def test_a_command_starts_above_the_repository_or_in_it(place, repository: Path):
    await place.start()
    link = await place.link()
    above = await link.exec(ExecRequest(command="pwd"))
    inside = await link.exec(ExecRequest(command="pwd", in_repository=True))
    assert above.output == f"{place.workspace}\n"
    assert inside.output == f"{repository}\n"
