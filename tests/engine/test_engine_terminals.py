import asyncio
import re
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

import pyte
import pytest

from quarterdeck.engine import terminals
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.link import EngineLink
from quarterdeck.engine.terminal import InputOrder
from quarterdeck.wire.engine import TerminalFrame
from quarterdeck.wire.terminals import (
    REPLAY_BYTES,
    CreateTerminal,
    ResizeTerminal,
    TerminalInput,
    TerminalOutput,
    TerminalReplay,
)
from tests.support.visible import text_rows
from tests.support.waiting import eventually


@dataclass
class Watch:
    """A stream that is read on, with everything it brought."""

    link: EngineLink
    frames: list[TerminalFrame] = field(default_factory=list)
    text: str = ""
    offset: int = 0

    async def read(self) -> None:
        async for frame in self.link.terminal_frames():
            self.frames.append(frame)
            self.offset = frame.offset
            if isinstance(frame.event, TerminalOutput | TerminalReplay):
                self.text += b64decode(frame.event.data).decode(errors="replace")


@asynccontextmanager
async def watching(place, session: UUID, offset: int | None = None) -> AsyncIterator[Watch]:
    link = await place.link()
    await link.terminal_stream(session, offset)
    watch = Watch(link)
    reading = asyncio.create_task(watch.read())
    try:
        yield watch
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await link.close()


async def opened(place, cols: int = 80, rows: int = 24) -> tuple[EngineLink, UUID]:
    link = await place.link()
    answer = await link.terminal_create(CreateTerminal(cols=cols, rows=rows))
    return link, answer.session.id


async def test_a_shell_with_its_terminal_and_directory(place, keys, wait_until):
    await place.start()
    link, session = await opened(place)
    async with watching(place, session) as watch:
        await keys(link, session)("echo $TERM $COLORTERM; tty; pwd -P; jobs; echo $((6*7))\r")
        await wait_until(lambda: "\n42" in watch.text)
    assert "xterm-256color truecolor" in watch.text
    assert re.search(r"/dev/pts/\d+", watch.text)
    assert str(place.workspace) in watch.text
    assert "no job control" not in watch.text


async def test_the_list_names_the_program_that_runs_besides_the_shell(place, keys, wait_until):
    await place.start()
    link, session = await opened(place)
    press = keys(link, session)

    async def runs(name):
        return (await link.terminal_list()).sessions[0].program == name

    async with watching(place, session) as watch:
        await press("echo $((6*7))\r")
        await wait_until(lambda: "42" in watch.text)
        await eventually(lambda: runs(None))
        await press("sleep 1000\r")
        await eventually(lambda: runs("sleep"))
        await press("\x03")
        await eventually(lambda: runs(None))
        await press("sleep 1000 & echo $((7*7))\r")
        await wait_until(lambda: "49" in watch.text)
        await eventually(lambda: runs("sleep"))


async def test_a_resize_is_seen_by_the_program_and_told(place, keys, wait_until):
    await place.start()
    link, session = await opened(place, 80, 24)
    async with watching(place, session) as watch:
        press = keys(link, session)
        await press("stty size\r")
        await wait_until(lambda: "24 80" in watch.text)
        await link.terminal_resize(session, ResizeTerminal(cols=132, rows=50))
        await press("stty size\r")
        await wait_until(lambda: "50 132" in watch.text)
        sizes = [f.event for f in watch.frames if f.event.type == "resize"]
        assert [(s.cols, s.rows) for s in sizes] == [(132, 50)]


async def test_a_late_viewer_gets_a_megabyte_and_resumes_at_an_offset(place, keys, wait_until):
    await place.start()
    link, session = await opened(place)
    press = keys(link, session)
    async with watching(place, session) as first:
        await press("seq -f '%.0f line' 300000; echo DO''NE\r")
        await wait_until(lambda: "DONE" in first.text[-100:])
        async with watching(place, session) as late:
            await wait_until(lambda: late.frames)
            replay = late.frames[0].event
            assert isinstance(replay, TerminalReplay) and replay.reset
            data = b64decode(replay.data).decode()
            assert len(data) >= REPLAY_BYTES and replay.offset == late.frames[0].offset
        await wait_until(lambda: first.offset >= replay.offset)
        assert first.text.endswith(data[: len(first.text)][-50_000:])
    middle = replay.offset - 500_000
    async with watching(place, session, middle) as resumed:
        await wait_until(lambda: resumed.offset >= replay.offset)
        assert {f.event.type for f in resumed.frames} == {"output"}
        assert resumed.text[:500_000] == data[-500_000:]
        await press("echo mo''re\r")
        await wait_until(lambda: "more" in resumed.text[-200:])
    async with watching(place, session, 10**9) as beyond:
        await wait_until(lambda: beyond.frames)
        assert beyond.frames[0].event.type == "replay"


