"""A home whose files are damaged: every command answers or ends with a reason; none waits for ever."""

import logging
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.source_port import LocalDriver
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import HomeUnusableError, StorageError
from quarterdeck.service.start import open_service
from tests.support.git import make_repository
from tests.support.installation import Installation, block, remove
from tests.support.waiting import until

OF_REPLICA = [
    "sandbox.json",
    "clones.json",
    "status.jsonl",
    "run/engine.json",
    "run/engine.log",
    "state/journal.jsonl",
    "state/installed.json",
    "run/engine.lock",
]
SERVICE = ["home.id", "key", "lock", "master.key", "quarterdeck.sqlite3"]
CONFIG = "config.toml"
Damage = Callable[[Path, bytes], None]


def truncated(path: Path, data: bytes) -> None:
    path.write_bytes(data[: len(data) // 2])


def zeroed(path: Path, data: bytes) -> None:
    path.write_bytes(b"\0" * max(len(data), 64))


def garbage(path: Path, data: bytes) -> None:
    path.write_bytes(bytes((7 * n * n + n) % 256 for n in range(max(len(data), 64))))


def removed(path: Path, data: bytes) -> None:
    pass


def emptied(path: Path, data: bytes) -> None:
    path.write_bytes(b"")


def directory(path: Path, data: bytes) -> None:
    path.mkdir()


def pipe(path: Path, data: bytes) -> None:
    os.mkfifo(path)


DAMAGES = [truncated, zeroed, garbage, removed, directory, pipe]


class Whole:
    """An installation with a replica that was running when the machine lost power."""

    def __init__(self, base: Path) -> None:
        base.chmod(0o755)
        self.made = Installation(base, {"XDG_CONFIG_HOME": str(base / "config"), "HOME": str(base)})
        self.config = self.made.home.root / CONFIG
        self.made.start()
        repository = make_repository(base / "shop")
        environment = self.made.environment_with(self.made.connect(str(repository)))
        self.replica = self.made.create(environment)
        self.made.turn(self.replica, block("echo hello"))
        self.made.kill()
        self.made.kill_all()
        self.config.write_text("[service]\nmax_active = 9\n")
        for socket in self.made.home.root.rglob("*.sock"):
            socket.unlink()
        self.copy = base / "whole"
        self._copy(self.made.home.root, self.copy)

    def restore(self) -> None:
        remove(self.made.home.root)
        self._copy(self.copy, self.made.home.root)

    def _copy(self, source: Path, target: Path) -> None:
        subprocess.run(["cp", "-a", str(source), str(target)], check=True)

    def path(self, name: str) -> Path:
        root = self.made.home.root
        if name in SERVICE:
            return root / "service" / name
        return root / name if name == CONFIG else root / "workspaces" / self.replica / name


@pytest.fixture(scope="module")
def whole(require_tool: Callable[[str], str]) -> Iterator[Whole]:
    require_tool("bwrap")
    base = Path(tempfile.mkdtemp(prefix="qd-damaged-"))
    made = Whole(base)
    try:
        yield made
    finally:
        made.made.stop()
        made.made.kill_all()
        remove(base)


def harm(path: Path, damage: Damage) -> None:
    data = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    damage(path, data)


def answers(whole: Whole) -> bool:
    """Whether the service starts; it and the commands say something, or the reason why not."""
    made = whole.made
    made.log.unlink(missing_ok=True)
    try:
        made.start()
        started = True
    except AssertionError:
        started = False
    said = made.log.read_text()
    if started:
        listed = made.qd("replica", "ls")
        assert "Traceback" not in listed.stderr, listed.stderr
        assert listed.returncode == 0 or listed.stderr.startswith("qd: ")
    else:
        assert made.process is not None
        assert made.process.wait(60) not in (0, -signal.SIGKILL), "it neither started nor ended"
        made.process.communicate()
        made.process = None
        assert "qd: " in said, said
    assert "Traceback" not in said, said
    return started


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*SERVICE, CONFIG])
def test_files_of_the_service(whole: Whole, name: str, damage: Damage) -> None:
    whole.restore()
    harm(whole.path(name), damage)
    answers(whole)
    whole.made.stop()
    if damage in (garbage, pipe):
        checked = whole.made.qd("doctor")
        assert "Traceback" not in checked.stderr + checked.stdout
    whole.made.kill_all()


@pytest.mark.parametrize("shift", range(len(DAMAGES)))
def test_files_of_a_replica(whole: Whole, shift: int) -> None:
    """Every file has another damage; over all cases each has had each."""
    whole.restore()
    for number, name in enumerate(OF_REPLICA):
        harm(whole.path(name), DAMAGES[(number + shift) % len(DAMAGES)])
    assert answers(whole)

    def settled() -> bool:
        found = whole.made.replica(whole.replica)
        assert found["status"] != "error" or found["error"]
        return found["status"] in ("active", "error", "sleeping")

    until(settled)
    whole.made.stop()
    whole.made.kill_all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("sandbox.json", "sandbox.json"),
        ("clones.json", "clones.json"),
        ("status.jsonl", "status.jsonl"),
        ("run/engine.json", "run/engine.json"),
        ("state/journal.jsonl", "/var/lib/replica/journal.jsonl"),
        ("state/installed.json", "installed.json"),
    ],
)
def test_a_directory_in_the_place_of_a_replicas_file_is_named_with_the_way_out(
    whole: Whole, name: str, place: str
) -> None:
    whole.restore()
    path = whole.path(name)
    harm(path, directory)
    made = whole.made
    made.start()

    def failure() -> str | None:
        found = made.replica(whole.replica)
        if found["status"] == "sleeping":
            made.ask("POST", f"/v1/replica/{whole.replica}/wake")
        return found["error"] if found["status"] == "error" else None

    assert f"{place} is a directory in the place of a file; move it away" in until(failure)
    path.rmdir()
    made.post(f"/v1/replica/{whole.replica}/wake", status=202)
    made.reach(whole.replica, "active")
    made.stop()
    made.kill_all()


