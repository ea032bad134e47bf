"""The emulator's process: `python -I -m quarterdeck.tui.terminal.worker`.

Its standard input is one end of a socket pair; it ends when the other end does. One thread and one
`poll`: process what arrived, then send the frames that are due. It needs nothing else of the
machine, because hostile output may crash it or worse.
"""

import resource
import select
import socket
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
    EmulatorCommand,
    FrameEncoder,
    Parcel,
    Report,
    Splitter,
    pack,
)
from quarterdeck.tui.terminal.core import SelectionKind, State, Step
from quarterdeck.tui.terminal.ghostty import GhosttyCore, probe

FRAME_SECONDS = 1 / 60
FLOOD_BYTES = 64 << 10
FLOOD_SECONDS = 1 / 20
"""More bytes than this between two frames are more than anybody reads: then there are fewer frames."""
HELD_SECONDS = 0.15
"""Longest time that a program may pause rendering (synchronized output)."""


class EmulatedTerminal:
    """One terminal: its core is fed by commands and sends reports.

    A frame is due immediately after a pause, else a sixtieth of a second after the previous one, and only
    when that one has been painted: so frames are merged while the cockpit is behind.
    """

    def __init__(self, size: bytes, report: Callable[[Report, bytes], None]) -> None:
        self._core = GhosttyCore(*SIZE.unpack(size))
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
        """Carry out one command."""
        match kind:
            case EmulatorCommand.FEED | EmulatorCommand.REPLAY:
                self._feed(body, answer=kind == EmulatorCommand.FEED)
            case EmulatorCommand.PAINTED:
                self._painting = False
                return
            case EmulatorCommand.COPY:
                self._report(Report.COPIED, body[:4] + self._core.selected_text().encode())
                return
            case EmulatorCommand.LINK:
                number, x, y, here = LINK.unpack(body)
                uri = self._core.link_here() if here else self._core.link_at(x, y)
                self._report(Report.LINKED, NUMBER.pack(number) + uri.encode())
                return
            case EmulatorCommand.SYNC:
                # Reading the screen is part of the proof that these bytes can be shown.
                self._core.take_rows()
                self._core.invalidate()
                self._report(Report.SYNCED, body[:4])
            case EmulatorCommand.SHOW:
                self._core.invalidate()
                self._shown, self._painting, self._last = True, False, None
            case EmulatorCommand.HIDE:
                self._shown = False
            case _:
                self._change(kind, body)
        self._changed = True

    def _change(self, kind: int, body: bytes) -> None:
        match kind:
            case EmulatorCommand.RESIZE:
                self._core.resize(*SIZE.unpack(body))
            case EmulatorCommand.SCROLL:
                self._core.scroll(LINES.unpack(body)[0])
            case EmulatorCommand.BOTTOM:
                self._core.scroll_to_bottom()
            case EmulatorCommand.SELECT:
                self._select(*SELECT.unpack(body))
            case EmulatorCommand.READING if body[0]:
                self._core.start_reading()
            case EmulatorCommand.READING:
                self._core.stop_reading()
            case EmulatorCommand.READ:
                self._core.read(Step(body[0]))
            case EmulatorCommand.FIND:
                self._core.find(body.decode())
            case EmulatorCommand.COLORS:
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
        """Return when the next frame is due; None when there is nothing to show or nobody sees it."""
        if not (self._shown and self._changed) or self._painting:
            return None
        if not self._core.held():
            self._held_since = None
            return self._next
        if self._held_since is None:
            self._held_since = now
        return max(self._next, self._held_since + HELD_SECONDS)

    def send_frame(self) -> None:
        """Report the changes."""
        started = time.monotonic()
        # Only with frames: a program that offers without end is queried at the end.
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
        # At most half of the time is spent on frames, so that output is processed meanwhile.
        ended = time.monotonic()
        self._shown_at = ended
        self._next = ended + max(FRAME_SECONDS - (ended - started), ended - started)

    def close(self) -> None:
        """Free the core."""
        self._core.close()


READ_BYTES = 128 << 10
OUTPUT_LIMIT = 4 << 20
"""While more than this waits to be read by the cockpit, no input is read."""


class TerminalWorker:
    """All terminals of one cockpit."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._splitter = Splitter()
        self._output = bytearray()
        self._sessions: dict[int, EmulatedTerminal] = {}

    def run(self) -> None:
        """Serve until the cockpit disconnects."""
        self._link.setblocking(False)
        self._report(Report.READY, 0)
        poll = select.poll()
        while True:
            self._send_frames()
            events = 0 if len(self._output) > OUTPUT_LIMIT else select.POLLIN
            poll.register(self._link, events | (select.POLLOUT if self._output else 0))
            for _, event in poll.poll(self._poll_timeout()):
                if event & select.POLLOUT:
                    self._write()
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR) and not self._read():
                    return

    def _poll_timeout(self) -> float | None:
        now = time.monotonic()
        due = [d for s in self._sessions.values() if (d := s.due(now)) is not None]
        return max(0.0, (min(due) - now) * 1000) if due else None

    def _read(self) -> bool:
        try:
            data = self._link.recv(READ_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        consumed: dict[int, int] = {}
        for parcel in self._splitter.feed(data):
            self._take(parcel, consumed)
        for terminal, size in consumed.items():
            self._report(Report.CONSUMED, terminal, size.to_bytes(4, "little"))
        return True

    def _take(self, parcel: Parcel, consumed: dict[int, int]) -> None:
        kind, terminal, body = parcel
        if kind == EmulatorCommand.OPEN:
            self._close(terminal)
            self._sessions[terminal] = EmulatedTerminal(body, self._reporter(terminal))
        elif kind == EmulatorCommand.CLOSE:
            self._close(terminal)
        elif session := self._sessions.get(terminal):
            session.take(kind, body)
        if kind in (EmulatorCommand.FEED, EmulatorCommand.REPLAY):
            consumed[terminal] = consumed.get(terminal, 0) + len(body)

    def _reporter(self, terminal: int) -> Callable[[Report, bytes], None]:
        def report(kind: Report, body: bytes) -> None:
            self._report(kind, terminal, body)

        return report

    def _close(self, terminal: int) -> None:
        if session := self._sessions.pop(terminal, None):
            session.close()

    def _report(self, kind: Report, terminal: int, body: bytes = b"") -> None:
        self._output += pack(kind, terminal, body)

    def _send_frames(self) -> None:
        now = time.monotonic()
        for session in self._sessions.values():
            due = session.due(now)
            if due is not None and due <= now:
                session.send_frame()
        self._write()

    def _write(self) -> None:
        try:
            while self._output:
                sent = self._link.send(self._output)
                del self._output[:sent]
        except BlockingIOError:
            return


def main() -> None:
    """Serve the socket on standard input."""
    # A crash of the library must leave no core file with the content of the screen.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=0) as link:
        try:
            probe()
            TerminalWorker(link).run()
        except (BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main()
