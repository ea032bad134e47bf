"""Processes that are ended with all that they started."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from quarterdeck.engine.git import GitError
from quarterdeck.engine.git import run_git as run_in_engine
from quarterdeck.local.processes import end_process, find, is_running
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


async def test_a_time_limit_of_git_holds_when_what_it_started_goes_on(
    tmp_path: Path,
) -> None:
    place = make_repository(tmp_path / "shop")
    with pytest.raises(GitError, match="took longer"):
        await run_in_engine(
            place, os.environ, "-c", f"alias.endless={_ENDLESS}", "endless", seconds=0.2
        )