@asynccontextmanager
async def opened(home: Home) -> AsyncGenerator[ServiceContext]:
    async with open_service(home, cast("LocalDriver", None), list) as context:
        yield context


@pytest.mark.parametrize("kept", ["workspaces/{}/files", "archives/{}.tar.gz", "saves/{}.git"])
@pytest.mark.parametrize("damage", [removed, emptied, directory, pipe])
async def test_a_lost_database_is_not_replaced_beside_replicas(
    tmp_path: Path, kept: str, damage: Damage
) -> None:
    home = Home(tmp_path)
    async with opened(home):
        pass
    (tmp_path / kept.format(uuid4())).mkdir(parents=True)
    async with opened(home):
        pass
    harm(home.database, damage)
    left = sorted(home.service.glob("*.sqlite3*"))
    with pytest.raises(HomeUnusableError, match=r"(?s)missing or empty.*backup.*-wal.*elsewhere"):
        async with opened(home):
            pass
    assert sorted(home.service.glob("*.sqlite3*")) == left
    for name in ("workspaces", "archives", "saves"):
        (tmp_path / name).rename(tmp_path / f"{name}-old") if (tmp_path / name).exists() else None
    if damage in (removed, emptied):
        async with opened(home):
            pass


@pytest.mark.parametrize(
    ("name", "damage"),
    [("service/lock", directory), ("service/stopped", directory), ("inside", emptied)],
)
async def test_what_keeps_the_home_from_being_taken_is_named(
    tmp_path: Path, name: str, damage: Damage
) -> None:
    home = Home(tmp_path)
    async with opened(home):
        pass
    path = tmp_path / name
    if path.is_dir():
        path.rmdir()
    harm(path, damage)
    with pytest.raises(HomeUnusableError, match=f"{path} cannot be"):
        async with opened(home):
            pass


@pytest.mark.parametrize("start", [0, 4096])
async def test_a_damaged_database_is_told_with_the_way_out(tmp_path: Path, start: int) -> None:
    home = Home(tmp_path)
    async with opened(home):
        pass
    with home.database.open("r+b") as file:
        file.seek(start)
        file.write(b"?" * 60_000)
    with pytest.raises(StorageError, match=r"is damaged\. Stop the service and restore a backup"):
        async with opened(home):
            pass


async def test_what_is_no_replica_is_nothing_to_lose(tmp_path: Path) -> None:
    """A volume of its own for the replicas has this."""
    (tmp_path / "workspaces/lost+found").mkdir(parents=True)
    async with opened(Home(tmp_path)):
        pass


async def test_replicas_that_the_database_does_not_know_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An older copy of the database, or one that has lost the end of its log."""
    home, id = Home(tmp_path), str(uuid4())
    async with opened(home):
        pass
    (home.workspaces / id).mkdir(parents=True)
    (home.workspaces / f".removed-{uuid4()}").mkdir()
    with caplog.at_level(logging.WARNING):
        async with opened(home):
            pass
    assert [record.getMessage() for record in caplog.records] == [
        f"The database has no record of replica {id}, whose files are {home.workspaces / id}"
    ]


@pytest.mark.parametrize("damage", [directory, pipe])
@pytest.mark.parametrize("end", ["wal", "shm", "journal"])
async def test_what_is_no_file_of_the_database_is_named_with_the_way_out(
    tmp_path: Path, end: str, damage: Damage
) -> None:
    home = Home(tmp_path)
    async with opened(home):
        pass
    path = home.service / f"{home.database.name}-{end}"
    harm(path, damage)
    with pytest.raises(HomeUnusableError, match=rf"{path} is in the place .* Move it away"):
        async with opened(home):
            pass
    path.rename(tmp_path / "aside")
    async with opened(home):
        pass


@pytest.mark.parametrize("name", ["lock", "stopped"])
async def test_a_directory_in_the_place_of_a_file_of_the_service_is_named(
    tmp_path: Path, name: str
) -> None:
    home = Home(tmp_path)
    (home.service / name).mkdir(parents=True)
    with pytest.raises(HomeUnusableError, match=rf"{name} is a directory in .*; move it away"):
        async with opened(home):
            pass


@pytest.mark.parametrize("damage", [garbage, directory, pipe])
@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("home.id", "remove the file"),
        ("key", r"Remove it: a new one is made\."),
        ("master.key", "move that file away: qd serve --new-key"),
    ],
)
async def test_a_key_file_that_cannot_be_read_is_named_with_the_way_out(
    tmp_path: Path, name: str, way_out: str, damage: Damage
) -> None:
    home = Home(tmp_path)
    async with opened(home):
        pass
    path = home.service / name
    harm(path, damage)
    with pytest.raises(
        HomeUnusableError, match=rf"(?s){path} (holds|cannot).*{way_out}"
    ) as refused:
        async with opened(home):
            pass
    assert "codec" not in str(refused.value) and "Errno" not in str(refused.value)
    path.rename(tmp_path / "aside")
    async with opened(home):
        pass