async def test_exit_is_told_with_its_code_and_stays_listed(place, keys, wait_until):
    await place.start()
    link, session = await opened(place)
    async with watching(place, session) as watch:
        await keys(link, session)("exit 5\r")
        await wait_until(lambda: watch.frames and watch.frames[-1].event.type == "exit")
        assert watch.frames[-1].event.exit_code == 5
    listed = (await link.terminal_list()).sessions
    assert [(s.id, s.exited, s.exit_code) for s in listed] == [(session, True, 5)]
    async with watching(place, session) as again:
        await wait_until(lambda: len(again.frames) == 2)
        assert [f.event.type for f in again.frames] == ["replay", "exit"]
    with pytest.raises(EngineRefusedError, match="has ended"):
        await link.terminal_input(session, TerminalInput(data="x", generation=9, sequence=0))
    await link.terminal_close(session)
    assert (await link.terminal_list()).sessions == []


async def test_vim_draws_and_writes_a_file(place, keys, wait_until, require_tool):
    require_tool("vim")
    await place.start()
    link, session = await opened(place, 80, 24)
    screen = pyte.Screen(80, 24)
    stream = pyte.Stream(screen)
    async with watching(place, session) as watch:
        press, fed = keys(link, session), 0

        def shows(text: str) -> bool:
            nonlocal fed
            stream.feed(re.sub(r"\x1b\[[>?][\d;]*[mcu]|\x1bP.*?\x1b\\", "", watch.text[fed:]))
            fed = len(watch.text)
            return any(text in line for line in text_rows(screen))

        await press("vim -u NONE -N new.txt\r")
        await wait_until(lambda: shows("new.txt"))
        await press("ihello from vim\x1b")
        await wait_until(lambda: shows("hello from vim"))
        await press(":wq\r")
        written = place.workspace / "new.txt"
        await wait_until(lambda: written.exists() and written.read_text() == "hello from vim\n")


@pytest.mark.long
async def test_a_flood_stops_at_ctrl_c(place, keys, wait_until):
    await place.start()
    link, session = await opened(place)
    async with watching(place, session) as watch:
        press = keys(link, session)
        await press("yes\r")
        await wait_until(lambda: watch.offset > 5_000_000)
        await press("\x03")
        await press("echo st''opped\r")
        await wait_until(lambda: "stopped" in watch.text[-300:])


async def test_a_flood_waits_for_its_only_viewer(place, keys):
    await place.start()
    link, session = await opened(place)
    slow = await place.link()
    await slow.terminal_stream(session)
    await keys(link, session)("yes\r")
    assert await comes_to_rest(place, session), "it went on although nobody reads"
    await slow.close()


async def comes_to_rest(place, session: UUID) -> bool:
    """Whether a flood stops; it may take several looks until everything on its way is full."""
    for _ in range(6):
        before = await settled(place, session)
        if await settled(place, session) - before < 300_000:
            return True
    return False


async def settled(place, session: UUID) -> int:
    """How far a terminal has come after half a second; looking lets it move a little."""
    await asyncio.sleep(0.5)
    return await probe(place, session)


async def probe(place, session: UUID) -> int:
    """The terminal's end offset, seen by a stream that leaves at once."""
    link = await place.link()
    await link.terminal_stream(session)
    async for frame in link.terminal_frames():
        await link.close()
        return frame.offset
    raise AssertionError


