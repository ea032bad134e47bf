"""A service of an ordinary user whose control group is that user's: programs inside do not end it by the group."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from quarterdeck.sandboxes import cgroups
from quarterdeck.sandboxes.cgroups import ControlGroups, Hierarchy, find_groups
from quarterdeck.sandboxes.interpreter import needed_directories
from quarterdeck.sandboxes.launch import LAUNCHER
from quarterdeck.sandboxes.processes import SPARE_UID, sandbox_user
from tests.sandboxes.conftest import Bench

ROOT = Path(__file__).parents[3]
SERVICE = """
import asyncio, sys
from pathlib import Path
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from tests.sandboxes.conftest import ENGINE, Bench

ATTACK = (
    "unshare --user --map-root-user --mount --cgroup sh -c '"
    "mount -t cgroup2 none /tmp && cat /tmp/cgroup.procs && echo 1 > /tmp/cgroup.kill'"
)

async def main():
    bench = Bench(Home(Path(sys.argv[1])), ProcessDriver(Home(Path(sys.argv[1])), engine=ENGINE))
    for gap in (await bench.driver.isolation()).gaps:
        print(gap.message)
    workspace = await bench.started()
    print(await bench.said(workspace, "cat /proc/self/cgroup"), flush=True)
    try:
        print(await bench.inside(workspace, ATTACK), flush=True)
    except ValueError:
        print("the engine ended", flush=True)
    await bench.close()
    print("the service goes on", flush=True)

asyncio.run(main())
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A group of the unified hierarchy that belongs to the spare user, as one that systemd makes for a program."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [Path(line.split()[4]) for line in lines if " - cgroup2 " in line]
    if os.geteuid() != 0 or not points or not os.access(points[0] / "cgroup.procs", os.W_OK):
        pytest.skip("the unified hierarchy cannot be divided here")
    group = points[0] / f"qd-test-{os.getpid()}"
    group.mkdir()
    for path in (group, *group.iterdir()):
        os.chown(path, SPARE_UID, SPARE_UID)
    yield group
    for path in sorted(group.glob("**/cgroup.procs"), reverse=True):
        while pids := path.read_text().split():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        path.parent.rmdir()


@pytest.mark.long
def test_a_program_inside_does_not_end_the_service_by_its_group(
    group: Path, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    require_tool("bwrap")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, SPARE_UID, SPARE_UID)
    shown = [*needed_directories(Path("/nowhere")), home, ROOT]
    spec = {
        "command": [sys.executable, "-c", SERVICE, str(home)],
        "environment": {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        "directory": str(ROOT),
        "uid": SPARE_UID,
        "gid": SPARE_UID,
        "expose": [str(path) for path in shown if path.exists()],
        "bubblewrap": None,
        "options": [],
        "open_files": 1024,
        "processes": None,
        "filter": None,
        "scoped": False,
        "groups": [str(group)],
    }
    launcher = f"exec {sys.executable} -I -S {LAUNCHER} 3>/dev/null"
    done = subprocess.run(
        ["sh", "-c", launcher], input=json.dumps(spec), capture_output=True, text=True, timeout=100
    )
    assert "the service goes on" in done.stdout, done.stderr


def furnish(tmp_path: Path, controllers: str, owner: int) -> Path:
    """Write the files of a group that is a service's own, as `/proc` tells of it; return its directory."""
    group = tmp_path / "cgroup/app.slice/editor.scope"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text(controllers)
    for name in ("cgroup.subtree_control", "cgroup.procs"):
        (group / name).write_text("")
    if os.geteuid() == 0:
        for path in (group, *group.iterdir()):
            os.chown(path, owner, owner)
    (tmp_path / "mountinfo").write_text(f"30 24 0:26 / {tmp_path}/cgroup rw - cgroup2 none rw\n")
    (tmp_path / "cgroup.text").write_text("0::/app.slice/editor.scope\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "mountinfo").rename(tmp_path / "proc/mountinfo")
    (tmp_path / "cgroup.text").rename(tmp_path / "proc/cgroup")
    return group


@pytest.mark.parametrize(("controllers", "managed"), [("", False), ("cpu memory pids", True)])
def test_groups_without_bounds_where_the_group_is_a_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, controllers: str, managed: bool
) -> None:
    """Where no controller is left for it, or systemd manages the group and did not delegate it."""
    monkeypatch.setattr(cgroups, "SYSTEMD", tmp_path if managed else tmp_path / "absent")
    group = furnish(tmp_path, controllers, SPARE_UID)
    groups = find_groups(tmp_path / "proc")
    assert groups.missing == ["cpu", "memory", "pids"]
    assert groups.enter("mark", "small") == [str(group / "quarterdeck-mark/replica")]
    assert (group / "cgroup.subtree_control").read_text() == ""
    assert (group / "quarterdeck-mark/cgroup.max.descendants").read_text() == "100"
    assert not (group / "quarterdeck-mark/memory.max").exists()


async def test_a_group_that_programs_inside_can_change_is_told(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the service could not make a group for them."""
    uid = sandbox_user(None).uid
    group = furnish(tmp_path, "", uid)
    monkeypatch.setattr(bench.driver, "_groups", ControlGroups((), group))
    gaps = (await bench.driver.isolation()).gaps
    assert any("the control group that they share" in gap.message for gap in gaps)


async def test_a_group_that_refuses_processes_is_not_used(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas start without it, and it is told."""
    group = furnish(tmp_path, "", sandbox_user(None).uid)
    refusing = Hierarchy(group, (), unified=True)
    monkeypatch.setattr(bench.driver, "_groups", ControlGroups((refusing,), group))
    (group / "quarterdeck-x/replica/cgroup.procs").mkdir(parents=True)

    def group_of(_hierarchy: Hierarchy, _mark: str) -> Path:
        return group / "quarterdeck-x"

    monkeypatch.setattr(Hierarchy, "group", group_of)
    isolation = await bench.driver.isolation()
    assert any("cannot be joined" in gap.message for gap in isolation.gaps)
    assert any("the control group that they share" in gap.message for gap in isolation.gaps)
