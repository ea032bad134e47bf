"""What one replica may use up: the service and the other replicas go on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from quarterdeck.local.processes import ProcessRef
from quarterdeck.sandboxes import cgroups, disk, fork_server, probe, processes
from quarterdeck.sandboxes.cgroups import Bounds, ControlGroups, Hierarchy, find_groups
from quarterdeck.sandboxes.counters import counter_gap
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.interpreter import needed_directories
from quarterdeck.sandboxes.launch import LAUNCHER, LaunchSpec
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.processes import SPARE_UID
from quarterdeck.sandboxes.record import load_record
from tests.sandboxes.conftest import Bench
from tests.support.waiting import eventually

PYTHON = sys.executable
FEW = Bounds(1, 192 << 20, 64)
BOMB = "while :; do (sleep 600 &) || break; done"
NAMESPACES = """
import ctypes, os
libc, held = ctypes.CDLL(None, use_errno=True), []
while len(held) < 1_500:
    read, write = os.pipe()
    go, gone = os.pipe()
    if (child := os.fork()) == 0:
        failed = libc.unshare(0x10000000)
        os.write(write, b"%d" % (ctypes.get_errno() if failed else 0))
        os.read(go, 1)
        os._exit(0)
    if (error := int(os.read(read, 9))) == 0:
        held.append(os.open(f"/proc/{child}/ns/user", os.O_RDONLY))
    os.write(gone, b"x")
    os.waitpid(child, 0)
    for one in (read, write, go, gone):
        os.close(one)
    if error:
        print(len(held), os.strerror(error))
        break
