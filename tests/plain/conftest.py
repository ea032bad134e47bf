"""A service whose replicas have agents that do as they are told, and ways to talk to `qd --plain`."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from time import monotonic

import pytest

from tests.cli.conftest import PROGRAM, Installation, new_installation, serving
from tests.support import forked
from tests.support.git import commit_files
from tests.support.waiting import WAIT_SECONDS

AGENT = Path(__file__).with_name("agent.py")


@dataclass
class Shop(Installation):
    """A running service, and the repository that the person is in."""

    repository: Path = Path()

    def plain(self) -> "Talk":
        """Open the cockpit as lines, with pipes."""
        return Talk(self)


def write_agent(made: Installation, base: Path) -> None:
    """Write the agent below `base`, and the configuration file that names it."""
    program = base / "agent"
    program.write_text(f"#!{sys.executable} -IS\n{AGENT.read_text()}")
    program.chmod(0o755)
    made.home.mkdir()
    table = f'[agents.scripted]\nname = "Scripted"\ncommand = ["{program}"]\n'
    (made.home / "config.toml").write_text(table)


@pytest.fixture(scope="module")
def open_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    base = tmp_path_factory.mktemp("plain")
    repository = base / "shop"
    repository.mkdir()
    (repository / "README").write_text("A shop.\n")
    commit_files(repository)
    made = new_installation(base / "home")
    write_agent(made, base)
    here = Shop(made.home, made.environment, repository=repository)
    with serving(here):
        try:
            yield here
        finally:
            here.qd("stop")


@pytest.fixture
def shop(open_shop: Shop) -> Iterator[Shop]:
    """The service without a replica, and the repository as it was at first."""
    yield open_shop
    records = open_shop.qd("replica", "ls", "--json").json["replicas"]
    if records:
        gone = open_shop.qd("replica", "rm", "--yes", *(record["id"] for record in records))
        assert gone.code == 0, gone.err
    git = ["git", "-C", str(open_shop.repository)]
    branches = ["for-each-ref", "--format=delete %(refname)", "refs/heads/qd"]
    refs = subprocess.run([*git, *branches], check=True, capture_output=True)
    subprocess.run([*git, "update-ref", "--stdin"], check=True, input=refs.stdout)
    first = ["rev-list", "--max-parents=0", "main"]
    at_first = subprocess.run([*git, *first], check=True, capture_output=True, text=True)
    subprocess.run([*git, "reset", "-q", "--hard", at_first.stdout.strip()], check=True)


class Talk:
    """`qd --plain` with pipes: lines go in, and are waited for."""

    def __init__(self, shop: Shop) -> None:
        self.process: subprocess.Popen[str] = forked.ForkedPopen(
            [*PROGRAM, "--plain"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=shop.environment,
            cwd=shop.repository,
        )
        self.lines: list[str] = []
        self._come: Queue[str | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(WAIT_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._come.put(line.rstrip("\n"))
        self._come.put(None)

    def type(self, *lines: str) -> None:
        """Send lines."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def until(self, text: str) -> list[str]:
        """Return the lines up to the one that contains a text."""
        found: list[str] = []
        end = monotonic() + WAIT_SECONDS
        while True:
            try:
                line = self._come.get(timeout=max(0.0, end - monotonic()))
            except Empty:
                raise AssertionError(f"no line with {text!r} after {self.lines}") from None
            if line is None:
                raise AssertionError(f"ended without {text!r} after {self.lines}")
            self.lines.append(line)
            found.append(line)
            if text in line:
                return found

    def finish(self) -> int:
        """End the input, take the last lines, and return the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = self.process.wait(WAIT_SECONDS)
        while (line := self._come.get(timeout=WAIT_SECONDS)) is not None:
            self.lines.append(line)
        assert not any("\x1b" in line for line in self.lines)
        return status


NEW = ("new", "", "scripted")


def create(talk: Talk, name: str, *prompt: str) -> None:
    """Create a replica of the repository here, and wait until it is open."""
    talk.type(*NEW, name, *prompt, ".")
    talk.until(f"Opened {name}")
