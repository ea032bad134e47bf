"""A driver on a home of its own, a stand-in engine that runs commands, and real repositories."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.process import ProcessDriver
from tests.support.waiting import WAIT_SECONDS

STANDIN = """
import json, os, socket, subprocess, sys
run = sys.argv[sys.argv.index("--run-dir") + 1]
listener = socket.socket(socket.AF_UNIX)
workspace = os.getcwd()
os.chdir(run)
listener.bind("engine.sock.new")
listener.listen(16)
os.rename("engine.sock.new", "engine.sock")
os.chdir(workspace)
while True:
    connection, _ = listener.accept()
    with connection, connection.makefile("rwb") as stream:
        line = stream.readline()
        if not line:
            continue
        done = subprocess.run(
            json.loads(line), shell=True, capture_output=True, stdin=subprocess.DEVNULL
        )
        said = (done.stdout + done.stderr).decode(errors="replace")
        stream.write(json.dumps([done.returncode, said]).encode() + b"\\n")
"""
ENGINE = (sys.executable, "-I", "-c", STANDIN)


def run_git(*arguments: str, at: Path) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "ann@example.org",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    command = ["git", "-C", str(at), "-c", "safe.directory=*", *arguments]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **identity}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@dataclass
class Bench:
    """A driver with its home, and short names for what tests do with it."""

    home: Home
    driver: ProcessDriver
    reported: list[str] = field(default_factory=list[str])

    async def connect(self, url: Path | str, name: str | None = None) -> RepositorySource:
        repository_id = str(uuid4())
        info = await self.driver.connect_repository(repository_id, str(url))
        return RepositorySource(
            repository_id, name or info.suggested_name, info.url or str(url), info.default_branch
        )

    async def provision(self, *sources: RepositorySource, workspace_id: str | None = None) -> str:
        workspace_id = workspace_id or str(uuid4())
        await self.driver.provision(workspace_id, list(sources), "qd/one", self.reported.append)
        return workspace_id

    async def started(self, *sources: RepositorySource) -> str:
        workspace_id = await self.provision(*sources)
        await self.driver.write_config(workspace_id, "{}")
        await self.driver.start(workspace_id)
        return workspace_id

    async def inside(self, workspace_id: str, command: str) -> tuple[int, str]:
        """Runs a shell command in a started sandbox: its exit code and what it said."""
        reader, writer = await self.driver.connect(workspace_id)
        try:
            writer.write(json.dumps(command).encode() + b"\n")
            await writer.drain()
            answer = await asyncio.wait_for(reader.readline(), WAIT_SECONDS)
            code, said = json.loads(answer)
            return code, said.strip()
        finally:
            writer.close()
            await writer.wait_closed()

    async def said(self, workspace_id: str, command: str) -> str:
        code, said = await self.inside(workspace_id, command)
        assert code == 0, said
        return said

    async def close(self) -> None:
        for place in sorted(self.home.workspaces.glob("*")):
            if not place.name.startswith("."):
                await self.driver.destroy(place.name)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def engine() -> tuple[str, ...]:
    return ENGINE


@pytest.fixture
def git() -> Callable[..., str]:
    return run_git


@pytest.fixture
async def bench(home: Home) -> AsyncGenerator[Bench]:
    bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0))
    async with bench.driver.kept_ready():
        yield bench
        await bench.close()


@pytest.fixture
async def walled(bench: Bench, require_tool: Callable[[str], str]) -> Bench:
    """A bench whose sandboxes are bubblewrap's."""
    require_tool("bwrap")
    isolation = await bench.driver.isolation()
    assert isolation.mode == "bubblewrap", isolation.note
    return bench


@pytest.fixture
def few_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_tool: Callable[[str], str]
) -> Callable[[], AbstractContextManager[None]]:
    """Makes a PATH for a while on which there is git and no bubblewrap."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(require_tool("git"))

    @contextmanager
    def few() -> Generator[None]:
        with monkeypatch.context() as patch:
            patch.setenv("PATH", str(programs))
            yield

    return few


@pytest.fixture
async def bare(bench: Bench, few_programs: Callable[[], AbstractContextManager[None]]) -> Bench:
    """A bench whose sandboxes are plain processes."""
    with few_programs():
        assert (await bench.driver.isolation()).mode == "none"
    return bench


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two commits on `trunk` and one on `side`."""
    directory = tmp_path / "tools"
    directory.mkdir()
    run_git("init", "--quiet", "--initial-branch=trunk", at=directory)
    for number in range(2):
        (directory / "file.txt").write_text(f"line {number}\n")
        run_git("add", ".", at=directory)
        run_git("commit", "--quiet", "-m", f"change {number}", at=directory)
    run_git("branch", "side", "HEAD~1", at=directory)
    (directory / "inner").mkdir()
    return directory
