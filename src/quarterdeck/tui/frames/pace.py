"""How much is written ahead of what the terminal has shown.

    frame --> pseudo-terminal --> (ssh, buffers of the network) --> terminal
                  taken                                              answered

With a network behind it, a pseudo-terminal accepts everything at once. The output then waits in the
buffers of the network, and the echo of every later key waits behind it. So the terminal is asked from time
to time for its status (`CSI 5 n`). It replies once it has shown what was written before: how much longer
that takes than the shortest reply seen tells how fast the line is.

    LinePace    frames wait while more is on the way than the line carries in a moment
    StreamPace  streamed text has a budget of bytes per second
    Pacing      both, for one app

Frames that wait are not queued: the next one shows the current state. No timer runs while nothing waits.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import NamedTuple, cast

from textual.widget import Widget

from quarterdeck.tui.host_terminal import in_tmux, is_remote
from quarterdeck.tui.textual_ext.driver import QUESTION, OutletDriver

ASK_EVERY = 1_000
"""Bytes between two questions."""
LEAST_AHEAD = 2_000
"""Bytes that may always be on the way."""
QUEUE_SECONDS = 0.1
"""Longest time that a frame should wait behind what was written before it."""
SMALLEST_DELAY = 0.005
"""Delays below are noise of the scheduler."""
REPLY_SECONDS = 5.0
"""A reply that takes longer does not come."""

STREAM_RATE = 3_600
"""Bytes a second of streamed text, beside which other frames and the questions need some."""
NEAR_RATE = 40_000
"""The same on a terminal of this machine."""
NEAR_SECONDS = 0.02
"""Only a terminal of this machine replies sooner."""
STREAM_BURST = 1_000
"""Bytes that may come at once after a pause."""
STREAM_INTERVAL = 0.06
"""Seconds between two frames of streamed text: each has a fixed cost beside its text."""
STREAM_AHEAD = 1_000
"""Bytes on the way, behind which no streamed text is written: a key's frame would wait for it."""


class _Question(NamedTuple):
    """`size`: of the frame before it, which left in one piece; 0 for several small ones."""

    at: float
    sent: int
    ahead: int
    size: int


class LinePace:
    """Counts what is on the way to the terminal. Bytes of other output are not counted."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._asked: deque[_Question] = deque()
        self._sent = 0
        self._asked_at_bytes = 0
        self._shown = 0
        self._answers: bool | None = None
        self.shortest: float | None = None
        """Shortest time from a question to its reply; None until the first reply."""
        self.rate = 0.0
        """Bytes a second that the line carries, as far as known; 0 until the first reply."""

    def restart(self) -> None:
        """Forget what is on the way: the terminal was somebody else's meanwhile, or does not reply."""
        self._asked.clear()
        self._shown = self._sent

    def frame(self, size: int) -> str:
        """Note a frame that is about to be written; return what to write after it."""
        self._sent += size
        self._lose()
        if self._answers is False or self._sent - self._asked_at_bytes < ASK_EVERY:
            return ""
        return self.ask(size if size >= ASK_EVERY else 0)

    def ask(self, size: int = 0) -> str:
        """Return a question."""
        self._asked_at_bytes = self._sent
        ahead = self._sent - self._shown
        self._asked.append(_Question(self._clock(), self._sent, ahead, size))
        return QUESTION

    def reply(self, at: float) -> None:
        """Note a reply to the oldest question, and when it came."""
        self._answers = True
        if not self._asked or at < self._asked[0].at:
            return  # it was for a question that is forgotten
        question = self._asked.popleft()
        self._shown = question.sent
        took = at - question.at
        self.shortest = took if self.shortest is None else min(self.shortest, took)
        delay = max(took - self.shortest, SMALLEST_DELAY)
        # Small frames travel beside each other; their delay says something only when it is long.
        size = question.size or (question.ahead if delay > QUEUE_SECONDS else 0)
        if size:
            sample = size / delay
            self.rate = (self.rate + sample) / 2 if self.rate else sample

    @property
    def ahead(self) -> int:
        """Bytes on the way, as far as the terminal replies."""
        self._lose()
        return self._sent - self._shown if self._asked and self._answers else 0

    def _lose(self) -> None:
        """Forget questions whose reply does not come."""
        if self._asked and self._clock() - self._asked[0].at > REPLY_SECONDS:
            if self._answers is None:
                self._answers = False
            self.restart()

    @property
    def may_draw(self) -> bool:
        """Whether a frame would not wait long behind what is on the way."""
        ahead = self.ahead
        if not self.rate:
            return True
        return ahead < max(LEAST_AHEAD, self.rate * ((self.shortest or 0.0) + QUEUE_SECONDS))


