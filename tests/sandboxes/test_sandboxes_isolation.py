"""What the processes of a sandbox can and cannot reach, asked from inside."""

import os
import socket
from pathlib import Path
from uuid import uuid4

import pytest


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


async def test_a_sandbox_within_the_sandbox(walled):
    workspace = await walled.started()
    nested = "bwrap --unshare-user --unshare-pid --ro-bind / / --proc /proc --dev /dev -- id -u"
    assert await walled.said(workspace, nested) == await walled.said(workspace, "id -u")


async def test_a_terminal_with_job_control(walled):
    workspace = await walled.started()
    told = await walled.said(workspace, "script -qec 'tty; set -m; sleep 0 & wait; jobs' /dev/null")
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
    with pytest.raises(Exception, match="no workspace id"):
        await bench.driver.layout(name)