"""


@pytest.fixture
def small(monkeypatch) -> Bounds:
    """Replicas that reach their bounds soon."""
    monkeypatch.setitem(cgroups.BOUNDS, "small", FEW)
    return FEW


async def test_user_namespaces_are_left_to_others(walled):
    """The kernel counts them for the user, and no sandbox can be made without them."""
    if not walled.driver._runtime.fork_server._usable:
        pytest.skip("only where engines are forked")
    victim, other = await walled.started(), await walled.started()
    (places_of(walled.home, victim).files / "script").write_text(NAMESPACES)
    said = await walled.said(victim, f"ulimit -n 4096; {PYTHON} script")
    assert said == f"{fork_server.MOST_NAMESPACES} No space left on device"
    assert await walled.said(other, "unshare --user true && echo made") == "made"


def groups_here() -> ControlGroups:
    groups = find_groups()
    if groups.missing or not all(os.access(one.base, os.W_OK) for one in groups.hierarchies):
        pytest.skip("control groups cannot be made here: they need root, or a delegated unit")
    return groups


async def test_a_fork_bomb_leaves_the_others_alone(walled, small):
    """Limited in its user namespace, with or without control groups."""
    victim, other = await walled.started(), await walled.started()
    # The engine's own thread of commands survives: the bomb is in the background.
    await walled.said(victim, f"setsid sh -c '{BOMB}' >/dev/null 2>&1 </dev/null & echo lit")
    mark = places_of(walled.home, victim).mark
    count = await full(mark, small.processes)
    assert small.processes // 2 < count <= small.processes
    assert await walled.said(other, f"{PYTHON} -c 'print(6 * 7)'") == "42"
    await walled.driver.stop(victim)
    assert not await marked(mark)
    await walled.driver.start(victim)
    assert await walled.said(victim, "echo again") == "again"


async def full(mark: str, most: int) -> int:
    """Wait until the number of processes no longer grows; return it."""
    before = -1
    while before != (count := len(await marked(mark))) or count < most // 2:
        before = count
        await asyncio.sleep(0.2)
    return count


async def marked(mark: str) -> list[ProcessRef]:
    return await asyncio.to_thread(processes.marked, mark)


@pytest.mark.long
async def test_memory_runs_out_in_the_replica_alone(walled, small):
    groups_here()
    victim, other = await walled.started(), await walled.started()
    assert (await walled.driver.isolation()).size_limited
    code, _ = await walled.inside(victim, f"{PYTHON} -c 'bytearray(1 << 30)'")
    assert code in (137, -9)
    assert await walled.said(victim, "echo alive") == "alive"
    # Files in memory are the replica's as well. Those of a sandbox inside end with the replica.
    filled = "unshare -Urm sh -c 'mount -t tmpfs none /tmp; head -c 1G /dev/zero > /tmp/much; wait'"
    with pytest.raises(ValueError, match="Expecting value"):
        await walled.inside(victim, filled)
    assert await walled.said(other, "echo alive") == "alive"

    async def again() -> bool:
        """Whether it runs again: the kernel may still be ending what was left of it."""
        await walled.driver.start(victim)
        with suppress(OSError, ValueError):
            return await walled.said(victim, "echo again") == "again"
        return False

    await eventually(again, "the start after the kernel ended it")


async def test_directories_in_memory_are_smaller_than_the_memory(walled, small):
    """With or without control groups: the kernel ends programs, and would not empty them."""
    workspace = await walled.started()
    names = ("/tmp", "/var/tmp", "/dev/shm", "/run")
    told = await walled.said(workspace, f"df -B1 --output=size {' '.join(names)}")
    assert sum(map(int, told.splitlines()[1:])) < small.memory
    for name in names[:3]:
        full = await walled.said(workspace, f"head -c 1G /dev/zero 2>&1 > {name}/much || echo $?")
        assert full.endswith("1")
        assert "No space left" in full
    told = await walled.said(workspace, "touch /dev/more 2>&1 || echo $?; echo > /dev/null")
    assert "Read-only" in told


@pytest.mark.long
async def test_size_decides_and_groups_end_with_the_sandbox(walled):
    groups = groups_here()
    workspace = await walled.provision()
    places = places_of(walled.home, workspace)
    await walled.driver.write_config(workspace, "{}")
    found: dict[str, tuple[int, int]] = {}
    for size in ("small", "large"):
        await walled.driver.start(workspace, size)
        record = load_record(places.record)
        assert record and record.engine
        assert {record.init.pid, record.engine.pid} <= groups.pids(places.mark)
        found[size] = bounds_of(groups, places.mark)
        told = await walled.said(
            workspace, "ulimit -u; ls /sys/fs/cgroup 2>&1; cat /proc/self/cgroup"
        )
        assert "quarterdeck" not in told
        await walled.driver.stop(workspace)
        assert not groups.pids(places.mark)
        assert not group_directories(groups, places.mark)
    assert found == {"small": (8 << 30, 4096), "large": (16 << 30, 8192)}
    # A command of the service is bounded, too, and leaves no group when the replica is removed.
    output = walled.driver.stream_command(
        workspace, ["/bin/cat", "/proc/self/limits"], directory="/"
    )
    limits = b"".join([part async for part in output]).decode()
    assert group_directories(groups, places.mark)
    await walled.driver.destroy(workspace)
    assert not group_directories(groups, places.mark)
    line = next(line for line in limits.splitlines() if line.startswith("Max processes"))
    assert line.split()[2:4] == ["8192", "8192"]


def group_directories(groups: ControlGroups, mark: str) -> list[str]:
    found = [one.group(mark) for one in groups.hierarchies]
    return [str(path) for path in found if path.exists()]


def bounds_of(groups: ControlGroups, mark: str) -> tuple[int, int]:
    """The memory and the number of processes, as the kernel has them."""

    def number(*names: str) -> int:
        files = [one.group(mark) / name for one in groups.hierarchies for name in names]
        return int(next(path for path in files if path.exists()).read_text())

    return number("memory.max", "memory.limit_in_bytes"), number("pids.max")


SERVICE = """
import os, subprocess, sys
ballast = os.urandom(96 << 20)
launcher = [sys.executable, "-I", "-S", sys.argv[1]]
subprocess.run(launcher, input=sys.argv[2].encode(), pass_fds=(3,))
print("alive", len(ballast) >> 20, flush=True)
"""
HOGS = """
import os, signal
for number in range(16):
    if os.fork() == 0:
        kept = os.urandom(24 << 20)
        signal.pause()
