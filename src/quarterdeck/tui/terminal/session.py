"""One terminal inside the emulator's process: its core, and when its next frame is due."""

import time
from collections.abc import Callable
from dataclasses import replace

from quarterdeck.tui.terminal.channel import (
    CLEAR,
    COLORS,
    EXTEND,
    LINES,
    LINK,
    NUMBER,
    SELECT,
    SIZE,
    Command,
    Report,
)
from quarterdeck.tui.terminal.core import Core, SelectionKind, State, Step
from quarterdeck.tui.terminal.frames import FrameEncoder

FRAME_SECONDS = 1 / 60
FLOOD_BYTES = 64 << 10
FLOOD_SECONDS = 1 / 20
"""More than so many bytes between two frames is more than anybody reads: frames are fewer then."""
HELD_SECONDS = 0.15
"""Longest time a program may keep its screen from being painted (synchronized output)."""


class Session:
    """A core that is fed by commands and tells by reports.

    A frame is due at once after quiet, else a sixtieth of a second after the one before, and only
    when that one has been painted: so frames merge as far as the cockpit is behind.
    """

    def __init__(
        self,
        make: Callable[[int, int], Core],
        size: bytes,
        report: Callable[[Report, bytes], None],
    ) -> None:
        self._core = make(*SIZE.unpack(size))
        self._report = report
        self._encoder = FrameEncoder()
        self._shown = False
        self._changed = True
        self._painting = False
        self._next = 0.0
        self._fed = 0
        """Bytes since the last frame."""
        self._shown_at = 0.0
        self._old_bells = 0
        self._held_since: float | None = None
        self._last: State | None = None

    def take(self, kind: int, body: bytes) -> None:
        """Does one command."""
        match kind:
            case Command.FEED | Command.REPLAY:
                self._feed(body, answer=kind == Command.FEED)
            case Command.PAINTED:
                self._painting = False
                return
            case Command.COPY:
                self._report(Report.COPIED, body[:4] + self._core.selected_text().encode())
                return
            case Command.LINK:
                number, x, y, here = LINK.unpack(body)
                uri = self._core.link_here() if here else self._core.link_at(x, y)
                self._report(Report.LINKED, NUMBER.pack(number) + uri.encode())
                return
            case Command.SYNC:
                # Reading the screen is part of the proof that these bytes can be shown.
                self._core.take_rows()
                self._core.invalidate()
                self._report(Report.SYNCED, body[:4])
            case Command.SHOW:
                self._core.invalidate()
                self._shown, self._painting, self._last = True, False, None
            case Command.HIDE:
                self._shown = False
            case _:
                self._change(kind, body)
        self._changed = True

    def _change(self, kind: int, body: bytes) -> None:
        match kind:
            case Command.RESIZE:
                self._core.resize(*SIZE.unpack(body))
            case Command.SCROLL:
                self._core.scroll(LINES.unpack(body)[0])
            case Command.BOTTOM:
                self._core.scroll_to_bottom()
            case Command.SELECT:
                self._select(*SELECT.unpack(body))
            case Command.READING if body[0]:
                self._core.start_reading()
            case Command.READING:
                self._core.stop_reading()
            case Command.READ:
                self._core.read(Step(body[0]))
            case Command.FIND:
                self._core.find(body.decode())
            case Command.COLORS:
                colors = COLORS.unpack(body)
                self._core.set_colors(colors[:3], colors[3:])
            case _:
                pass

    def _feed(self, data: bytes, *, answer: bool) -> None:
        self._core.feed(data)
        self._fed += len(data)
        if self._fed > FLOOD_BYTES:
            self._next = max(self._next, self._shown_at + FLOOD_SECONDS)
        replies = self._core.take_replies()
        if not answer:
            # Answered, rung and offered long ago.
            self._old_bells = self._core.state().bells
            self._core.take_clipboard()
        elif replies:
            self._report(Report.REPLY, replies)

    def _select(self, kind: int, x: int, y: int) -> None:
        match kind:
            case k if k == EXTEND:
                self._core.select_to(x, y)
            case k if k == CLEAR:
                self._core.clear_selection()
            case _:
                self._core.select_from(x, y, SelectionKind(kind))

    def due(self, now: float) -> float | None:
        """When the next frame is due; null when there is nothing to show or nobody to see it."""
        if not (self._shown and self._changed) or self._painting:
            return None
        if not self._core.held():
            self._held_since = None
            return self._next
        if self._held_since is None:
            self._held_since = now
        return max(self._next, self._held_since + HELD_SECONDS)

    def send_frame(self) -> None:
        """Tells what changed."""
        begun = time.monotonic()
        # With frames alone: a program that offers without end is asked about at its end.
        if (offered := self._core.take_clipboard()) is not None:
            self._report(Report.CLIPBOARD, offered.encode())
        rows = self._core.take_rows()
        state = self._core.state()
        state = replace(state, bells=state.bells - self._old_bells)
        self._changed = False
        self._fed = 0
        if not rows and state == self._last:
            return
        self._last = state
        self._painting = True
        self._report(Report.FRAME, self._encoder.encode(state, rows))
        # At most half of the time goes into frames, so that output is taken in meanwhile.
        ended = time.monotonic()
        self._shown_at = ended
        self._next = ended + max(FRAME_SECONDS - (ended - begun), ended - begun)

    def close(self) -> None:
        """Frees the core."""
        self._core.close()
