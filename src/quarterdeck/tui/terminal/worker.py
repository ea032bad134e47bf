"""The emulator's process: `python -I -m quarterdeck.tui.terminal.worker`.

Its standard input is one end of a socket pair; it ends when the other end does. One thread and one
`poll`: take what arrived, then send the frames that are due. It asks for nothing else of the
machine, because hostile output may bring it down or worse.
"""

import resource
import select
import socket
import time
from collections.abc import Callable

from quarterdeck.tui.terminal.channel import Command, Parcel, Report, Splitter, pack
from quarterdeck.tui.terminal.ghostty import GhosttyCore, probe
from quarterdeck.tui.terminal.session import Session

READ_BYTES = 128 << 10
OUTPUT_LIMIT = 4 << 20
"""More than this waiting to be read by the cockpit: nothing is taken in until it has read."""


class Worker:
    """All terminals of one cockpit."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._splitter = Splitter()
        self._output = bytearray()
        self._sessions: dict[int, Session] = {}

    def run(self) -> None:
        """Serves until the cockpit goes away."""
        self._link.setblocking(False)
        self._say(Report.READY, 0)
        poll = select.poll()
        while True:
            self._send_frames()
            events = 0 if len(self._output) > OUTPUT_LIMIT else select.POLLIN
            poll.register(self._link, events | (select.POLLOUT if self._output else 0))
            for _, event in poll.poll(self._patience()):
                if event & select.POLLOUT:
                    self._write()
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR) and not self._read():
                    return

    def _patience(self) -> float | None:
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
            self._say(Report.CONSUMED, terminal, size.to_bytes(4, "little"))
        return True

    def _take(self, parcel: Parcel, consumed: dict[int, int]) -> None:
        kind, terminal, body = parcel
        if kind == Command.OPEN:
            self._close(terminal)
            self._sessions[terminal] = Session(GhosttyCore, body, self._reporter(terminal))
        elif kind == Command.CLOSE:
            self._close(terminal)
        elif session := self._sessions.get(terminal):
            session.take(kind, body)
        if kind in (Command.FEED, Command.REPLAY):
            consumed[terminal] = consumed.get(terminal, 0) + len(body)

    def _reporter(self, terminal: int) -> Callable[[Report, bytes], None]:
        def report(kind: Report, body: bytes) -> None:
            self._say(kind, terminal, body)

        return report

    def _close(self, terminal: int) -> None:
        if session := self._sessions.pop(terminal, None):
            session.close()

    def _say(self, kind: Report, terminal: int, body: bytes = b"") -> None:
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
    """Serves the socket on standard input."""
    # A crash of the library must leave no core file with what was on the screen.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=0) as link:
        try:
            probe()
            Worker(link).run()
        except (BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main()
