"""Engines as forks of one process: the same sandbox as one that is started alone, and what outlives what."""

import asyncio
import errno
import json
import os
import shlex
import signal
import socket
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from quarterdeck.local.processes import find, is_running, process_ids
from quarterdeck.sandboxes import launch, processes
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.sandboxes.record import load_record, read_status
from tests.sandboxes.conftest import ENGINE, Bench
from tests.support.waiting import eventually

SEEN = """
import json, os, resource
def text(name):
    with open(f"/proc/{os.getppid()}/{name}", "rb") as file:
        return file.read().decode(errors="replace")
engine = os.getppid()
status = dict(line.split(":\\t", 1) for line in text("status").splitlines() if ":\\t" in line)
names = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
    "Umask", "Threads")
print(json.dumps({
    "status": {name: status[name] for name in names},
    "signals": [int(status[name], 16) & 0x7fffffff for name in ("SigIgn", "SigCgt", "SigBlk")],
    "limits": text("limits"),
    "command": text("cmdline").rstrip("\\0").split("\\0"),
    "variables": sorted(text("environ").rstrip("\\0").split("\\0")),
    "descriptors": sorted(os.readlink(f"/proc/{engine}/fd/{number}").split(":")[0].split("/")[-1]
        for number in os.listdir(f"/proc/{engine}/fd")),
    "directory": os.readlink(f"/proc/{engine}/cwd"),
    "root": os.listdir(f"/proc/{engine}/root"),
    "program": os.readlink(f"/proc/{engine}/exe"),
    "user": text("uid_map"),
    "groups": text("cgroup").count("\\n"),
    "score": text("oom_score_adj"),
    "mounts": sorted(line.split()[4] for line in text("mountinfo").splitlines()),
}))
"""


def namespaces(pid: int) -> dict[str, str]:
    return {place.name: str(place.readlink()) for place in Path(f"/proc/{pid}/ns").iterdir()}


async def seen(bench: Bench) -> dict[str, object]:
    """What a program inside sees of the engine that started it."""
    workspace = await bench.started()
    (bench.home.workspaces / workspace / "files" / "seen.py").write_text(SEEN)
    record = load_record(places_of(bench.home, workspace).record)
    assert record and record.engine
    assert namespaces(record.engine.pid) == namespaces(record.init.pid)
    # The shell is replaced, so that the engine is the parent.
    return json.loads(await bench.said(workspace, f"exec {sys.executable} seen.py"))


def outer_processes(bench: Bench, workspace: str) -> list[int]:
    mark = places_of(bench.home, workspace).mark
    return [ref.pid for ref in processes.marked(mark)]


def fork_servers() -> list[int]:
    """The fork servers that this process has started."""
    found: list[int] = []
    for pid in process_ids():
        ref = find(pid)
        parent = ref and processes.parent_of(ref)
        command = Path(f"/proc/{pid}/cmdline")
        if (
            parent
            and parent.pid == os.getpid()
            and b"quarterdeck.sandboxes.fork_server" in command.read_bytes()
        ):
            found.append(pid)
    return found


async def test_a_fork_is_confined_as_an_engine_that_is_started_alone(
    walled: Bench, tmp_path
) -> None:
    forked = await seen(walled)
    assert len(fork_servers()) == 1
    alone = Bench(walled.home, ProcessDriver(walled.home, engine=ENGINE, grace=1.0))
    launched = await seen(alone)
    for one in (forked, launched):
        variables = one.pop("variables")
        assert isinstance(variables, list)
        one["variables"] = [
            v for v in variables if not v.startswith(("QUARTERDECK_", "OLDPWD", "_="))
        ]
    # A pipe by which the sandbox learns of the engine's end, inherited by no program.
    descriptors = forked["descriptors"]
    assert isinstance(descriptors, list)
    descriptors.remove("pipe")
    assert forked == launched


