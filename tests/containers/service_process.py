"""Services in processes of their own (`serve_deck`), which tests kill."""

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.support.forked import ForkedPopen
from tests.support.waiting import WAIT_SECONDS

ROOT = Path(__file__).parents[2]


async def serving(log: Path, *words: str) -> tuple[ForkedPopen, int]:
    """Start a service; return it and its port."""
    with log.open("ab") as stderr:
        process = ForkedPopen(
            [sys.executable, "-m", "tests.containers.serve_deck", *words],
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            line = await asyncio.to_thread(process.stdout.readline)
    except BaseException:
        process.kill()  # else the thread reads for ever
        raise
    assert line, log.read_text()  # noqa: ASYNC240
    return process, int(line)


async def kill(process: ForkedPopen) -> None:
    process.kill()
    await asyncio.to_thread(process.wait)  # the pipe's end would be that of containers
    assert process.stdout is not None
    process.stdout.close()
