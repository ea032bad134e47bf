"""What the processes of a sandbox can and cannot reach, asked from inside."""

import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes import bubblewrap, interpreter, sandbox
from quarterdeck.sandboxes.bubblewrap import Wanted
from quarterdeck.sandboxes.process import ProcessDriver
from tests.sandboxes.conftest import ENGINE, Bench
from tests.sandboxes.installed import put


def listed(directory: str) -> list[str]:
    return [str(path) for path in Path(directory).iterdir()]


def network() -> str:
    return str(Path("/proc/self/ns/net").readlink())


async def test_only_the_own_workspace_is_seen(walled, checkout):
    source = await walled.connect(checkout)
    mine = await walled.started(source)
    other = await walled.provision(source)
    walled.home.service.mkdir(exist_ok=True)
    (walled.home.service / "key").write_text("secret")
    places = [walled.home.service, walled.home.workspaces, walled.home.workspaces / other]
    for place in [*places, walled.home.mirrors, walled.home.root]:
        code, said = await walled.inside(mine, f"ls {place}")
        assert code != 0, said
    assert await walled.said(mine, "ls /workspace") == "tools"
    assert (await walled.said(mine, "ls /run/mirrors")) == source.id


async def test_the_system_is_read_only(walled, checkout):
    workspace = await walled.started(await walled.connect(checkout))
    mounts = await walled.said(workspace, "cat /proc/self/mountinfo")
    options = {line.split()[4]: line.split()[5].split(",") for line in mounts.splitlines()}
    for place in ("/", "/usr", "/etc"):
        assert "ro" in options[place]
    for place in ("/usr", "/etc", "/", "/home", "/var"):
        code, said = await walled.inside(workspace, f"touch {place}/x")
        assert code != 0
        assert "Read-only" in said or "denied" in said, (place, said)
    for place in (
        "/workspace",
        "/home/agent",
        "/tmp",
        "/var/tmp",
        "/run/replica",
        "/var/lib/replica",
    ):
        await walled.said(workspace, f"touch {place}/x && rm {place}/x")


async def test_tmp_is_private(walled, tmp_path):
    workspace = await walled.started()
    name = f"/tmp/{uuid4()}"
    await walled.said(workspace, f"touch {name}")
    assert name not in listed("/tmp")
    code, _ = await walled.inside(workspace, f"ls {tmp_path}/home")
    assert code != 0


