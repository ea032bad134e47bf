"""What other users of the machine can read or write of a home, whatever the umask is."""

import os
import stat
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.cli.config_file import write_config
from quarterdeck.cli.target import store_key, stored_key_path
from quarterdeck.local.home import Home
from quarterdeck.store.disk import open_disk
from quarterdeck.tui.app import FailureLog
from tests.support.git import make_repository
from tests.support.installation import PROGRAM, Installation, block, remove

FOR_OTHERS = {
    "inside/qd.sock": "accepts secrets of engines alone",
    "agents": "programs for replicas, which have another user",
}


def exposed(place: Path) -> Iterator[Path]:
    """Yield what others can read, list or write below a directory; where they cannot pass, nothing."""
    for path in sorted(place.iterdir()):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            continue
        if mode & (stat.S_IROTH | stat.S_IWOTH):
            yield path
        if stat.S_ISDIR(mode) and mode & stat.S_IXOTH:
            yield from exposed(path)


@contextmanager
def umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.long
@pytest.mark.parametrize("mask", ["000", "077"])
def test_others_see_nothing_of_a_home_in_use(mask: str, require_tool: Callable[[str], str]) -> None:
    """As root the home can be passed, because sandboxes have another user."""
    require_tool("bwrap")
    base = Path(tempfile.mkdtemp(prefix="qd-modes-"))
    base.chmod(0o755)
    masked = ("sh", "-c", f'umask {mask}; exec "$@"', "sh")
    made = Installation(base, {"HOME": str(base)}, wrapper=masked)
    try:
        made.start()
        environment = made.environment_with(made.connect(str(make_repository(base / "shop"))))
        parts = f"/v1/environments/{environment}"
        made.post(f"{parts}/files", {"path": "~/.token", "content": "x"}, 201)
        made.post(f"{parts}/variables", {"key": "TOKEN", "value": "x"}, 201)
        replica, archived = made.create(environment), made.create(environment)
        made.turn(replica, block("echo hello > ~/mine; qd preview 8000"))
        made.run(replica, "cd shop && echo x > new")
        made.in_terminal(replica, "cat /home/agent/.token")
        made.post(f"/v1/replica/{replica}/git/shop/commit", {"message": "x"})
        made.post(f"/v1/replica/{replica}/sleep")
        made.turn(archived, block("echo hello"))
        made.post(f"/v1/replica/{archived}/archive")
        made.reach(archived, "archived")
        for verb in (("replica", "ls"), ("status",), ("doctor",), ("agents",)):
            command = [*masked, *PROGRAM, *verb]
            subprocess.run(command, env=made.environment, capture_output=True, cwd=base)
        made.stop()
        made.start()
        home = made.home.root
        assert home.stat().st_mode & 0o077 in (0, 0o011)
        assert len(list(home.rglob("*"))) > 100
        seen = {str(path.relative_to(home)) for path in exposed(home)}
        assert seen <= FOR_OTHERS.keys()
    finally:
        made.stop()
        made.kill_all()
        remove(base)


@pytest.mark.parametrize("mask", [0, 0o077])
def test_others_see_nothing_of_the_cockpits_files(tmp_path: Path, mask: int) -> None:
    """Neither of those between a file and the home, which could be moved away with what they hold."""
    root = tmp_path / "home"
    with umask(mask):
        home = Home(root)
        store_key(stored_key_path(home, "work"), "secret")
        disk = open_disk(home.client, "https://host.example")
        disk.save_draft(uuid4(), "a thought")
        disk.save_seen({})
        FailureLog(home.client).write(ValueError("wrong"))
        write_config(root / "deep/config.toml", "x = 1\n")
    for path in (root, *root.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
