"""Running git: what a cancellation does, and what git may use."""

import asyncio
import itertools
import os
from pathlib import Path

import pytest

from quarterdeck.sandboxes import git as module
from quarterdeck.sandboxes import git_limits
from quarterdeck.sandboxes.disk import Room
from quarterdeck.sandboxes.errors import DiskFullError
from quarterdeck.sandboxes.git import GitRunner, SourceGitError, write_configuration
from quarterdeck.sandboxes.git_limits import Limits
from tests.support.git import commit_files, git, make_repository
from tests.support.waiting import WAIT_SECONDS

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


async def test_many_may_write_the_configuration_at_once(tmp_path: Path) -> None:
    path = tmp_path / "gitconfig"

    def often() -> None:
        for _ in range(200):
            write_configuration(path, {"HOME": "/nowhere"})

    await asyncio.gather(*(asyncio.to_thread(often) for _ in range(4)))
    assert "directory = *" in path.read_text()
    assert await asyncio.to_thread(lambda: [*tmp_path.iterdir()]) == [path]


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancellation_that_comes_with_the_end_is_not_lost(
    turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever turn of the loop it comes in: who cancels a life waits for its end."""
    ended = asyncio.Event()
    start = asyncio.create_subprocess_exec

    async def started(*command, **options):
        process = await start(*command, **options)
        wait = process.wait

        async def until_told():
            status = await wait()
            ended.set()
            return status

        process.wait = until_told
        return process

    monkeypatch.setattr(module.asyncio, "create_subprocess_exec", started)

    async def life() -> None:
        await GitRunner(tmp_path / "gitconfig").run("--version")
        await asyncio.Event().wait()

    task = asyncio.create_task(life())
    await ended.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=WAIT_SECONDS)
    if not done:
        task.cancel()
    assert done, "the cancellation was lost"
    assert task.cancelled()


@pytest.mark.parametrize("stream", [1, 2])
async def test_endless_output_is_not_kept(
    stream: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OUTPUT_LIMIT", 1 << 20, raising=False)
    endless = f"alias.endless=!yes | head -c 100000000 >&{stream}"
    with pytest.raises(SourceGitError, match="wrote more than 1 MiB"):
        await GitRunner(tmp_path / "gitconfig").run("-c", endless, "endless", directory=tmp_path)


async def test_the_search_for_processes_of_a_killed_service_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However many there are: others may start them faster than they are read."""
    looked = itertools.count()
    endless = iter(lambda: os.getpid() if next(looked) < 100_000 else 0, 0)
    monkeypatch.setattr(module, "process_ids", lambda: endless)
    monkeypatch.setattr(module, "_SCAN_SECONDS", 0.1, raising=False)
    await GitRunner(tmp_path / "gitconfig").end_abandoned()
    assert next(looked) < 100_000
    assert "not all processes were looked at" in caplog.text


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A bare repository with one file of 64 MiB that packs to a few kilobytes."""
    made = make_repository(tmp_path / "checkout")
    (made / "zeros").write_bytes(bytes(64 << 20))
    commit_files(made)
    return made / ".git"


async def test_git_has_a_limit_of_memory(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a source holds: a few kilobytes of it may be gigabytes in memory."""
    runner = GitRunner(tmp_path / "gitconfig")
    read = ("-c", "core.bigFileThreshold=1g", "diff", "--numstat", EMPTY_TREE, "HEAD")
    assert "zeros" in await runner.run(*read, directory=large)
    monkeypatch.setattr(module, "usual_limits", lambda: Limits(48 << 20, 60))
    with pytest.raises(SourceGitError, match="limit of memory"):
        await runner.run(*read, directory=large)


async def test_git_has_a_limit_of_processor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "usual_limits", lambda: Limits(1 << 30, 1))
    busy = "alias.busy=!while :; do :; done"
    with pytest.raises(SourceGitError, match="limit of processor time"):
        await GitRunner(tmp_path / "gitconfig").run("-c", busy, "busy", directory=tmp_path)


async def test_git_leaves_what_is_reserved_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = GitRunner(tmp_path / "gitconfig")
    place = tmp_path / "bare"
    await runner.run("init", "--quiet", "--bare", str(place))
    noise = os.urandom(3 << 20)
    await runner.run("hash-object", "-w", "--stdin", directory=place, data=noise)
    monkeypatch.setattr(git_limits, "LEAST_FILE", 1 << 20)
    monkeypatch.setattr(git_limits, "room_at", lambda path: Room(256 << 20, 256 << 20, 0, 0))
    with pytest.raises(DiskFullError):
        noise = os.urandom(3 << 20)
        await runner.run("hash-object", "-w", "--stdin", directory=place, data=noise)


async def test_git_does_not_read_the_repository_that_the_service_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = make_repository(tmp_path / "around")
    git(around, "config", "user.name", "Planted")
    monkeypatch.chdir(around)
    runner = GitRunner(tmp_path / "gitconfig")
    with pytest.raises(SourceGitError):
        await runner.run("config", "--get", "user.name")
    damaged = around / "mirror"
    damaged.mkdir()
    with pytest.raises(SourceGitError):
        await runner.run("config", "--get", "user.name", directory=damaged)
