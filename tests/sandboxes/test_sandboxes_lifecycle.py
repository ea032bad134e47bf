"""Starting, finding again, stopping and removing sandboxes."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator

import pytest

from quarterdeck.local.home import Home
from quarterdeck.local.processes import ProcessRef, find, is_running, send
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.sandboxes.processes import wait_for_end
from quarterdeck.sandboxes.record import load_record, store_record
from tests.support.installation import command_of, pids

STARTER = """
import asyncio, os, signal, sys
from pathlib import Path
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver

async def main():
    home, workspace, engine = Home(Path(sys.argv[1])), sys.argv[2], sys.argv[3:]
    driver = ProcessDriver(home, engine=engine)
    await driver.provision(workspace, [], "qd/one", print)
    await driver.start(workspace)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
WORKSPACE = "7d1f6e0a-9a3b-4c5d-8e7f-001122334455"
DETACH = "setsid -f sh -c 'exec 0<&- 1>&- 2>&-; exec {}'"


@pytest.fixture
def bystander() -> Generator[ProcessRef]:
    """A process that is none of the driver's business."""
    with subprocess.Popen(["sleep", "60"]) as process:
        found = find(process.pid)
        assert found
        yield found
        process.kill()


def running(marker: str) -> list[str]:
    return [str(pid) for pid in pids() if re.search(marker, command_of(pid))]


async def test_starting_twice_leaves_the_engine_alone(bench):
    workspace = await bench.started()
    first = await bench.said(workspace, "echo $PPID; readlink /proc/$PPID/ns/pid")
    await asyncio.gather(bench.driver.start(workspace), bench.driver.start(workspace))
    assert await bench.said(workspace, "echo $PPID; readlink /proc/$PPID/ns/pid") == first


async def test_racing_starts_give_one_engine(bench):
    workspace = await bench.provision()
    await asyncio.gather(*(bench.driver.start(workspace) for _ in range(4)))
    assert len(running(f"bind.*{places_of(bench.home, workspace).run}")) <= 2
    assert await bench.driver.alive(workspace)


async def test_a_later_service_finds_it(home, engine, bench):
    command = [sys.executable, "-c", STARTER, str(home.root), WORKSPACE, *engine]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert await bench.driver.alive(WORKSPACE)
    assert await bench.said(WORKSPACE, "echo here") == "here"
    await bench.driver.stop(WORKSPACE)
    assert not await bench.driver.alive(WORKSPACE)


@pytest.mark.long
async def test_a_copy_of_the_installation_leaves_the_running_ones_alone(bench, tmp_path, engine):
    workspace = await bench.started()
    copy = Home(tmp_path / "copy")
    copied = ["cp", "-a", str(bench.home.root), str(copy.root)]
    await asyncio.to_thread(subprocess.run, copied, check=True)
    other = ProcessDriver(copy, engine=engine)
    assert not await other.alive(workspace)
    await other.start(workspace)
    await other.stop(workspace)
    assert await bench.driver.alive(workspace)
    assert await bench.said(workspace, "echo here") == "here"


async def test_without_a_record_the_socket_leads_to_it(bench):
    workspace = await bench.started()
    places = places_of(bench.home, workspace)
    before = load_record(places.record)
    places.record.unlink()
    again = ProcessDriver(bench.home)
    assert await again.alive(workspace)
    assert load_record(places.record) == before
    await again.stop(workspace)
    assert not await bench.driver.alive(workspace)


async def test_a_recycled_pid_is_not_killed(bench, bystander):
    old = ProcessRef(bystander.pid, bystander.started - 1)
    workspace = await bench.started()
    places = places_of(bench.home, workspace)
    record = load_record(places.record)
    assert record
    await bench.driver.stop(workspace)
    store_record(places.record, record.model_copy(update={"init": old, "engine": old}))
    assert not await bench.driver.alive(workspace)
    await bench.driver.stop(workspace)
    send(old, signal.SIGKILL)
    assert is_running(bystander)


async def test_another_boot_means_nothing_runs(bench, bystander):
    workspace = await bench.started()
    places = places_of(bench.home, workspace)
    record = load_record(places.record)
    assert record
    await bench.driver.stop(workspace)
    foreign = {"boot": "other", "init": bystander, "engine": bystander}
    store_record(places.record, record.model_copy(update=foreign))
    assert not await bench.driver.alive(workspace)
    await bench.driver.stop(workspace)
    assert is_running(bystander)


