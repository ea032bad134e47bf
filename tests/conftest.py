"""What every test may use."""

import asyncio
import compileall
import contextlib
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import quarterdeck
from quarterdeck.service.db.database import Database, sqlite_url
from tests.support.postgresql import Server, find_programs, running
from tests.support.tools import left_out, require

pytest_plugins = ["tests.support.snapshots"]

# How long it takes to make an example is the machine's load, and proves nothing.
settings.register_profile("loaded", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded")


DATABASES = ("sqlite", "postgresql")
LONGEST = (
    "test_storm.py",
    "test_codex_in_workspaces.py",
    "test_every_screen.py",
    "test_sandboxes_root.py",
    "test_git_kills.py",
)
"""Files that take over a minute."""
LONG = {"cli", "containers", "end_to_end", "git", "plain", "real_agents", "sandboxes", "system"}
"""Directories with most of the other files that take long."""
LARGER = {(120, 40), (200, 60)}
"""Sizes of pictures beside 80 by 24."""
YOUNG_OBJECTS = 50_000
"""The garbage of finished tests is collected when so many objects have been made."""
LONGEST_ID = 40
TOLD_LINES = 40
"""Lines of what a test said that failed and was run again."""
TOLD = pytest.StashKey[dict[str, Any]]()
PROGRAM = Path(quarterdeck.__file__).parent

MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes that have to be free in memory if the suite is to keep its files there."""


def _work_in_memory() -> None:
    """Keep all temporary files in memory where there is room, unless TMPDIR says where.

    Databases and journals wait for the disk at each commit, a quarter of the suite's time.
    """
    try:
        found = os.statvfs(MEMORY)
        told = Path("/proc/meminfo").read_text()
    except OSError:
        return
    available = int(told.partition("MemAvailable:")[2].split()[0]) * 1024
    usable = not found.f_flag & (os.ST_NOEXEC | os.ST_RDONLY) and os.access(MEMORY, os.W_OK)
    if usable and min(available, found.f_bavail * found.f_frsize) > ROOM:
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None  # pytest has asked for it already


_work_in_memory()

os.environ["GIT_CONFIG_SYSTEM"] = str(Path(__file__).parent / "support" / "gitconfig")

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
    parser.addoption(
        "--long",
        action="store_true",
        help="run also the tests marked `long`, those of storage on PostgreSQL and pictures in larger "
        "sizes; so does whoever names files or directories",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Decide whether long tests are run, and compile the program once.

    Engines and agents read it in sandboxes, where they cannot keep what they compiled, and who sets
    PYTHONDONTWRITEBYTECODE has every program that a test starts compile all that it reads.
    """
    config.option.long |= (
        config.args_source is pytest.Config.ArgsSource.ARGS
        or config.getoption("--update-snapshots")
        or "long" in config.option.markexpr
    )
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(PROGRAM, quiet=1)


def pytest_collection(session: pytest.Session) -> None:
    """Import a part of the test files first: on a fresh machine they are compiled with their assertions,
    and all processes would compile each of them.
    """
    given: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if given is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    tests = Path(__file__).parent
    number = int(given["workerid"].removeprefix("gw"))
    for path in sorted(tests.rglob("test_*.py"))[number :: given["workercount"]]:
        with contextlib.suppress(Exception):  # told when it is collected
            import_module(".".join(path.relative_to(tests.parent).with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.freeze()
    # A quarter of the time of tests of the cockpit went into collections with the usual thresholds:
    # most objects of a test live until its end, so between tests they are looked at only once.
    gc.set_threshold(500_000, 100, 100)
    gc.enable()


def pytest_runtest_logfinish() -> None:
    if gc.get_count()[0] > YOUNG_OBJECTS:
        gc.collect(0)


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
    second database where the marker says that it can tell nothing new, and long tests.
    """
    tests = Path(__file__).parent
    items.sort(
        key=lambda item: (
            item.path.name not in LONGEST,
            item.path.relative_to(tests).parts[0] not in LONG,
        )
    )
    if not config.getoption("--both-databases"):
        _leave_out(
            config, items, lambda item: item.get_closest_marker("one_database") and _second(item)
        )
    if not config.getoption("--long"):
        left = _leave_out(config, items, _is_long)
        getattr(config, "workeroutput", config.stash.setdefault(TOLD, {}))["long"] = left


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], which: Callable[[pytest.Item], object]
) -> int:
    left = {item for item in items if which(item)}
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
    return len(left)


def _second(item: pytest.Item) -> bool:
    return _given(item, "database_kind") == "postgresql"


def _is_long(item: pytest.Item) -> bool:
    """By its mark, or as the same again: on the second database, or in a size with more room."""
    larger = item.path.stem.endswith("_snapshots") and _given(item, "size") in LARGER
    return larger or _second(item) or item.get_closest_marker("long") is not None


def _given(item: pytest.Item, parameter: str) -> object:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get(parameter)


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], str]:
    """Finds a program that a test needs; without it the test is skipped, or fails under CI."""
    return require


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a process of tests has told, each the same."""
    node.config.stash.setdefault(TOLD, {}).update(getattr(node, "workeroutput", {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    lines = left_out(str(report.longrepr[2]) for report in skipped)
    if long := config.stash.get(TOLD, {}).get("long"):
        lines.append(f"{long} long tests were left out. To run them too: make test-all")
    if lines:
        terminalreporter.section("left out")
        for line in lines:
            terminalreporter.write_line(line)
    if again := terminalreporter.stats.get("rerun"):
        terminalreporter.section("why tests were run again")
        for report in again:
            told = report.longreprtext.splitlines()[-TOLD_LINES:]
            terminalreporter.write_line("\n".join([report.nodeid, *told, ""]))


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long text is told by its beginning and length; None leaves it to pytest."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return f"{val[:8]!r}... of {len(val)}"
    return None


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A running server, started for the first test that needs it."""
    with running(find_programs()) as server:
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
