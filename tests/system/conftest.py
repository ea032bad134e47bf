"""Installations for the tests of the whole system."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.git import make_repository
from tests.support.installation import Installation, remove


@contextmanager
def installed() -> Iterator[Installation]:
    """An installation that must be empty, and have a clean log, at its end."""
    # Not pytest's own directory: other users must be able to pass, and sockets have short names.
    base = Path(tempfile.mkdtemp(prefix="qd-system-"))
    base.chmod(0o755)
    made = Installation(base)
    try:
        yield made
        made.revive()
        ids = [path.name for path in made.home.workspaces.glob("*")]
        made.delete_all()
        made.check_gone(*ids)
        assert list(made.home.workspaces.glob("*")) == []
        made.stop()
        made.check_ended()
        made.check_log()
    finally:
        made.stop()
        made.kill_all()
        remove(base)


@pytest.fixture(scope="session")
def _shared() -> Iterator[Installation]:
    with installed() as made:
        made.start()
        yield made


@pytest.fixture
def deck(_shared: Installation, require_tool: Callable[[str], str]) -> Installation:
    """The running installation that all tests share; a test leaves the service running."""
    require_tool("bwrap")
    require_tool("git")
    _shared.revive()
    return _shared


@pytest.fixture
def own(require_tool: Callable[[str], str]) -> Iterator[Installation]:
    """An installation of the test's own, running."""
    require_tool("bwrap")
    require_tool("git")
    with installed() as made:
        made.start()
        yield made


@pytest.fixture(scope="session")
def _repository(_shared: Installation) -> Path:
    return make_repository(_shared.base / "shop")


@pytest.fixture
def repository(_repository: Path) -> Path:
    """A checkout that nobody changes."""
    return _repository


@pytest.fixture(scope="session")
def _stocked(_shared: Installation, _repository: Path) -> str:
    return _shared.environment_with(_shared.connect(str(_repository)))


@pytest.fixture
def stocked(_stocked: str, deck: Installation) -> str:
    """An environment with that repository."""
    return _stocked


@pytest.fixture(scope="session")
def _active(_shared: Installation, _stocked: str) -> str:
    return _shared.create(_stocked)


@pytest.fixture
def active(_active: str, deck: Installation) -> str:
    """An active replica that stays active; for tests that do not need one of their own."""
    return _active