async def test_no_descriptor_is_inherited_by_programs(walled: Bench) -> None:
    workspace = await walled.started()
    assert await walled.said(workspace, "ls /proc/self/fd | wc -l") == "4"


MEMORY = """
import os, sys
planted = sys.argv[1][::-1].encode()
found = 0
with open(f"/proc/{os.getppid()}/maps") as maps, open(f"/proc/{os.getppid()}/mem", "rb", 0) as memory:
    for line in maps:
        span, rights = line.split()[:2]
        if not rights.startswith("rw") or "[v" in line:
            continue
        start, end = (int(number, 16) for number in span.split("-"))
        memory.seek(start)
        found += memory.read(end - start).count(planted)
print(found)
"""


async def test_a_fork_knows_nothing_of_the_service(walled: Bench, monkeypatch) -> None:
    """Its memory can be read by programs inside."""
    secret = f"planted-{os.urandom(8).hex()}"
    monkeypatch.setenv("QD_TEST_SECRET", secret)
    workspace = await walled.started()
    (walled.home.workspaces / workspace / "files" / "memory.py").write_text(MEMORY)
    look = f"exec {sys.executable} memory.py"
    assert await walled.said(workspace, f"{look} {secret[::-1]}") == "0"
    # It finds what is there: the engine's name for its socket.
    assert int(await walled.said(workspace, f"{look} {'engine.sock'[::-1]}")) > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_the_sandbox_ends_with_the_engine(walled: Bench, number: signal.Signals) -> None:
    workspace = await walled.started()
    record = load_record(places_of(walled.home, workspace).record)
    assert record and record.engine and record.mode == "bubblewrap"
    os.kill(record.engine.pid, number)
    await eventually(lambda: not outer_processes(walled, workspace))
    assert not await walled.driver.alive(workspace)


async def test_the_exit_code_is_kept(walled: Bench) -> None:
    workspace = await walled.provision()
    walled.driver._runtime.engine = (sys.executable, "-I", "-c", "import sys; sys.exit(7)")
    await walled.driver.write_config(workspace, "{}")
    with pytest.raises(Exception, match="ended at once, with code 7"):
        await walled.driver.start(workspace)
    await eventually(lambda: read_status(places_of(walled.home, workspace).status).exit_code == 7)


async def test_engines_outlive_the_fork_server(walled: Bench) -> None:
    first = await walled.started()
    (server,) = fork_servers()
    os.kill(server, signal.SIGKILL)
    assert await walled.said(first, "echo still here") == "still here"
    second = await walled.started()
    assert await walled.said(second, "echo as well") == "as well"
    (later,) = fork_servers()
    assert later != server
    await walled.driver.stop(first)
    assert not outer_processes(walled, first)


async def test_an_engine_is_found_and_ended_by_a_later_service(walled: Bench) -> None:
    workspace = await walled.started()
    places = places_of(walled.home, workspace)
    record = load_record(places.record)
    places.record.unlink()
    later = ProcessDriver(walled.home, engine=ENGINE, grace=1.0)
    assert await later.alive(workspace)
    assert load_record(places.record) == record
    await later.stop(workspace)
    assert not outer_processes(walled, workspace)


async def test_nothing_stays_of_a_start_that_is_given_up(walled: Bench, monkeypatch) -> None:
    workspace = await walled.provision()
    await walled.driver.write_config(workspace, "{}")
    await walled.started()
    (server,) = fork_servers()
    os.kill(server, signal.SIGSTOP)
    starting = asyncio.create_task(walled.driver.start(workspace))
    places = places_of(walled.home, workspace)
    await eventually(places.status.exists)
    await asyncio.sleep(0)
    starting.cancel()
    os.kill(server, signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await starting
    await eventually(lambda: not outer_processes(walled, workspace))
    assert not await walled.driver.alive(workspace)


REFUSING = """
import sys
from quarterdeck.sandboxes import fork_server
def refuse():
    raise PermissionError(1, "drop capabilities: refused by this machine")
fork_server._drop_capabilities = refuse
fork_server.main(int(sys.argv[1]), sys.argv[2:-1])
"""


def patch_fork_server(code: str, path: Path, monkeypatch) -> None:
    """Start a program in place of the fork server, and nothing else."""
    python = sys.executable
    patched = f'exec {python} -I -c "$CODE" "$@"'
    path.write_text(
        f'#!/bin/sh\nCODE={shlex.quote(code)}\ncase "$3" in *fork_server) shift 3; {patched};; esac\n'
        f'exec {python} "$@"\n'
    )
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))