os.wait()
"""


@pytest.mark.long
def test_the_kernel_ends_the_replica_before_the_service(tmp_path):
    """Without bounds of its own, in a control group that is too small for both.

    The service is the largest process, which the kernel would choose.
    """
    groups_here()
    memory = next(one for one in find_groups().hierarchies if "memory" in one.controllers)
    group = memory.base / f"qd-test-{os.getpid()}"
    group.mkdir()
    try:
        name = "memory.max" if memory.unified else "memory.limit_in_bytes"
        (group / name).write_text(str(256 << 20))
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")
        shown = [str(path) for path in needed_directories(Path("/nowhere"))]
        user = {"uid": SPARE_UID, "gid": SPARE_UID, "expose": shown}
        spec = LaunchSpec([PYTHON, "-I", "-S", "-c", HOGS], {}, "/", 1024, **user)
        inside = f'echo $$ > {group}/cgroup.procs; exec 3>/dev/null; exec "$@"'
        service = [PYTHON, "-I", "-S", "-c", SERVICE, str(LAUNCHER), json.dumps(asdict(spec))]
        command = ["sh", "-c", inside, "sh", *service]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.stdout.split() == ["alive", "96"], done.stderr
        counted = (group / "memory.events") if memory.unified else group / "memory.oom_control"
        assert "oom_kill 0" not in counted.read_text().splitlines()
    finally:
        while pids := (group / "cgroup.procs").read_text().split():
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
        group.rmdir()


def furnish(base: Path, controllers: str = "cpu memory pids hugetlb") -> None:
    base.mkdir(parents=True)
    (base / "cgroup.controllers").write_text(controllers)
    for name in ("cgroup.subtree_control", "cgroup.procs"):
        (base / name).write_text("")


def test_the_unified_hierarchy(tmp_path, monkeypatch):
    """By a copy of its files: which group is chosen, and what is written."""
    proc, mount = tmp_path / "proc", tmp_path / "cgroup"
    proc.mkdir()
    monkeypatch.setattr(cgroups, "SYSTEMD", tmp_path / "absent")
    furnish(mount / "unit.scope")
    furnish(mount / "unit.scope/service")
    proc.joinpath("mountinfo").write_text(
        f"30 24 0:26 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
        "31 24 0:27 / /elsewhere rw - tmpfs tmpfs rw\n"
    )
    for own, chosen in (("unit.scope/service", "unit.scope"), ("unit.scope", "unit.scope")):
        proc.joinpath("cgroup").write_text(f"0::/{own}\n")
        groups = find_groups(proc)
        assert groups.missing == []
        assert [(one.base, one.unified) for one in groups.hierarchies] == [(mount / chosen, True)]
        directories = groups.enter("mark", "large")
        group = mount / chosen / "quarterdeck-mark"
        assert directories == [str(group / "replica")]
        assert (mount / chosen / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
        names = ("cgroup.max.descendants", "cpu.max", "memory.max", "pids.max")
        told = {name: (group / name).read_text() for name in names}
        assert told == {
            "cgroup.max.descendants": str(cgroups.MOST_GROUPS),
            "cpu.max": "400000 100000",
            "memory.max": str(16 << 30),
            "pids.max": "8192",
        }
        assert not (group / "memory.swap.max").exists()
        (group / "memory.swap.max").write_text("max")  # as a kernel with swap has it
        groups.enter("mark", "large")
        assert (group / "memory.swap.max").read_text() == "0"
        groups.enter("mark", None)  # a command in it, which changes no bounds
        assert (group / "memory.max").read_text() == str(16 << 30)
        (group / "memory.swap.max").unlink()
    # What systemd manages and did not delegate is left alone.
    (tmp_path / "absent").mkdir()
    assert find_groups(proc).missing == ["cpu", "memory", "pids"]
    proc.joinpath("mountinfo").unlink()
    assert find_groups(proc).missing == ["cpu", "memory", "pids"]


@pytest.fixture
def delegated():
    """A group of the kernel's unified hierarchy with a process in it, as systemd delegates one."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [Path(line.split()[4]) for line in lines if " - cgroup2 " in line]
    top = points[0] if points else Path("/nowhere")
    if os.geteuid() != 0 or not os.access(top / "cgroup.subtree_control", os.W_OK):
        pytest.skip("the unified hierarchy cannot be divided here")
    controller = (top / "cgroup.controllers").read_text().split()[0]
    before = (top / "cgroup.subtree_control").read_text().split()
    (top / "cgroup.subtree_control").write_text(f"+{controller}")
    base = top / f"qd-test-{os.getpid()}"
    base.mkdir()
    with subprocess.Popen(["sleep", "600"]) as process:
        (base / "cgroup.procs").write_text(str(process.pid))
        yield Hierarchy(base, (controller,), unified=True), process.pid
        process.kill()
    for path in (base / "service", base):
        path.rmdir()
    if controller not in before:
        (top / "cgroup.subtree_control").write_text(f"-{controller}")


@pytest.mark.long
async def test_a_delegated_group_is_divided(delegated):
    """By the kernel: it has no parts while a process is in it, so the service moves aside."""
    hierarchy, service = delegated
    groups = ControlGroups((hierarchy,))
    (directory,) = groups.enter("mark", "small")
    assert (hierarchy.base / "service/cgroup.procs").read_text().split() == [str(service)]
    spec = LaunchSpec(["/bin/sleep", "600"], {}, "/", 1024, groups=[directory])
    user = {"uid": SPARE_UID, "gid": SPARE_UID}
    text = json.dumps(asdict(spec) | user)
    launch = ["sh", "-c", 'exec 3>/dev/null; exec "$@"', "sh", PYTHON, "-I", "-S", str(LAUNCHER)]
    replica = await asyncio.create_subprocess_exec(*launch, stdin=asyncio.subprocess.PIPE)
    assert replica.stdin
    replica.stdin.write(text.encode())
    replica.stdin.close()
    while len(pids := groups.pids("mark")) < 2:  # the launcher and its command
        assert replica.returncode is None
        await asyncio.sleep(0.01)
    assert replica.pid in pids
    assert service not in pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    await replica.wait()
    assert await groups.remove("mark")


