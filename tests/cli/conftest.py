"""The real program in a home of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.git import commit_files

PROGRAM = [sys.executable, "-P", "-m", "quarterdeck"]
SECONDS = 60


@dataclass
class Ended:
    """What one run of the program left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Installation:
    """A home and a way to run `qd` on it."""

    home: Path
    environment: dict[str, str]
    kept: tuple[str, ...] = ()
    """The names of the replicas that all tests of a module share."""

    def qd(
        self, *arguments: str, stdin: str = "", cwd: Path | None = None, **variables: str
    ) -> Ended:
        done = forked.run(
            [*PROGRAM, *arguments],
            input=stdin,
            text=True,
            timeout=SECONDS,
            env=self.environment | variables,
            cwd=cwd or self.home.parent,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def forget_others(self) -> None:
        """Removes the replicas that a failed try of a test left: their names are taken."""
        for record in self.qd("replica", "ls", "--json").json["replicas"]:
            if record["name"] not in self.kept:
                self.qd("replica", "rm", "--yes", record["id"])

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return forked.ForkedPopen(
            [*PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.home.parent,
        )

    @property
    def pid(self) -> int | None:
        try:
            return int((self.home / "service" / "lock").read_text())
        except (OSError, ValueError):
            return None


def new_installation(home: Path) -> Installation:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("QD_", "QUARTERDECK_"))
    }
    return Installation(home, environment | {"QUARTERDECK_HOME": str(home)})


@contextmanager
def serving(made: Installation) -> Generator[None]:
    process = made.start("serve", "--listen", "127.0.0.1:0", "--json")
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    made.environment["QD_TEST_URL"] = ready["listening"][1]
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """A home that nothing was started in; its service is stopped afterwards."""
    made = new_installation(tmp_path / "home")
    yield made
    made.qd("stop")


@pytest.fixture
def service(installation: Installation) -> Iterator[Installation]:
    """A home whose service runs and listens on TCP too; `QD_TEST_URL` names it."""
    with serving(installation):
        yield installation


@pytest.fixture(autouse=True)
def _from_the_start(request: pytest.FixtureRequest) -> None:
    """A test that failed and is run again finds the service of its module as the first try did."""
    if getattr(request.node, "execution_count", 1) > 1:
        for name in {"deck", "scripted", "shop"} & set(request.fixturenames):
            request.getfixturevalue(name).forget_others()


@dataclass
class Deck(Installation):
    """A running service, a repository, and one active replica of it named `probe`."""

    repository: Path = Path()

    @property
    def argv(self) -> list[str]:
        return PROGRAM


@pytest.fixture(scope="module")
def deck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deck]:
    """One for all tests of a module: sandboxes, engines and agents are real."""
    base = tmp_path_factory.mktemp("deck")
    repository = base / "shop"
    repository.mkdir()
    (repository / "README").write_text("A shop.\n")
    commit_files(repository)
    plain = new_installation(base / "home")
    made = Deck(plain.home, plain.environment, ("probe",), repository)
    with serving(made):
        try:
            created = made.qd("replica", "create", "--name", "probe", "--wait", cwd=repository)
            assert created.code == 0, created.err
            yield made
        finally:
            for record in made.qd("replica", "ls", "--json").json["replicas"]:
                made.qd("replica", "rm", "--yes", record["id"])
            made.qd("stop")
