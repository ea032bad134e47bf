"""An installation of its own for each test: home, repository, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.git import commit_files
from tests.support.program import Program
from tests.support.waiting import pauses


@dataclass
class Place:
    """Where a person works: a checkout, and a home for quarterdeck."""

    home: Path
    repository: Path
    programs: list[Program] = field(default_factory=list[Program])
    far: dict[str, str] = field(default_factory=dict[str, str])
    """How cockpits find a service elsewhere; empty: the home's own."""
    variables: dict[str, str] = field(default_factory=dict[str, str])
    """More variables of programs, and of the service that a cockpit starts."""
    service: "subprocess.Popen[bytes] | None" = None

    @property
    def environment(self) -> dict[str, str]:
        return {
            "QUARTERDECK_HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "QD_URL": "",
            "QD_API_KEY": "",
            **self.variables,
        }

    def cockpit(self, columns: int = 100, lines: int = 30) -> Program:
        """Opens `qd` in a terminal."""
        program = Program(
            [sys.executable, "-m", "quarterdeck"],
            columns=columns,
            lines=lines,
            environment={**self.environment, **self.far},
            directory=self.repository,
        )
        self.programs.append(program)
        return program

    def qd(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a verb."""
        done = forked.run(
            [sys.executable, "-m", "quarterdeck", *arguments],
            env={**os.environ, **self.environment},
            cwd=self.repository,
            text=True,
            timeout=60,
        )
        if check:
            done.check_returncode()
        return done

    def serve(self) -> None:
        """Starts the service; it ends with the test."""
        self.service = forked.ForkedPopen(
            [sys.executable, "-m", "quarterdeck", "serve"],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for pause in pauses(0.05):
            if not self.qd("status", check=False).returncode:
                return
            time.sleep(pause)

    def service_pid(self) -> int:
        """The process that holds the home's lock."""
        return int((self.home / "service" / "lock").read_text())

    def kill_service(self) -> None:
        """What a crash does to the service."""
        os.kill(self.service_pid(), signal.SIGKILL)


@pytest.fixture
def place(tmp_path: Path, require_tool: Callable[[str], str]) -> Iterator[Place]:
    """A checkout with a failing and a passing script."""
    require_tool("git")
    require_tool("bwrap")
    repository = tmp_path / "shop"
    repository.mkdir()
    (repository / "check.sh").write_text("#!/bin/sh\necho checking\ntest -f fixed\n")
    (repository / "README").write_text("A shop.\n")
    commit_files(repository)
    made = Place(tmp_path / "home", repository)
    yield made
    for program in made.programs:
        program.close()
    listed = made.qd("replica", "ls", "--json", check=False)
    if listed.returncode == 0:
        import json

        records = json.loads(listed.stdout)
        for record in records["replicas"] if isinstance(records, dict) else records:
            made.qd("replica", "rm", "--yes", record["id"], check=False)
    made.qd("stop", check=False)
    if made.service is not None:
        made.service.wait(60)