async def test_stop_ends_what_detached_itself(bench):
    workspace = await bench.started()
    for seconds in (91.25, 92.25):
        await bench.said(workspace, DETACH.format(f"sleep {seconds}"))
    stubborn = 'trap "" TERM HUP; sleep 93.25; sleep 93.25'
    await bench.said(workspace, f"setsid -f sh -c '{stubborn}' >/dev/null 2>&1")
    await bench.driver.stop(workspace)
    assert running("sleep 9[123].25") == []
    await bench.driver.stop(workspace)


@pytest.mark.long
async def test_a_dead_engine_is_noticed_and_started_again(bench):
    workspace = await bench.started()
    await bench.said(workspace, DETACH.format("sleep 94.25"))
    record = load_record(places_of(bench.home, workspace).record)
    assert record
    assert record.engine
    send(record.engine, signal.SIGKILL)
    assert await wait_for_end(record.engine, 10)
    assert not await bench.driver.alive(workspace)
    with pytest.raises(ConnectionError):
        await bench.driver.connect(workspace)
    await bench.driver.start(workspace)
    assert running("sleep 94.25") == []
    assert await bench.said(workspace, "echo again") == "again"


@pytest.mark.parametrize("script", ["raise SystemExit('no such agent')", "print('lost'); 1/0"])
async def test_an_engine_that_ends_at_once(home, script):
    driver = ProcessDriver(home, engine=(sys.executable, "-I", "-c", script))
    await driver.provision(WORKSPACE, [], "qd/one", print)
    with pytest.raises(SandboxError) as caught:
        await driver.start(WORKSPACE)
    assert caught.value.details
    assert "no such agent" in caught.value.details or "ZeroDivisionError" in caught.value.details
    assert not await driver.alive(WORKSPACE)
    await driver.destroy(WORKSPACE)


async def test_an_engine_that_never_answers(home):
    script = "import time; print('thinking', flush=True); time.sleep(95.25)"
    driver = ProcessDriver(home, engine=(sys.executable, "-I", "-c", script), start_limit=0.5)
    await driver.provision(WORKSPACE, [], "qd/one", print)
    with pytest.raises(SandboxError, match="did not answer") as caught:
        await driver.start(WORKSPACE)
    assert caught.value.details == "thinking"
    assert running("sleep.95.25") == []
    await driver.destroy(WORKSPACE)


async def test_a_start_that_is_cancelled_leaves_nothing(home):
    script = "import time; time.sleep(96.25)"
    driver = ProcessDriver(home, engine=(sys.executable, "-I", "-c", script))
    await driver.provision(WORKSPACE, [], "qd/one", print)
    start = asyncio.create_task(driver.start(WORKSPACE))
    for _ in range(1000):
        if running("sleep.96.25"):
            break
        await asyncio.sleep(0.01)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert running("sleep.96.25") == []
    await driver.destroy(WORKSPACE)


async def test_a_start_before_provision_is_refused(bench):
    with pytest.raises(SandboxError, match="provisioned"):
        await bench.driver.start(WORKSPACE)


async def test_a_home_with_a_very_long_path(tmp_path, engine):
    deep = tmp_path.joinpath(*(["a-rather-long-directory-name"] * 9))
    assert len(str(deep)) > 200
    driver = ProcessDriver(Home(deep), engine=engine)
    await driver.provision(WORKSPACE, [], "qd/one", print)
    await driver.start(WORKSPACE)
    try:
        _, writer = await driver.connect(WORKSPACE)
        writer.close()
        await writer.wait_closed()
    finally:
        await driver.destroy(WORKSPACE)


@pytest.mark.long
async def test_destroy_removes_what_nobody_may_write(bench, checkout):
    source = await bench.connect(checkout)
    workspace = await bench.started(source)
    await bench.said(
        workspace, "mkdir -p a/b && touch a/b/c && ln -s / a/root && chmod 0 a/b/c a/b a"
    )
    await bench.driver.destroy(workspace)
    assert [path.name for path in bench.home.workspaces.iterdir()] == []
    await bench.driver.destroy(workspace)


