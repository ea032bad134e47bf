"""Commands that run in a workspace's sandbox beside its engine, or while it rests."""

import asyncio
import os
import sys

import pytest

from quarterdeck.local.processes import find
from quarterdeck.sandboxes import processes
from quarterdeck.sandboxes.launch import LAUNCHER


async def ran(bench, workspace, *command, data=b"", environment=None):
    layout = await bench.driver.layout(workspace)
    process = await bench.driver.open_process(
        workspace, command, directory=layout.workspace_dir, environment=environment or {}
    )
    out, said = await process.communicate(data)
    return process.returncode, out, said


@pytest.mark.parametrize("rests", [False, True])
async def test_a_command_sees_what_the_engine_sees(bench, checkout, rests, monkeypatch):
    monkeypatch.setenv("QD_OF_THE_SERVICE", "secret")
    workspace = await bench.started(await bench.connect(checkout))
    if rests:
        await bench.driver.stop(workspace)
    name = checkout.name
    command = f"git -C {name} rev-parse HEAD && cat {name}/file.txt - && echo $GIVEN >&2"
    status, out, said = await ran(
        bench, workspace, "/bin/sh", "-c", command, data=b"given", environment={"GIVEN": "here"}
    )
    assert (status, said) == (0, b"here\n")
    assert out.endswith(b"\nline 1\ngiven"), out
    _, out, _ = await ran(bench, workspace, "/usr/bin/env")
    assert b"QD_OF_THE_SERVICE" not in out
    assert await bench.driver.alive(workspace) is not rests


@pytest.mark.long
async def test_its_status_and_its_errors_are_its_own(bench, checkout):
    workspace = await bench.started(await bench.connect(checkout))
    assert await ran(bench, workspace, "/bin/sh", "-c", "echo no >&2; exit 3") == (3, b"", b"no\n")


@pytest.mark.parametrize("ended_by", ["stop", "group"])
async def test_it_ends_with_the_sandbox_and_with_its_process_group(bench, checkout, ended_by):
    workspace = await bench.started(await bench.connect(checkout))
    layout = await bench.driver.layout(workspace)
    process = await bench.driver.open_process(
        workspace,
        ["/bin/sh", "-c", "sleep 1000 & echo begun; wait"],
        directory=layout.workspace_dir,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"begun\n"
    if ended_by == "stop":
        await bench.driver.stop(workspace)
    else:
        os.killpg(process.pid, 9)
    assert await process.stdout.read() == b""  # no process holds the other end
    assert await process.wait() != 0


@pytest.fixture
def launched(monkeypatch):
    """The processes that were launched, in order."""
    found = []
    start = asyncio.create_subprocess_exec

    async def noted(*command, **options):
        process = await start(*command, **options)
        if str(LAUNCHER) in command:
            found.append(process)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    return found


@pytest.mark.long
async def test_a_launcher_is_kept_ready_for_the_next_command(walled, checkout, launched):
    workspace = await walled.started(await walled.connect(checkout))
    async with walled.driver.kept_ready():
        for number in range(3):
            status = await ran(walled, workspace, "/bin/sh", "-c", f"echo {number}; exit {number}")
            assert status == (number, f"{number}\n".encode(), b"")
            [*used, ahead] = launched
            assert (len(used), ahead.returncode) == (number + 1, None)
        ahead.kill()
        await ahead.wait()
        assert await ran(walled, workspace, "/bin/true") == (0, b"", b"")
    assert [process.returncode for process in launched] == [0, 1, 2, -9, 0, 0]
    assert await ran(walled, workspace, "/bin/true") == (0, b"", b"")
    assert len(launched) == 7


ENDED_WITH_ONE_AHEAD = """
import asyncio, os, signal, sys
from pathlib import Path
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver

async def main():
    driver = ProcessDriver(Home(Path(sys.argv[1])))
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    async with driver.kept_ready():
        async for _ in driver.stream_command(sys.argv[2], ["/bin/true"], directory="/"):
            pass
        while not children.read_text():
            await asyncio.sleep(0)
        print(children.read_text(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.long
async def test_a_launcher_that_waits_ends_when_its_service_is_killed(walled, checkout):
    workspace = await walled.started(await walled.connect(checkout))
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ENDED_WITH_ONE_AHEAD, str(walled.home.root), workspace),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await service.communicate()
    (launcher,) = out.split()
    ref = find(int(launcher))
    assert ref is None or await processes.wait_for_end(ref, 60)
