import asyncio
import hashlib
import os
import resource
import sys
import time
from pathlib import Path

import pytest

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.exec import run_command
from quarterdeck.wire.engine import StreamCommand
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.terminals import EXEC_OUTPUT_LIMIT, ExecRequest, ExecResponse


async def run(command: str, directory: Path, seconds: int = 30) -> ExecResponse:
    request = ExecRequest(command=command, timeout_seconds=seconds)
    return await run_command(request, directory, dict(os.environ))


async def test_output_and_exit_code_in_the_directory(tmp_path: Path):
    answer = await run("pwd; echo wrong >&2; exit 7", tmp_path)
    assert answer == ExecResponse(
        output=f"{tmp_path}\nwrong\n", exit_code=7, timed_out=False, truncated=False
    )


async def test_time_out_kills_grandchildren_in_groups_of_their_own(tmp_path: Path, wait_until):
    own_group = "import os, time; os.setpgid(0, 0); time.sleep(300)"
    script = (
        "echo before; (sleep 300 & echo $! > a); "
        f"{sys.executable} -c '{own_group}' & echo $! > b; wait"
    )
    began = time.monotonic()
    answer = await run(script, tmp_path, seconds=1)
    assert time.monotonic() - began < 60  # and not the 300 of what it started
    assert answer.timed_out and answer.exit_code is None and answer.output == "before\n"
    for name in ("a", "b"):
        pid = int((tmp_path / name).read_text())
        await wait_until(lambda pid=pid: not alive(pid))


async def test_a_cancelled_call_stops_its_command(tmp_path: Path, wait_until):
    task = asyncio.create_task(run("echo $$ > pid; sleep 300", tmp_path))
    pid = int(await wait_until(lambda: read(tmp_path / "pid")))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)


async def test_a_gigabyte_of_output_keeps_the_tail_in_little_memory(tmp_path: Path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await run("head -c 1000000000 /dev/zero; printf end", tmp_path, seconds=50)
    assert answer.exit_code == 0 and answer.truncated
    assert len(answer.output) == EXEC_OUTPUT_LIMIT and answer.output.endswith("\0end")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


async def test_a_background_child_does_not_hang_the_answer(tmp_path: Path):
    began = time.monotonic()
    answer = await run("sleep 300 & echo $!", tmp_path)
    os.kill(int(answer.output), 9)
    assert answer.exit_code == 0 and time.monotonic() - began < 60


async def test_a_signal_is_told_like_a_shell_does(tmp_path: Path):
    assert (await run("kill -9 $$", tmp_path)).exit_code == 137


async def test_pipes_end_quietly(tmp_path: Path):
    answer = await run("yes | head -n 1", tmp_path)
    assert answer.output == "y\n" and answer.exit_code == 0


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path):
    assert (await run(r"printf 'a\377b'", tmp_path)).output == "a\ufffdb"


@pytest.mark.parametrize("characters", [131_070, 131_080, 3_000_000])
async def test_a_command_longer_than_an_argument_is_run(tmp_path: Path, characters: int):
    end = "\n'; cat; printf 'ended%s' $#; exit 7"
    begin = "printf '%s' 'it\\'; echo \"$0\"; : '"
    command = begin + "é" * ((characters - len(begin) - len(end)) // 2) + end
    answer = await run(command, tmp_path)
    assert (answer.output, answer.exit_code) == ("it\\/bin/sh\nended0", 7)


async def test_a_long_command_leaves_nothing_of_how_it_was_given(tmp_path: Path):
    listing = "ls -l /proc/self/fd | sed -n 's/.* -> //p' | grep -v '^/proc' #"
    short, long = await run(listing, tmp_path), await run(listing + "x" * 140_000, tmp_path)
    assert "/dev/null" in short.output
    assert [line.split(":")[0] for line in long.output.splitlines()] == [
        line.split(":")[0] for line in short.output.splitlines()
    ]


async def test_variables_too_large_for_a_process_are_told_with_what_to_do(tmp_path: Path):
    large = {f"LARGE_{number}": "x" * 65_536 for number in range(120)}
    with pytest.raises(EngineRefusedError) as refused:
        await run_command(ExecRequest(command="true"), tmp_path, {**os.environ, **large})
    assert refused.value.code == ErrorCode.CONFLICT
    assert "variables are together too large" in refused.value.message
    assert "files of the environment" in refused.value.message


def asked(directory: Path, script: str) -> StreamCommand:
    return StreamCommand(command=["/bin/sh", "-c", script], directory=str(directory))


@pytest.mark.long
async def test_a_stream_has_all_bytes_in_little_memory(place, tmp_path: Path):
    engine = await place.spawn()
    link = await place.link()
    before = peak(engine.pid)
    digest, size, parts = hashlib.sha256(), 0, 0
    script = "yes 'a line of text' | head -c 100000000; printf '\\377end'"
    async for part in link.command_output(asked(tmp_path, script)):
        digest.update(part)
        size, parts = size + len(part), parts + 1
    expected = (b"a line of text\n" * 7_000_000)[:100_000_000] + b"\377end"
    assert (size, digest.digest()) == (len(expected), hashlib.sha256(expected).digest())
    assert parts < 2_000
    assert peak(engine.pid) - before < 10_000  # KiB


@pytest.mark.long
async def test_a_streamed_command_has_a_directory_and_no_input(place, tmp_path: Path):
    await place.spawn()
    parts = (await place.link()).command_output(asked(tmp_path, "pwd; cat"))
    assert [part async for part in parts] == [f"{tmp_path}\n".encode()]


@pytest.mark.long
async def test_a_stream_that_nobody_reads_stops_its_command(place, tmp_path: Path, wait_until):
    engine = await place.spawn()
    link = await place.link()
    before = peak(engine.pid)
    parts = link.command_output(
        asked(tmp_path, "echo $$ > pid; sleep 300 & echo $! > child; exec yes")
    )
    await anext(parts)
    pids = [int(await wait_until(lambda name=name: read(tmp_path / name))) for name in PID_FILES]
    # Blocked at a full pipe, it is not read into memory.
    await wait_until(lambda: "pipe_write" in waits(pids[0]))
    assert peak(engine.pid) - before < 10_000
    await link.close()
    for pid in pids:
        await wait_until(lambda pid=pid: not alive(pid))


@pytest.mark.long
async def test_a_failed_command_says_why(place, tmp_path: Path):
    place.environment["ONLY_CONFIGURED"] = "1"
    await place.spawn()
    link = await place.link()
    with pytest.raises(EngineRefusedError) as refused:
        async for part in link.command_output(
            asked(tmp_path, "echo out; echo why $ONLY_CONFIGURED >&2; exit 3")
        ):
            assert part == b"out\n"
    assert (refused.value.code, refused.value.details) == ("CONFLICT", "why\n")
    for request in (asked(tmp_path / "gone", "true"), asked(tmp_path, "kill -9 $$")):
        with pytest.raises(EngineRefusedError) as refused:
            await anext((await place.link()).command_output(request))
        assert refused.value.code == "CONFLICT"
    assert (await link.status()).terminals == 0


async def test_a_background_child_does_not_hang_a_stream(place, tmp_path: Path):
    await place.spawn()
    parts = (await place.link()).command_output(asked(tmp_path, "sleep 300 & echo $!"))
    output = b"".join([part async for part in parts])
    os.kill(int(output), 9)


PID_FILES = ("pid", "child")


def peak(pid: int) -> int:
    """Return the most memory that a process had so far, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def waits(pid: int) -> str:
    return Path(f"/proc/{pid}/wchan").read_text()


def read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def alive(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