@pytest.mark.parametrize("fault", ["no module", "silent", "refused inside"])
async def test_without_a_fork_server_engines_are_started_alone(
    walled: Bench, monkeypatch, caplog, fault: str, tmp_path: Path
) -> None:
    server = walled.driver._runtime.fork_server
    if fault == "no module":
        monkeypatch.setattr(server, "_modules", ("not_there",))
    elif fault == "silent":
        monkeypatch.setattr(launch, "_ANSWER_SECONDS", 0.0)
    else:
        patch_fork_server(REFUSING, tmp_path / "python", monkeypatch)
    for _ in range(2):
        workspace = await walled.started()
        assert await walled.said(workspace, "echo here") == "here"
    assert fork_servers() == []
    warnings = [record for record in caplog.records if "without the fork server" in record.message]
    assert len(warnings) == 1
    if fault == "refused inside":
        assert "refused by this machine" in warnings[0].message


FAILING_ONCE = """
import errno, mmap, os, sys
import quarterdeck.sandboxes.fork_server as fork_server
fork, calls = os.fork, mmap.mmap(-1, 1)  # shared with all forks
def counted():
    calls[0] += 1
    if calls[0] == FAILING:
        raise OSError(errno.EAGAIN, "no more processes")
    return fork()
os.fork = counted
fork_server.main(int(sys.argv[1]), sys.argv[2:-1])
"""
FORKS = ("the start", "bubblewrap", "the engine")


@pytest.mark.parametrize("failing", range(len(FORKS)), ids=FORKS)
async def test_a_temporary_failure_leaves_the_fork_server_on(
    walled: Bench, monkeypatch, caplog, failing: int, tmp_path: Path
) -> None:
    code = FAILING_ONCE.replace("FAILING", str(failing + 1))
    patch_fork_server(code, tmp_path / "python", monkeypatch)
    alone, forked = await walled.started(), await walled.started()
    for workspace in (alone, forked):
        assert await walled.said(workspace, "echo here") == "here"
    (server,) = fork_servers()
    found = processes.marked(places_of(walled.home, forked).mark)
    assert server in {parent.pid for ref in found if (parent := processes.parent_of(ref))}
    (warning,) = [
        record for record in caplog.records if "without the fork server" in record.message
    ]
    assert "no more processes" in warning.message


async def test_it_stays_on_when_other_programs_have_many_descriptors_on_the_way(
    walled: Bench, monkeypatch
) -> None:
    """The kernel counts those in messages between programs for the user."""
    with monkeypatch.context() as patch:
        refused = OSError(errno.ETOOMANYREFS, "too many")
        patch.setattr(socket, "send_fds", Mock(side_effect=refused))
        alone = await walled.started()
    forked = await walled.started()
    for workspace in (alone, forked):
        assert await walled.said(workspace, "echo here") == "here"
    assert fork_servers()


async def test_the_fork_server_ends_with_its_block(walled: Bench) -> None:
    driver = ProcessDriver(walled.home, engine=ENGINE)
    async with driver.kept_ready():
        workspace = await walled.provision()
        await driver.write_config(workspace, "{}")
        await driver.start(workspace)
        (server,) = fork_servers()
        ref = find(server)
        assert ref
    assert not is_running(ref)
    assert await driver.alive(workspace)
