"""A whole installation for the time of a benchmark: a home, a repository, the service."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QD = (sys.executable, "-m", "quarterdeck")
AT_REST = ("sleeping", "archived")
"""States in which a replica has no process."""
START_SECONDS = 120.0
"""The first start compiles the whole program."""


@dataclass
class Installation:
    """`directory` holds everything; `repository` is a git repository with some files."""

    directory: Path
    home: Path
    repository: Path
    before: tuple[str, ...] = ()
    """The command that runs the service."""
    service: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Starts the service; returns when it answers."""
        with (self.directory / "serve.log").open("ab") as log:
            self.service = subprocess.Popen(
                [*self.before, *QD, "serve"], env=self.environment, stderr=log, stdout=log
            )
        _wait_until_ready(self)

    def stop(self) -> None:
        """Ends the service; replicas stay."""
        if self.service is not None:
            self.service.terminate()
            self.service.wait(timeout=20)

    @contextmanager
    def database(self) -> Generator[sqlite3.Connection]:
        """The database of the stopped service, which is started again."""
        self.stop()
        path = self.home / "service" / "quarterdeck.sqlite3"
        with closing(sqlite3.connect(path)) as opened, opened:
            opened.row_factory = sqlite3.Row
            yield opened
        self.start()

    @property
    def environment(self) -> dict[str, str]:
        # As in an installed program, whose code is compiled.
        compiled = {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.directory / "pyc"),
        }
        return {
            **os.environ,
            **compiled,
            "QUARTERDECK_HOME": str(self.home),
            "LANG": "C.UTF-8",
        }

    def qd(self, *arguments: str) -> str:
        """Runs a verb and gives back what it printed.

        Raises:
            RuntimeError: the verb failed; the text is what it said.
        """
        done = subprocess.run(
            [*QD, *arguments],
            env=self.environment,
            cwd=self.repository,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"qd {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """Runs a verb with `--json`."""
        return json.loads(self.qd(*arguments, "--json"))


def make_repository(path: Path, files: int) -> None:
    """A git repository with `files` small files in one commit."""
    path.mkdir(parents=True)
    for number in range(files):
        file = path / f"d{number // 100:03}" / f"file{number:05}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"line {number}\n" * 20)
    git = ["git", "-c", "user.name=Someone", "-c", "user.email=someone@example.invalid"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run([*git, *command], cwd=path, check=True)


@contextmanager
def installation(
    files: int = 20,
    config: Callable[[Installation], str] | None = None,
    before: tuple[str, ...] = (),
) -> Generator[Installation]:
    """Makes an installation with a running service, and leaves nothing behind.

    `config` gives what stands in its configuration file. `before`: the command that runs the service.
    """
    directory = Path(tempfile.mkdtemp(prefix="qd-bench-"))
    made = Installation(directory, directory / "home", directory / "repository", before)
    make_repository(made.repository, files)
    if config is not None:
        made.home.mkdir(mode=0o700)
        (made.home / "config.toml").write_text(config(made))
    try:
        made.start()
        yield made
    finally:
        for replica in _replicas(made):
            if replica["status"] not in AT_REST:
                made.qd("replica", "rm", "--yes", str(replica["id"]))
        made.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _replicas(made: Installation) -> list[dict[str, Any]]:
    found = made.json("replica", "ls")
    return found["replicas"] if isinstance(found, dict) else found


def _wait_until_ready(made: Installation) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            made.qd("status")
        except RuntimeError:
            continue
        return
    raise RuntimeError((made.directory / "serve.log").read_text())