async def test_an_ordinary_user_without_capabilities(walled):
    workspace = await walled.started()
    uid, gid, groups = (await walled.said(workspace, "id -u; id -g; id -G")).splitlines()
    assert uid != "0"
    assert gid != "0"
    assert "0" not in groups.split()
    status = await walled.said(workspace, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status")
    values = dict(line.split(":\t") for line in status.splitlines())
    assert values.pop("NoNewPrivs") == "1"
    assert {int(value, 16) for value in values.values()} == {0}
    assert await walled.said(workspace, "whoami; echo ~; pwd") == "agent\n/home/agent\n/workspace"


async def test_no_process_of_the_host_is_seen(walled):
    workspace = await walled.started()
    pids = (await walled.said(workspace, "ls /proc | grep -E '^[0-9]+$'")).split()
    assert 0 < len(pids) < 10
    code, _ = await walled.inside(workspace, f"kill -0 {os.getpid()}")
    assert code != 0


async def test_nothing_of_the_services_environment(walled, monkeypatch):
    monkeypatch.setenv("SERVICE_SECRET", "tell-nobody")
    workspace = await walled.started()
    everything = await walled.said(
        workspace, "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'"
    )
    assert "tell-nobody" not in everything
    assert str(walled.home.root) not in everything
    names = {line.split("=")[0] for line in (await walled.said(workspace, "env")).splitlines()}
    assert {"HOME", "PATH", "LANG", "TERM", "SHELL", "USER"} <= names


async def test_no_descriptor_of_the_service(walled):
    """Also one that was made inheritable by accident does not get through."""
    read, write = os.pipe()
    os.set_inheritable(read, True)
    try:
        workspace = await walled.started()
        held = await walled.said(
            workspace, "ls -l /proc/[0-9]*/fd | grep -E 'pipe|memfd|status' || true"
        )
        assert f"pipe:[{os.fstat(read).st_ino}]" not in held
        assert "memfd" not in held
        assert "status" not in held
    finally:
        os.close(read)
        os.close(write)


async def test_the_network_is_shared(walled):
    workspace = await walled.started()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        await walled.said(workspace, f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'")
    inside = await walled.said(workspace, "readlink /proc/self/ns/net")
    assert inside == network()


async def test_the_limit_of_open_files_is_the_one_the_service_began_with(walled, monkeypatch):
    """It may have more itself."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(sandbox, "STARTED_WITH", soft - 1)
    assert await walled.said(await walled.started(), "ulimit -Sn") == str(soft - 1)


async def test_a_sandbox_within_the_sandbox(walled):
    workspace = await walled.started()
    nested = "bwrap --unshare-user --unshare-pid --ro-bind / / --proc /proc --dev /dev -- id -u"
    assert await walled.said(workspace, nested) == await walled.said(workspace, "id -u")


async def test_a_terminal_with_job_control(walled):
    workspace = await walled.started()
    shell = ["sh", "-c", "tty; set -m; sleep 0 & wait; jobs"]
    told = await walled.said(workspace, f'{sys.executable} -c "import pty; pty.spawn({shell})"')
    assert "/dev/pts/" in told
    assert "no job control" not in told


async def test_git_works_and_objects_are_borrowed(walled, checkout):
    source = await walled.connect(checkout)
    workspace = await walled.started(source)
    told = await walled.said(workspace, "cd tools && git status -sb && git log --format=%s")
    assert told.splitlines() == ["## qd/one", "change 1", "change 0"]
    await walled.said(
        workspace, "cd tools && echo more >> file.txt && git commit -qam more && git fsck"
    )
    code, said = await walled.inside(workspace, f"touch /run/mirrors/{source.id}/objects/x")
    assert code != 0
    assert "Read-only" in said


async def test_the_limits_are_told(walled):
    isolation = await walled.driver.isolation()
    assert isolation.note is None
    assert any("network" in limit for limit in isolation.limits)


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden"])
async def test_ids_that_could_leave_are_refused(bench, name):
    with pytest.raises(Exception, match="not a workspace id"):
        await bench.driver.layout(name)


SECRET = "of the installation alone"


def furnish(home: Home) -> None:
    """Put what nobody inside may read into an installation's home, open to every user."""
    for directory in (
        home.service,
        home.workspaces / "other" / "files",
        home.mirrors,
        home.archives,
    ):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "kept").write_text(SECRET)
    for directory in (home.root, *home.root.rglob("*")):
        directory.chmod(0o755)


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return a directory that every sandbox sees: in `/opt`, or like it where only root may write there."""
    if os.geteuid() == 0:
        directory = Path(tempfile.mkdtemp(dir="/opt"))
        directory.chmod(0o755)
        yield directory
        shutil.rmtree(directory)
        return
    for module in (bubblewrap, interpreter):
        monkeypatch.setattr(module, "SYSTEM", (*interpreter.SYSTEM, tmp_path))
    yield tmp_path


@pytest.fixture
async def installed(system):
    """A bench whose home lies in a directory of the system, with a program that is shown."""
    home = Home(system / "home")
    put(home.agents / "bin/agent", "#!/bin/sh\necho agent of the home\n")
    wanted = Wanted(("agent",))
    bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0, wanted=lambda: wanted))
    yield bench
    await bench.close()


async def test_a_home_below_the_system_directories_is_not_seen(
    installed, system, checkout, require_tool
):
    require_tool("bwrap")
    home = installed.home
    workspace = await installed.started(await installed.connect(checkout))
    assert (await installed.driver.isolation()).mode == "bubblewrap"
    furnish(home)
    put(system / "neighbour", "seen")
    assert await installed.said(workspace, f"cat {system}/neighbour") == "seen"
    assert await installed.said(workspace, f"grep -rs '{SECRET}' {system} || true") == ""
    assert await installed.said(workspace, "agent") == "agent of the home"
    for attempt in (
        f"touch {home.root}/x",
        f"unshare -Urm sh -c 'umount -l {home.root}; ls {home.service}'",
    ):
        code, said = await installed.inside(workspace, attempt)
        assert code != 0, said
    assert await installed.said(workspace, "cat tools/file.txt") == "line 1"
    await installed.said(workspace, "qd --version")


async def test_a_home_that_is_named_by_a_link_is_not_seen(system, require_tool):
    require_tool("bwrap")
    true = Home(system / "home")
    true.root.mkdir()
    (system / "alias").symlink_to(true.root)
    home = Home(system / "alias")
    bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0))
    try:
        workspace = await bench.started()
        assert (await bench.driver.isolation()).mode == "bubblewrap"
        furnish(true)
        assert (
            await bench.said(workspace, f"grep -rs '{SECRET}' {system} {home.root} || true") == ""
        )
    finally:
        await bench.close()


async def test_a_part_of_a_home_that_lies_elsewhere_is_not_seen(system, home, walled):
    elsewhere = system / "disk"
    elsewhere.mkdir(mode=0o755)
    (elsewhere / "kept").write_text(SECRET)
    home.archives.symlink_to(elsewhere)
    workspace = await walled.started()
    assert await walled.said(workspace, f"ls {elsewhere}") == ""


@pytest.fixture
def mounted_again(system, home, require_tool):
    """The home once more, in a directory that every sandbox sees."""
    require_tool("mount")
    home.root.mkdir(mode=0o755)
    alias = system / "alias of it"
    alias.mkdir()
    subprocess.run(["mount", "--bind", home.root, alias], check=True)
    yield alias
    subprocess.run(["umount", "--lazy", alias], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
async def test_a_home_that_is_mounted_elsewhere_is_not_seen(mounted_again, home, walled):
    workspace = await walled.started()
    furnish(home)
    assert await walled.said(workspace, f"ls '{mounted_again}'") == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="tested in the round as an ordinary user")
async def test_a_home_within_a_directory_that_is_shown_is_not_seen(home, monkeypatch, require_tool):
    """The package may lie in a directory with the home in it: in a checkout, for example."""
    require_tool("bwrap")
    needed = interpreter.needed_directories
    monkeypatch.setattr(sandbox, "needed_directories", lambda own: [*needed(own), home.root.parent])
    bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0))
    try:
        workspace = await bench.started()
        assert (await bench.driver.isolation()).mode == "bubblewrap"
        furnish(home)
        assert await bench.said(workspace, f"grep -rs '{SECRET}' {home.root} || true") == ""
    finally:
        await bench.close()