class StreamPace:
    """The budget of streamed text: bytes leave it as they are written, and return with time."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.rate = STREAM_RATE
        self._debt = 0.0
        self._last = 0.0

    def spend(self, size: int) -> None:
        """Note a frame of streamed text."""
        now = self._clock()
        self._debt = max(0.0, self._debt - (now - self._last) * self.rate) + size
        self._last = now

    @property
    def wait(self) -> float:
        """Seconds until the next frame of streamed text may be drawn."""
        left = self._last - self._clock()
        return max(left + STREAM_INTERVAL, left + (self._debt - STREAM_BURST) / self.rate, 0.0)


class Pacing:
    """Decides when the frames of an app are drawn. Without a driver, at once."""

    def __init__(self) -> None:
        self.line = LinePace()
        self._stream = StreamPace()
        self._driver: OutletDriver | None = None
        self._frame_waits: Callable[[], object] | None = None
        self._streamed: dict[Callable[[], object], None] = {}
        self._is_streamed = False
        self._again: asyncio.TimerHandle | None = None
        self._room: asyncio.Event | None = None

    def begin(self, driver: OutletDriver) -> None:
        """Pace what is written by a driver that has just taken the terminal."""
        self._driver = driver
        # Both come from the driver's threads, whose context has no app: drawing needs that of this call.
        context = copy_context()
        driver.on_reply = partial(context.run, self._replied)
        driver.outlet.on_taken = partial(context.run, self._go_on)
        self.line.restart()
        driver.write(self.line.ask())

    @property
    def may_draw(self) -> bool:
        """Whether a frame that is drawn now would be shown soon."""
        driver = self._driver
        return driver is None or (not driver.outlet.is_behind() and self.line.may_draw)

    def draw_later(self, draw: Callable[[], object]) -> None:
        """Call a function once, when a frame may be drawn."""
        self._frame_waits = draw
        self._try_later(REPLY_SECONDS)

    async def room(self) -> None:
        """Wait until a piece of an image can be written without delaying the frames of keys.

        Waits no longer than for a lost reply.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(REPLY_SECONDS):
                while not self.may_draw:
                    room = self._room = self._room or asyncio.Event()
                    self._try_later(REPLY_SECONDS)
                    await room.wait()

    def stream(self, draw: Callable[[], object]) -> None:
        """Call a function that shows streamed text, at once or when there is room for it."""
        if self._driver is None:
            draw()
            return
        self._streamed[draw] = None
        self._show_streamed()

    def frame(self, text: str) -> str:
        """Return what to write for a frame."""
        if self._driver is None:
            return text
        size = len(text.encode())
        if self._is_streamed:
            self._is_streamed = False
            self._stream.spend(size)
        return text + self.line.frame(size)

    def end_frame(self) -> None:
        """Note that all changes are drawn: the next frame is not streamed text, if this one was empty."""
        self._is_streamed = False

    def _replied(self, at: float) -> None:
        self.line.reply(at)
        near = self.line.shortest is not None and self.line.shortest < NEAR_SECONDS
        # What replies inside tmux is tmux, wherever its terminal is.
        if near and not is_remote(os.environ) and not in_tmux(os.environ):
            self._stream.rate = NEAR_RATE
        self._go_on()

    def _go_on(self) -> None:
        if self._frame_waits is not None and self.may_draw:
            draw, self._frame_waits = self._frame_waits, None
            draw()
        if self._room is not None and self.may_draw:
            self._room.set()
            self._room = None
        self._show_streamed()

    def _show_streamed(self) -> None:
        if not self._streamed:
            return
        if not self.may_draw or self.line.ahead > STREAM_AHEAD:
            self._try_later(REPLY_SECONDS)
        elif wait := self._stream.wait:
            self._try_later(wait)
        else:
            waiting, self._streamed = self._streamed, {}
            self._is_streamed = True
            for draw in waiting:
                draw()

    def _try_later(self, seconds: float) -> None:
        """Try again after a while; `seconds` is only a bound where a reply is waited for."""
        loop = asyncio.get_running_loop()
        if self._again is not None:
            if self._again.when() <= loop.time() + seconds:
                return
            self._again.cancel()
        self._again = loop.call_later(seconds, self._tried)

    def _tried(self) -> None:
        self._again = None
        self._go_on()
        waits = self._frame_waits is not None or self._room is not None
        if waits and self._again is None:
            self._try_later(REPLY_SECONDS)


def pacing_of(widget: Widget) -> Pacing | None:
    """Return the pacing of a widget's app, if it has one."""
    found = getattr(cast("object", widget.app), "pacing", None)
    return found if isinstance(found, Pacing) else None
