"""What every test may use."""

import asyncio
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from quarterdeck.service.db.database import Database
from quarterdeck.service.db.engines import sqlite_url
from tests.support.postgresql import Server, find_programs, running

DATABASES = ("sqlite", "postgresql")
LONG = {"end_to_end", "sandboxes", "system"}
"""Directories whose files take longest."""
LONGEST_ID = 40

# A shell that starts the suite in the background has it ignored, and every program begun by a test
# would inherit that and not hear of Ctrl+C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting the tests makes hundreds of thousands of objects that stay: the garbage collector need
# not look at them while they are made, nor in each of its rounds afterwards.
gc.disable()


def pytest_xdist_auto_num_workers() -> int:
    """More than processors: tests wait for processes much of their time."""
    return 2 * (os.cpu_count() or 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--both-databases",
        action="store_true",
        help="run also the tests marked `one_database` on PostgreSQL",
    )


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that a test starts find an empty home, and leave nothing in the person's."""
    before = os.environ["HOME"]
    os.environ["HOME"] = str(tmp_path_factory.mktemp("person"))
    yield
    os.environ["HOME"] = before


@pytest.hookimpl(trylast=True)  # after they were put in random order
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the longest files first, so that none begins when all others are done; leaves out the
    second database where the marker says that it can tell nothing new.
    """
    items.sort(key=lambda item: item.path.parent.name not in LONG)
    if config.getoption("--both-databases"):
        return
    second = {item for item in items if item.get_closest_marker("one_database") and _second(item)}
    if second:
        config.hook.pytest_deselected(items=[item for item in items if item in second])
        items[:] = [item for item in items if item not in second]


def _second(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("database_kind") == "postgresql"


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], str]:
    """Finds a program that a test needs; without it the test is skipped, or fails under CI."""

    def require(name: str) -> str:
        found = shutil.which(name)
        if found:
            return found
        _missing(name)

    return require


def _missing(name: str) -> NoReturn:
    message = f"{name} is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long text is told by its beginning and length; None leaves it to pytest."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return f"{val[:8]!r}... of {len(val)}"
    return None


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A running server, started for the first test that needs it."""
    programs = find_programs()
    if programs is None:
        _missing("postgresql")
    with running(programs) as server:
        yield server


@pytest.fixture(scope="session")
def _template(postgresql: Server) -> str:
    """A database with the schema, to be copied: to make one takes the time of several tests."""
    name = postgresql.create()
    asyncio.run(_make(postgresql.url(name)))
    return name


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Likewise a file."""
    path = tmp_path_factory.mktemp("template") / "template.sqlite3"
    asyncio.run(_make(sqlite_url(path)))
    assert [one.name for one in path.parent.iterdir()] == [path.name]  # no log lies beside it
    return path


async def _make(url: str) -> None:
    await (await Database.open(url)).close()


@pytest.fixture
def database_kind() -> str:
    """`sqlite` or `postgresql`; a module or directory for both has one with `params=DATABASES`."""
    return "sqlite"


@pytest.fixture
def empty_database_url(
    database_kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[str]:
    """A database of the test's own, without a table."""
    if database_kind == "sqlite":
        yield sqlite_url(tmp_path / "empty.sqlite3")
        return
    server: Server = request.getfixturevalue("postgresql")
    name = server.create()
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def database_url(
    database_kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[str]:
    """A database of the test's own, which has the schema already."""
    if database_kind == "sqlite":
        path = tmp_path / "test.sqlite3"
        shutil.copyfile(request.getfixturevalue("_sqlite_template"), path)
        yield sqlite_url(path)
        return
    server: Server = request.getfixturevalue("postgresql")
    name = server.create(request.getfixturevalue("_template"))
    yield server.url(name)
    server.drop(name)
