"""What is written ahead of the terminal, and how fast streamed text is."""

import asyncio
import io
import sys
import time
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any, cast

import pytest
from textual import events
from textual.message import Message

from quarterdeck.tui.frames import pace as frames_pace
from quarterdeck.tui.frames.pace import (
    ASK_EVERY,
    LEAST_AHEAD,
    REPLY_SECONDS,
    STREAM_AHEAD,
    STREAM_BURST,
    STREAM_INTERVAL,
    STREAM_RATE,
    LinePace,
    Pacing,
    StreamPace,
)
from quarterdeck.tui.textual_ext.driver import (
    QUESTION,
    REPLY,
    AltKeyParser,
    Outlet,
    OutletDriver,
    TerminalReply,
)
from quarterdeck.tui.transcript_view import TranscriptView
from tests.support.program import Program
from tests.tui_transcript.paced_app import PROSE, Beside, Paced, say

ASKED = QUESTION.encode()


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def known_line(clock: Clock, delay: float = 0.2, rate: float = 0.0) -> LinePace:
    """A line whose terminal has replied, and shown one frame if there is a `rate`."""
    pace = LinePace(clock)
    assert pace.ask() == QUESTION
    clock.now += delay
    pace.reply(clock.now)
    if rate:
        assert pace.frame(ASK_EVERY) == QUESTION
        clock.now += delay + ASK_EVERY / rate
        pace.reply(clock.now)
    return pace