@pytest.mark.long
async def test_a_stalled_viewer_stops_nobody_and_gets_a_replay(
    place, keys, wait_until, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("quarterdeck.engine.terminal.STALL_SECONDS", 0.5)
    await place.start()
    link, session = await opened(place)
    stalled = await place.link()
    await stalled.terminal_stream(session)
    async with watching(place, session) as watch:
        await keys(link, session)("head -c 8000000 /dev/zero | tr '\\0' x; echo; echo E''ND\r")
        await wait_until(lambda: "END" in watch.text[-300:])
    seen: list[str] = []
    tail = ""
    async with asyncio.timeout(60):
        async for frame in stalled.terminal_frames():
            seen.append(frame.event.type)
            tail = (tail + b64decode(getattr(frame.event, "data", "")).decode())[-400:]
            if "END" in tail:
                break
    assert seen.count("replay") == 2 and seen[0] == "replay"


async def test_the_ninth_is_refused_and_an_ended_one_makes_place(place, keys, wait_until):
    await place.start()
    link = await place.link()
    size = CreateTerminal(cols=80, rows=24)
    made = [(await link.terminal_create(size)).session.id for _ in range(8)]
    with pytest.raises(EngineRefusedError) as refused:
        await link.terminal_create(size)
    assert refused.value.code == "TERMINAL_LIMIT_REACHED"
    async with watching(place, made[0]) as watch:
        await keys(link, made[0])("exit\r")
        await wait_until(lambda: watch.frames and watch.frames[-1].event.type == "exit")
    await link.terminal_create(size)
    assert len((await link.terminal_list()).sessions) == 9


async def test_an_ended_one_stays_listed_for_a_while(
    place, keys, wait_until, monkeypatch: pytest.MonkeyPatch
):
    await place.start()
    link, session = await opened(place)
    other = (await link.terminal_create(CreateTerminal(cols=80, rows=24))).session
    assert (other.ended, other.exited) == (False, False)
    async with watching(place, session) as watch:
        await keys(link, session)("exit 7\r")
        await wait_until(lambda: watch.frames and watch.frames[-1].event.type == "exit")
    shown = (await link.terminal_list()).sessions[0]
    assert (shown.id, shown.ended, shown.exited, shown.exit_code) == (session, True, True, 7)
    async with watching(place, session) as watch:
        await wait_until(lambda: watch.frames and watch.frames[-1].event.type == "exit")
    assert terminals.ENDED_SECONDS == 600
    monkeypatch.setattr(terminals, "ENDED_SECONDS", 0.0)
    assert [one.id for one in (await link.terminal_list()).sessions] == [other.id]
    with pytest.raises(EngineRefusedError) as refused:
        await link.terminal_close(session)
    assert refused.value.code == "NOT_FOUND"


async def test_input_is_typed_once_and_in_order(place, wait_until):
    await place.start()
    link, session = await opened(place)

    def send(data: str, generation: int, sequence: int):
        request = TerminalInput(data=data, generation=generation, sequence=sequence)
        return link.terminal_input(session, request)

    async with watching(place, session) as watch:
        late = asyncio.create_task(send("c\r", 1, 2))
        await send("echo a", 1, 0)
        await send("echo a", 1, 0)
        await send("b", 1, 1)
        await late
        await send("older\r", 0, 0)
        await wait_until(lambda: re.search(r"[\r\n]abc", watch.text))
        await send("echo fresh\r", 2, 0)
        await wait_until(lambda: re.search(r"[\r\n]fresh", watch.text))
    assert "older" not in watch.text and "aecho" not in watch.text


async def test_a_gap_is_a_conflict(place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("quarterdeck.engine.terminal.InputOrder", lambda: InputOrder(0.1))
    await place.start()
    link, session = await opened(place)
    with pytest.raises(EngineRefusedError) as refused:
        await link.terminal_input(session, TerminalInput(data="x", generation=0, sequence=4))
    assert refused.value.code == "CONFLICT"


async def test_close_ends_what_ignores_the_hangup(place, keys, wait_until):
    await place.start()
    link, session = await opened(place)
    async with watching(place, session) as watch:
        await keys(link, session)("trap '' HUP; (trap '' HUP; sleep 300) & echo pid=$!\r")
        found = await wait_until(lambda: re.search(r"\npid=(\d+)", watch.text))
        await link.terminal_close(session)
        await wait_until(lambda: watch.frames[-1].event.type == "exit")
    pid = int(found[1])
    await wait_until(lambda: not running(pid))


def running(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


async def test_unknown_terminals_and_sizes_are_refused(place):
    await place.start()
    link = await place.link()
    with pytest.raises(EngineRefusedError) as missing:
        await link.terminal_close(uuid4())
    assert missing.value.code == "NOT_FOUND"
    bad = CreateTerminal.model_construct(cols=5000, rows=5000)
    with pytest.raises(EngineRefusedError) as invalid:
        await link.terminal_create(bad)
    assert invalid.value.code == "INVALID_REQUEST" and "cols" in (invalid.value.details or "")