async def test_a_replica_makes_few_groups_of_its_own(delegated):
    """A sandbox of the service's own user can, and the service looks through all of them."""
    hierarchy, _ = delegated
    groups = ControlGroups((hierarchy,))
    (directory,) = groups.enter("mark", "small")
    with pytest.raises(OSError, match="Resource temporarily unavailable"):
        for number in range(cgroups.MOST_GROUPS + 1):
            (Path(directory) / str(number)).mkdir()
    assert len(groups.pids("mark")) == 0
    assert await groups.remove("mark")


async def test_what_is_not_limited_is_told(bench: Bench, monkeypatch):
    monkeypatch.setattr(bench.driver, "_groups", ControlGroups(()))
    isolation = await bench.driver.isolation()
    assert isolation.size_limited is False
    gap = next(gap for gap in isolation.gaps if "size" in gap.message)
    assert "cpu, memory, pids" in gap.message


GIB = 1 << 30
EPOLL, PTY = "fs/epoll/max_user_watches", "kernel/pty/max"


@pytest.mark.parametrize(
    ("limits", "low"),
    [
        ({EPOLL: 5_491_511}, "fs.epoll.max_user_watches=134217728"),
        ({EPOLL: 134_217_728}, ""),
        # Round numbers, at least twice the present one.
        ({EPOLL: 131_000_000}, "fs.epoll.max_user_watches=268435456"),
        ({"fs/inotify/max_user_watches": 65_536}, "fs.inotify.max_user_watches=33554432"),
        ({PTY: 4096}, "kernel.pty.max=1048576"),  # more than that the kernel refuses
        ({PTY: 1_048_576}, ""),
        ({"fs/aio-max-nr": 65_536}, "fs.aio-max-nr=536870912"),
        ({"fs/file-max": 2_466_183}, "fs.file-max=134217728"),
        ({"fs/file-max": (1 << 63) - 1}, ""),
        (
            {EPOLL: 67_108_864, PTY: 9},
            "fs.epoll.max_user_watches=134217728 kernel.pty.max=1048576",
        ),
        ({EPOLL: 1 << 40, "fs/inotify/max_user_instances": 128}, "fs.inotify.max_user_instances="),
        ({}, ""),
    ],
)
def test_numbers_of_the_kernel_that_a_replica_can_use_up_are_named(tmp_path, limits, low):
    for name, limit in limits.items():
        (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / name).write_text(f"{limit}\n")
    gap = counter_gap(16 * GIB, tmp_path)
    if not low:
        assert gap is None
        return
    assert gap is not None
    assert f"sysctl -w {low}" in gap.next_step
    assert low.partition("=")[0] in gap.message


async def test_they_matter_where_memory_is_limited(walled):
    """Else more of them would only be more memory that a replica can take."""
    isolation = await walled.driver.isolation()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    expected = counter_gap(memory) if isolation.size_limited else None
    named = [gap for gap in isolation.gaps if "counts" in gap.message]
    assert named == ([] if expected is None else [expected])


def test_the_limits_to_set_are_round_whatever_the_memory_is(tmp_path):
    (tmp_path / "sys/fs/epoll").mkdir(parents=True)
    (tmp_path / "sys" / EPOLL).write_text("3509452\n")
    for memory, wanted in ((16_378_073_088, 1 << 27), (400 * GIB, (1 << 31) - 1)):
        gap = counter_gap(memory, tmp_path)
        assert gap is not None and f"sysctl -w {EPOLL.replace('/', '.')}={wanted} " in gap.next_step


def test_the_step_to_limits_depends_on_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "SYSTEMD", tmp_path / "absent")
    assert "as root" in probe.unlimited_step()
    monkeypatch.setattr(probe, "SYSTEMD", tmp_path)
    monkeypatch.setattr(probe, "stays_after_logout", lambda: True)
    assert "Delegate=yes" in probe.unlimited_step()
    monkeypatch.setattr(probe, "stays_after_logout", lambda: False)
    assert "loginctl enable-linger" in probe.unlimited_step()


@pytest.mark.long
async def test_nothing_starts_on_a_disk_that_is_almost_full(bench: Bench, monkeypatch):
    workspace = await bench.provision()
    with monkeypatch.context() as patch:
        patch.setattr(disk, "RESERVED", 1 << 62)
        patch.setattr(disk, "RESERVED_PART", 1)
        for attempt in (bench.driver.start(workspace), bench.provision()):
            with pytest.raises(SandboxError, match="almost full"):
                await attempt
    await bench.driver.start(workspace)
    assert await bench.said(workspace, "echo runs") == "runs"
