"""The emulators' process: fed, killed, restarted, given up, ended."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.tui.terminal.core import LIMIT, SelectionKind
from quarterdeck.tui.terminal.emulator import Emulator, EmulatorPhase
from quarterdeck.tui.terminal.host import KILLED, NOT_STARTED, EmulatorHost

POISONED = (sys.executable, str(Path(__file__).with_name("poisoned_worker.py")))
POISON = b"\x1b]666;\x07"


@pytest.fixture
async def poisoned_host() -> AsyncIterator[EmulatorHost]:
    made = EmulatorHost(POISONED)
    yield made
    await made.close()


@pytest.fixture
def open_terminal(make_sink):
    def open_in(host: EmulatorHost, cols: int = 80, rows: int = 24):
        sink = make_sink()
        emulator = host.open(sink, cols, rows)
        sink.painted = emulator.painted
        emulator.show()
        return emulator, sink

    return open_in


async def test_output_becomes_rows_cursor_title_and_replies(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"\x1b]2;my title\x07hello \x1b[31mworld\x1b[6n\x07")
    await wait_for(lambda: sink.rows.get(0) == "hello world")
    state = sink.frames[-1].state
    assert (state.title, state.cursor.x, state.cursor.y, state.bells) == ("my title", 11, 0, 1)
    assert sink.replies == b"\x1b[1;12R"


@pytest.mark.long
async def test_queries_of_a_replay_are_not_answered(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"\x1b[c\x1b[6nold", replay=True)
    await emulator.feed(b"new\x1b[6n")
    await wait_for(lambda: sink.rows.get(0) == "oldnew")
    assert sink.replies == b"\x1b[1;7R"


@pytest.mark.long
async def test_only_changed_rows_are_told(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"first\r\n")
    await wait_for(lambda: sink.rows.get(0) == "first")
    before = len(sink.frames)
    await emulator.feed(b"x")
    await wait_for(lambda: len(sink.frames) > before)
    assert {y for y, _ in sink.frames[-1].rows} <= {0, 1}


@pytest.mark.long
async def test_a_hidden_terminal_sends_no_frames(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"one")
    await wait_for(lambda: sink.rows.get(0) == "one")
    emulator.hide()
    before = len(sink.frames)
    await emulator.feed(b"\r\ntwo")
    assert await emulator.selected_text() == ""  # everything before it was done
    assert len(sink.frames) == before
    emulator.show()
    await wait_for(lambda: sink.rows.get(1) == "two")


@pytest.mark.long
async def test_no_frame_before_the_last_one_is_painted(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    sink.painted = lambda: None
    await emulator.feed(b"one")
    await wait_for(lambda: sink.frames)
    count = len(sink.frames)
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        await emulator.feed(b"more\r\n" * 100)
        await emulator.selected_text()
    assert len(sink.frames) == count
    emulator.painted()
    await wait_for(lambda: len(sink.frames) == count + 1)


@pytest.mark.long
async def test_reset_under_a_flood_of_styles(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"x")
    pid = host.pid
    for n in range(20):
        colors = [b"\x1b[38;2;%d;%d;%dmx" % (n, m % 256, m // 256) for m in range(1000)]
        await emulator.feed(b"".join(colors))
        emulator.reset(80, 24)
        await emulator.feed(b"anew %d" % n, replay=True)
    await wait_for(lambda: sink.rows.get(0) == "anew 19")
    assert host.pid == pid


@pytest.mark.long
async def test_synchronized_output_is_not_torn(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"before")
    await wait_for(lambda: sink.rows.get(0) == "before")
    count = len(sink.frames)
    await emulator.feed(b"\x1b[?2026h\x1b[2J\x1b[Hhalf")
    await emulator.selected_text()
    assert len(sink.frames) == count
    await emulator.feed(b" whole\x1b[?2026l")
    await wait_for(lambda: len(sink.frames) > count)
    assert sink.rows[0] == "half whole"


@pytest.mark.long
async def test_scroll_select_copy(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"".join([b"line %d\r\n" % n for n in range(100)]))
    await wait_for(lambda: sink.rows.get(22) == "line 99")
    emulator.scroll(-10)
    await wait_for(lambda: sink.frames[-1].state.scrollback.back == 10)
    emulator.select_from(0, 0, SelectionKind.LINE)
    assert await emulator.selected_text() == sink.rows[0]
    emulator.scroll_to_bottom()
    await wait_for(lambda: sink.frames[-1].state.scrollback.back == 0)


@pytest.mark.long
async def test_killed_process_is_restarted_with_the_screen(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    other, other_sink = open_terminal(host)
    await other.feed(b"the other one")
    await emulator.feed(b"\x1b[?1049h\x1b[5;5Hin the middle\x1b[c")
    emulator.resize(100, 30)
    await wait_for(lambda: sink.frames and sink.frames[-1].state.cols == 100)
    old, replies = host.pid, sink.replies
    sink.rows.clear()
    other_sink.rows.clear()
    os.kill(old, signal.SIGKILL)
    await emulator.feed(b", and after")
    await wait_for(lambda: sink.rows.get(4) == "    in the middle, and after")
    await wait_for(lambda: other_sink.rows.get(0) == "the other one")
    state = sink.frames[-1].state
    assert (state.cols, state.rows, host.pid != old) == (100, 30, True)
    assert sink.replies == replies
    assert not sink.failed and not other_sink.failed


@pytest.mark.long
async def test_killed_under_a_flood(host, open_terminal, wait_for) -> None:
    emulator, sink = open_terminal(host)
    for round_number in range(60):
        if round_number == 30:
            os.kill(host.pid, signal.SIGKILL)
        lines = [b"round %d line %d\r\n" % (round_number, n) for n in range(2000)]
        await emulator.feed(b"".join(lines))
    await emulator.feed(b"end")
    await wait_for(lambda: sink.rows.get(23) == "end")
    assert sink.rows[22] == "round 59 line 1999"
    assert not sink.failed


@pytest.mark.long
async def test_alternate_screen_outlives_its_dropped_beginning(
    host, open_terminal, wait_for
) -> None:
    emulator, sink = open_terminal(host)
    await emulator.feed(b"\x1b[?1049h\x1b[?1h")
    await emulator.feed(b"\x1b[Hfull of the same \x1b[K" * (LIMIT // 20))
    await wait_for(lambda: sink.rows.get(0) == "full of the same")
    modes = sink.frames[-1].state.modes
    sink.frames.clear()
    os.kill(host.pid, signal.SIGKILL)
    await wait_for(lambda: sink.frames)
    assert sink.frames[-1].state.modes == modes


@pytest.mark.long
async def test_bytes_that_kill_twice_are_given_up_alone(
    poisoned_host, open_terminal, wait_for
) -> None:
    sick, sick_sink = open_terminal(poisoned_host)
    well, well_sink = open_terminal(poisoned_host)
    await well.feed(b"well")
    await sick.feed(b"sick")
    await wait_for(lambda: sick_sink.rows.get(0) == "sick")
    await sick.feed(POISON)
    await wait_for(lambda: sick_sink.failed)
    assert sick_sink.failed == KILLED
    well_sink.rows.clear()
    await well.feed(b" and alive")
    await wait_for(lambda: well_sink.rows.get(0) == "well and alive")
    assert not well_sink.failed
    async with asyncio.timeout(60):
        await sick.feed(b"x" * 1_000_000)  # dropped, and nobody waits
    sick.reset(80, 24)
    await sick.feed(b"anew")
    await wait_for(lambda: sick_sink.rows.get(0) == "anew")


@pytest.mark.long
async def test_a_process_that_does_not_start(open_terminal, wait_for) -> None:
    for command in ((*POISONED, "silent"), ("/nonexistent/python",)):
        host = EmulatorHost(command)
        emulator, sink = open_terminal(host)
        await emulator.feed(b"x")
        assert sink.failed == NOT_STARTED
        assert emulator.phase is EmulatorPhase.FAILED
        await host.close()


@pytest.mark.long
async def test_the_feeder_waits_for_a_process_that_is_behind(host, open_terminal) -> None:
    emulator, _ = open_terminal(host)
    await emulator.feed(b"x")
    os.kill(host.pid, signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                for _ in range(1000):
                    await emulator.feed(b"y" * 10_000)
    finally:
        os.kill(host.pid, signal.SIGCONT)
    async with asyncio.timeout(60):
        await emulator.feed(b"z")


@pytest.mark.long
async def test_closing_leaves_no_process(open_terminal, wait_for) -> None:
    host = EmulatorHost()
    emulator, _ = open_terminal(host)
    await emulator.feed(b"x")
    pid = host.pid
    await host.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await emulator.feed(b"after the end")


@pytest.mark.long
async def test_the_process_ends_with_the_cockpit(wait_for) -> None:
    code = (
        "import asyncio, os\n"
        "from quarterdeck.tui.terminal.host import EmulatorHost\n"
        "class Sink:\n"
        "    def on_frame(self, f): pass\n"
        "    def on_reply(self, d): pass\n"
        "    def on_failed(self, s): pass\n"
        "    def on_restart(self): pass\n"
        "async def main():\n"
        "    host = EmulatorHost()\n"
        "    await host.open(Sink(), 80, 24).feed(b'x')\n"
        "    print(host.pid, flush=True)\n"
        "    os._exit(9)\n"
        "asyncio.run(main())\n"
    )
    cockpit = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await cockpit.communicate()
    await wait_for(lambda: not _alive(int(out)))


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.long
async def test_flood_in_two_terminals_is_shared(host, open_terminal, wait_for) -> None:
    first, first_sink = open_terminal(host)
    second, second_sink = open_terminal(host, 200, 50)
    await asyncio.gather(first.feed(b"ready"), second.feed(b"ready"))
    stop = asyncio.Event()

    async def flood(emulator: Emulator) -> int:
        size = 0
        colors = b"".join([b"\x1b[48;5;%dm%d" % (n, n) for n in range(256)])
        while not stop.is_set():
            await emulator.feed(colors * 20)
            size += len(colors) * 20
        return size

    floods = [asyncio.create_task(flood(e)) for e in (first, second)]
    await wait_for(lambda: len(first_sink.frames) > 10 and len(second_sink.frames) > 10)
    stop.set()
    sizes = await asyncio.gather(*floods)
    assert min(sizes) * 20 > max(sizes)


def test_the_process_is_light() -> None:
    code = (
        "import sys, quarterdeck.tui.terminal.worker\n"
        "heavy = {'asyncio', 'textual', 'rich', 'pydantic', 'httpx', 'ssl'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=False)
    assert done.stderr == b""
