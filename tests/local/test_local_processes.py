"""Processes that are ended with all that they started."""

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from quarterdeck.engine.git import GitError
from quarterdeck.engine.git import run_git as run_in_engine
from quarterdeck.local import processes
from quarterdeck.local.processes import ProcessRef, end_process, find, is_running, send
from quarterdeck.sandboxes.git import stream_process
from quarterdeck.sandboxes.processes import wait_for_end
from tests.support.git import make_repository

# The last one holds the pipe until it is killed.
_SCRIPT = """
setsid sh -c 'echo own $$; exec sleep 1000 >&2' &
sh -c 'echo grandchild $$; exec sleep 1000' &
wait
"""
_ENDLESS = "!while :; do sleep 1; done; :"


async def test_what_a_process_started_ends_with_it_but_not_what_has_a_session_of_its_own() -> None:
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", _SCRIPT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    lines = [(await process.stdout.readline()).split() for _ in range(2)]
    pids = {name.decode(): int(pid) for name, pid in lines}
    own, grandchild = find(pids["own"]), find(pids["grandchild"])
    assert own is not None
    assert grandchild is not None
    try:
        await end_process(process)
        assert await wait_for_end(grandchild, 60)
        assert is_running(own)
    finally:
        os.kill(pids["own"], signal.SIGKILL)


@pytest.fixture
def bystander() -> Iterator[ProcessRef]:
    """A program of the machine that nothing may end."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        ref = find(process.pid)
        assert ref and process.stdin and process.stdout
        yield ref
        # It would not answer after a signal that is on its way.
        process.stdin.write(b"alive\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"alive\n"
        process.kill()


def test_a_number_that_was_given_to_another_process_is_left_alone(
    bystander: ProcessRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = ProcessRef(bystander.pid, bystander.started - 1)
    assert not is_running(earlier)
    send(earlier, signal.SIGKILL)

    def no_handles(_: int) -> int:
        raise OSError(errno.ENOSYS, "a kernel before 5.3")

    monkeypatch.setattr(os, "pidfd_open", no_handles)
    send(earlier, signal.SIGKILL)


def test_a_number_that_is_given_to_another_process_between_look_and_signal_is_left_alone(
    bystander: ProcessRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handle was opened before the look, so it is that of the process that was meant."""
    with subprocess.Popen(["sleep", "600"]) as meant:
        ref = find(meant.pid)
        assert ref

        def look(_: ProcessRef) -> bool:
            meant.kill()
            meant.wait()
            # As if its number was the bystander's by now.
            monkeypatch.setattr(os, "kill", lambda _, number: usual(bystander.pid, number))
            return True

        usual = os.kill
        monkeypatch.setattr(processes, "is_running", look)
        send(ref, signal.SIGKILL)


async def test_a_time_limit_of_git_holds_when_what_it_started_goes_on(
    tmp_path: Path,
) -> None:
    place = make_repository(tmp_path / "shop")
    with pytest.raises(GitError, match="took longer"):
        await run_in_engine(
            place, os.environ, "-c", f"alias.endless={_ENDLESS}", "endless", seconds=0.2
        )


def pipes() -> set[str]:
    """The pipes that this process has open, by their unique names."""
    open_files: set[str] = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            open_files.add(str(path.readlink()))
    return {name for name in open_files if name.startswith(("pipe:", "socket:"))}


async def closings() -> None:
    """Let the event loop do what closed transports left to it."""
    for _ in range(5):
        await asyncio.sleep(0)


HOLDS = "setsid sleep 1000 & echo $!; exec {} >&-"


@pytest.mark.parametrize("ended", [False, True], ids=["runs", "ended"])
async def test_pipes_are_closed_that_others_still_have(ended: bool) -> None:
    """Else each such process leaves a descriptor behind, and a warning when it is collected."""
    before = pipes()
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", HOLDS.format("true" if ended else "sleep 1000")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    made = pipes() - before
    assert made and process.stdin is not None and process.stdout is not None
    process.stdin.write(bytes(1 << 20))  # which nobody reads
    holder = int(await process.stdout.readline())
    try:
        while ended and process.returncode is None:  # noqa: ASYNC110 (no event)
            await asyncio.sleep(0.01)
        await end_process(process)
        assert process.returncode == (0 if ended else -signal.SIGKILL)
        assert find(holder) is not None
        await closings()
        assert not made & pipes()
    finally:
        os.kill(holder, signal.SIGKILL)


async def test_a_stream_closes_the_pipe_that_a_program_in_the_background_has() -> None:
    before = pipes()
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", "sleep 1000 >&- & echo $!; exec true"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    made = pipes() - before
    output = b"".join([part async for part in stream_process(process)])
    try:
        assert find(int(output)) is not None
        await closings()
        assert not made & pipes()
    finally:
        os.kill(int(output), signal.SIGKILL)