async def test_configuration_is_readable_inside_alone(bench):
    workspace = await bench.provision()
    await bench.driver.write_config(workspace, '{"secret": "x"}')
    path = places_of(bench.home, workspace).run / "engine.json"
    assert path.stat().st_mode & 0o777 == 0o600
    await bench.driver.start(workspace)
    run_dir = (await bench.driver.layout(workspace)).run_dir
    assert await bench.said(workspace, f"cat {run_dir}/engine.json") == '{"secret": "x"}'


async def test_without_bubblewrap(bare, checkout, monkeypatch):
    monkeypatch.setenv("SERVICE_SECRET", "tell-nobody")
    isolation = await bare.driver.isolation()
    assert "apt install bubblewrap" in (isolation.note or "")
    assert any("kills its supervisor" in limit for limit in isolation.limits)
    workspace = await bare.started(await bare.connect(checkout))
    layout = await bare.driver.layout(workspace)
    told = await bare.said(workspace, "pwd; echo $HOME; id -u; env")
    assert told.splitlines()[:2] == [layout.workspace_dir, layout.home_dir]
    assert told.splitlines()[2] != "0"
    assert "tell-nobody" not in told
    assert "change 1" in await bare.said(workspace, "cd tools && git log --format=%s")


async def test_without_bubblewrap_nothing_escapes_by_detaching(bare):
    workspace = await bare.started()
    await bare.said(workspace, DETACH.format("env -i sleep 97.25"))
    assert running("sleep 97.25")
    await bare.driver.stop(workspace)
    assert running("sleep 97.25") == []


async def test_without_bubblewrap_a_killed_supervisor_leaves_nothing_marked(bare):
    workspace = await bare.started()
    await bare.said(workspace, DETACH.format("sleep 98.25"))
    record = load_record(places_of(bare.home, workspace).record)
    assert record
    send(record.init, signal.SIGKILL)
    assert await wait_for_end(record.init, 10)
    await bare.driver.stop(workspace)
    assert running("sleep 98.25") == []


async def test_without_bubblewrap_a_later_service_finds_it(bare, few_programs):
    workspace = await bare.started()
    before = load_record(places_of(bare.home, workspace).record)
    places_of(bare.home, workspace).record.unlink()
    with few_programs():
        again = ProcessDriver(bare.home)
        assert await again.alive(workspace)
    assert load_record(places_of(bare.home, workspace).record) == before


@pytest.mark.long
async def test_bubblewrap_that_came_later(bench, home, engine, checkout, few_programs, walled):
    """A workspace made without bubblewrap still finds its objects with it."""
    with few_programs():
        first = ProcessDriver(home, engine=engine)
        assert (await first.isolation()).mode == "none"
        source = await bench.connect(checkout)
        await first.provision(WORKSPACE, [source], "qd/one", print)
    await walled.driver.start(WORKSPACE)
    told = await walled.said(WORKSPACE, "cd tools && git log --format=%s 2>/dev/null")
    assert told.splitlines() == ["change 1", "change 0"]


def test_ended_children_are_not_taken_for_running():
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert find(pid) is None
    os.waitpid(pid, 0)


async def test_what_a_killed_service_had_in_hand_is_removed(bench, checkout):
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    trials = [bench.home.workspaces / f".trial-{pid}-ab" for pid in (ended.pid, os.getpid())]
    mirrors = [bench.home.mirrors / f".new-{pid}-ab" for pid in (ended.pid, os.getpid())]
    for directory in (*trials, *mirrors):
        (directory / "files").mkdir(parents=True)
    await bench.driver.isolation()
    await bench.connect(checkout)
    assert [directory.exists() for directory in (*trials, *mirrors)] == [False, True] * 2


@pytest.mark.parametrize(
    "name", ["status.jsonl", "sandbox.json", "run/engine.log", "programs/qd", "etc/passwd"]
)
async def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(bench, name):
    """As a damaged disk may leave it: opening one for writing waits for a reader, which never comes."""
    workspace = await bench.provision()
    path = bench.home.workspaces / workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    await bench.driver.start(workspace)
    assert await bench.driver.alive(workspace)
