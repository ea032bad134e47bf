"""Cockpits for tests: a frozen one, and one over the real service."""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.git import commit_files
from tests.support.tools import require
from tests.tui_shell.frozen import FrozenCockpit
from tests.tui_shell.live import Installation


@pytest.fixture(autouse=True)
def fixed_clock_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Moments are shown in the zone of the person: here always the same."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    time.tzset()


@pytest.fixture
def frozen(tmp_path: Path) -> FrozenCockpit:
    return FrozenCockpit(tmp_path / "client")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One service for the tests of a module."""
    with new_installation(tmp_path_factory.mktemp("work")) as made:
        yield made


@contextmanager
def new_installation(work: Path) -> Generator[Installation]:
    """A service that runs, with a repository in a directory of the test."""
    require("git")
    with tempfile.TemporaryDirectory(prefix="qd-") as directory:
        repository = work / "shop"
        repository.mkdir()
        (repository / "README").write_text("A shop.\n")
        commit_files(repository)
        # Not pytest's own directory: sockets have short names, and sandboxes another user.
        Path(directory).chmod(0o755)
        made = Installation(Path(directory) / "home", repository)
        made.start()
        yield made
        made.stop()


@pytest.fixture
async def live(installation: Installation) -> AsyncIterator[Installation]:
    """The service, running, and without replicas before and after."""
    if installation.process is None or installation.process.poll() is not None:
        installation.start()
    await installation.ready()
    yield installation
    if installation.process is None or installation.process.poll() is not None:
        installation.start()
    await installation.ready()
    await installation.clear()


@pytest.fixture
def live_service(installation: Installation) -> Iterator[Installation]:
    """The same for tests without a loop of their own."""
    if installation.process is None or installation.process.poll() is not None:
        installation.start()
    asyncio.run(installation.ready())
    yield installation
    asyncio.run(installation.clear())