def test_small_frames_are_not_followed_by_questions() -> None:
    pace = known_line(Clock())
    assert [pace.frame(ASK_EVERY // 10) for _ in range(11)].count(QUESTION) == 1


def test_frames_wait_behind_what_the_line_does_not_carry_in_a_moment() -> None:
    clock = Clock()
    pace = known_line(clock)
    assert pace.frame(9_000) == QUESTION
    clock.now += 0.2 + 9_000 / 20_000
    pace.reply(clock.now)
    assert round(pace.rate) == 20_000 and pace.may_draw and not pace.ahead
    pace.frame(5_900)
    assert pace.may_draw  # 20 kB/s for the 0.2 s of the way and 0.1 s of waiting
    pace.frame(200)
    assert not pace.may_draw
    clock.now += 0.5
    pace.reply(clock.now)
    assert pace.may_draw


def test_a_fast_line_is_never_waited_for() -> None:
    clock = Clock()
    pace = known_line(clock, 0.001)
    for _ in range(20):
        pace.frame(9_000)
        assert pace.may_draw
        clock.now += 0.002
        pace.reply(clock.now)


def test_a_terminal_that_never_replies_is_asked_no_more_and_never_waited_for() -> None:
    clock = Clock()
    pace = LinePace(clock)
    pace.ask()
    assert pace.frame(50_000) == QUESTION
    assert pace.may_draw
    clock.now += REPLY_SECONDS + 1
    assert pace.may_draw
    assert pace.frame(50_000) == ""


def test_a_reply_that_is_lost_is_not_waited_for_forever() -> None:
    clock = Clock()
    pace = known_line(clock, rate=5_000)
    pace.frame(LEAST_AHEAD * 2)
    assert not pace.may_draw
    clock.now += REPLY_SECONDS + 1
    assert pace.may_draw
    assert pace.frame(LEAST_AHEAD) == QUESTION


def test_replies_from_before_a_suspension_answer_nothing() -> None:
    clock = Clock()
    pace = known_line(clock, rate=5_000)
    pace.frame(LEAST_AHEAD)
    before = clock.now + 0.1
    clock.now += 1.0
    pace.restart()
    pace.ask()
    pace.reply(before)
    assert pace.shortest is not None and pace.shortest > 0.1
    pace.frame(LEAST_AHEAD * 2)
    assert not pace.may_draw


def test_streamed_text_has_a_budget() -> None:
    clock = Clock()
    pace = StreamPace(clock)
    assert pace.wait == 0.0
    sent, begun = 0, clock.now
    while clock.now < begun + 10:
        pace.spend(700)
        sent += 700
        assert pace.wait >= STREAM_INTERVAL - 1e-9
        clock.now += pace.wait
    assert abs(sent - 10 * STREAM_RATE) <= STREAM_BURST + 700


class Written:
    """A driver whose outlet is filled and emptied by the test."""

    def __init__(self) -> None:
        self.outlet = Outlet(io.StringIO(), asyncio.get_running_loop())

    def write(self, data: str) -> None:
        """Write nothing: a test counts only its own output."""


async def test_what_is_taken_while_the_terminal_is_asked_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames_pace, "REPLY_SECONDS", 600.0)
    driver, pacing, drawn = Written(), Pacing(), asyncio.Event()
    pacing.begin(cast("OutletDriver", driver))
    driver.outlet.queued = len("frame")
    assert not pacing.may_draw
    driver.outlet.write("frame")  # the writer's thread, before the frame is told to wait
    driver.outlet.flush()
    pacing.draw_later(drawn.set)
    async with asyncio.timeout(30):
        await drawn.wait()


SHOWN_BY: ContextVar[str] = ContextVar("SHOWN_BY")


@pytest.mark.parametrize("by", ["reply", "room"])
async def test_a_frame_that_waited_is_drawn_in_the_context_of_the_app(
    monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """What tells that there is room comes from a thread, and layout needs to know the app."""
    monkeypatch.setattr(frames_pace, "REPLY_SECONDS", 600.0)
    driver, pacing, seen = Written(), Pacing(), list[str]()
    SHOWN_BY.set("the app")
    pacing.begin(cast("OutletDriver", driver))
    pacing.draw_later(lambda: seen.append(SHOWN_BY.get("nobody")))
    tell = cast("Any", driver).on_reply if by == "reply" else driver.outlet.on_taken
    Context().run(tell, *([time.monotonic()] if by == "reply" else []))
    assert seen == ["the app"]


class CountedScreen(Beside):
    """Tells when everything that had changed is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = asyncio.Event()

    def _on_timer_update(self) -> None:
        super()._on_timer_update()
        self.drawn.set()


class CountedApp(Paced):
    """Its output is counted, and goes nowhere."""

    def get_default_screen(self) -> CountedScreen:
        return CountedScreen()


@pytest.mark.parametrize("covered", [False, True])
async def test_streamed_text_that_nobody_sees_is_not_charged_for_the_next_frame(
    covered: bool,
) -> None:
    app = CountedApp(1)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = cast("CountedScreen", app.screen)
        view = screen.query_one(TranscriptView)
        app.action_page(-1)
        await pilot.pause()
        if covered:
            screen = CountedScreen()
            await app.push_screen(screen)
            await pilot.pause()
        app.pacing.begin(cast("OutletDriver", Written()))
        screen.drawn.clear()
        view.refresh_change(app.transcript.append(say(PROSE, "stream")))
        await screen.drawn.wait()
        app.pacing.frame("x" * STREAM_RATE)  # a dialog that a key opens
        streamed: list[bool] = []
        app.pacing.stream(lambda: streamed.append(True))
        assert streamed


def _parsed(*pieces: str) -> list[Message]:
    parser = AltKeyParser()
    return [message for piece in pieces for message in parser.feed(piece)]


def test_a_reply_is_no_key() -> None:
    whole = _parsed(f"a{REPLY}b")
    assert sorted(m.key for m in whole if isinstance(m, events.Key)) == ["a", "b"]
    assert sum(isinstance(message, TerminalReply) for message in whole) == 1
    assert [type(message) for message in _parsed(REPLY[:2], REPLY[2:])] == [TerminalReply]


def test_a_reply_in_the_middle_of_a_paste_is_not_pasted() -> None:
    found = _parsed(f"\x1b[200~one {REPLY}two\x1b[201~")
    assert [m.text for m in found if isinstance(m, events.Paste)] == ["one two"]


# With a program: the terminal replies when the test says so.


def _open(open_session: Callable[..., Any], seconds: int, **environment: str) -> Any:
    """A session whose terminal replies at once, and is slow to show the first frame."""
    session = open_session("paced_app.py", str(seconds), **environment)
    session.wait(lambda: ASKED in session.output)
    session.send(REPLY)
    session.replied = 1
    session.wait_text("answer 99")
    session.wait_quiet()
    return session


def _reply_to_all(session: Any) -> None:
    """Replies to what was asked so far."""
    asked = session.output.count(ASKED) - session.replied
    session.replied = session.output.count(ASKED)
    session.send(REPLY * asked)


def test_streamed_text_costs_at_most_4_kilobytes_a_second(
    open_session: Callable[..., Any],
) -> None:
    session = _open(open_session, 6, SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22")
    begun, sent = time.monotonic(), len(session.output)
    session.send("\x13")
    while not any("that is all" in row for row in session.screen.display):
        session.read(0.05)
        _reply_to_all(session)
        assert time.monotonic() < begun + 60
    elapsed = time.monotonic() - begun
    assert len(session.output) - sent <= 4_000 * elapsed + STREAM_BURST + LEAST_AHEAD
    assert "answered as if nobody" in "\n".join(session.screen.display)


def test_keys_pass_streamed_text_that_waits_for_the_terminal(
    open_session: Callable[..., Any],
) -> None:
    session = _open(open_session, 600)
    _reply_to_all(session)
    session.send("\x13")
    session.wait_quiet()  # no reply comes: nothing more is written after a moment
    waiting = session.output.count(ASKED) - session.replied
    assert 1 <= waiting <= (LEAST_AHEAD + 3 * STREAM_AHEAD) // ASK_EVERY
    before = len(session.output)
    session.send("x")
    session.wait(lambda: "▊  x" in "\n".join(session.screen.display))
    assert len(session.output) - before < 150
    _reply_to_all(session)
    session.wait(lambda: session.output.count(ASKED) > session.replied)


def test_pages_of_a_held_key_are_dropped_while_the_terminal_is_busy(
    open_session: Callable[..., Any],
) -> None:
    session = _open(open_session, 1)
    _reply_to_all(session)
    session.send("\x1b[?2026;2$y")
    session.wait_quiet()
    frames, size = session.output.count(b"\x1b[?2026h"), len(session.output)
    session.send("\x1b[5~" * 12)
    session.wait_quiet()
    held = session.output.count(b"\x1b[?2026h") - frames
    assert 1 <= held < 8 and len(session.output) - size < 12_000
    one_by_one = _open(open_session, 1)
    for _ in range(12):
        before = one_by_one.screen.display
        one_by_one.send("\x1b[5~")
        one_by_one.wait(lambda before=before: one_by_one.screen.display != before)
        one_by_one.wait_quiet()
        _reply_to_all(one_by_one)

    def shown() -> bool:
        _reply_to_all(session)
        return session.screen.display == one_by_one.screen.display

    session.wait(shown)


def test_keys_are_echoed_on_a_slow_line_while_text_comes() -> None:
    argv = (sys.executable, "-m", "tests.support.slow_line", "20000", "0.1")
    app = (sys.executable, "-m", "tests.tui_transcript.paced_app", "600")
    with Program([*argv, *app], columns=120, lines=40, answers=True) as program:
        program.wait_for("answer 99")
        program.settle(1.0)
        program.type("\x13")
        program.wait_for("The session cookie is read before the middleware has run, so the first")
        sent = program.sent
        for number in range(5):
            program.type("abcde"[number])
            # The echo comes after at most what was on the way, not at the end of a queue that grows.
            program.wait_for("▊  " + "abcde"[: number + 1])
            assert program.sent - sent < 6_000
            sent = program.sent
