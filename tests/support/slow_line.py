"""A slow line between a terminal and a program, as over SSH.

    python -m tests.support.slow_line BYTES_PER_SECOND DELAY_SECONDS PROGRAM [ARGUMENT ...]

The program runs on a pseudo-terminal of its own. What it writes is taken at once and reaches the
terminal later, as with the buffers of a network: the program is never stopped by a full terminal.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Sequence

READ = 65_536
PIECE = 256
"""Bytes that arrive together."""


class Way:
    """One direction: bytes in, and out again when they are due."""

    def __init__(self, target: int, rate: float, delay: float) -> None:
        self._target = target
        self._rate = rate
        self._delay = delay
        self._free_at = 0.0
        self._queue: deque[tuple[float, bytes]] = deque()

    def put(self, data: bytes) -> None:
        """Takes bytes that begin to travel when those before them have left."""
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            self._free_at = max(self._free_at, time.monotonic()) + len(piece) / self._rate
            self._queue.append((self._free_at + self._delay, piece))

    def deliver(self) -> float | None:
        """Hands over what is due; the seconds until the next piece is."""
        while self._queue:
            left = self._queue[0][0] - time.monotonic()
            if left > 0:
                return left
            _write_all(self._target, self._queue.popleft()[1])
        return None


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def run(rate: float, delay: float, argv: Sequence[str]) -> int:
    """Runs the program until it ends; its exit status."""
    child, master = pty.fork()
    if child == 0:
        os.execvp(argv[0], argv)

    def resized(*_: object) -> None:
        fcntl.ioctl(master, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGWINCH)

    resized()
    signal.signal(signal.SIGWINCH, resized)
    kept = termios.tcgetattr(0)
    tty.setraw(0)
    out, back = Way(1, rate, delay), Way(master, rate, delay)
    try:
        _pass_on(master, out, back)
    finally:
        termios.tcsetattr(0, termios.TCSANOW, kept)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _pass_on(master: int, out: Way, back: Way) -> None:
    ways = {master: out, 0: back}
    open_ends = True
    while open_ends:
        waits = [seconds for way in ways.values() if (seconds := way.deliver()) is not None]
        ready, _, _ = select.select(list(ways), [], [], min(waits, default=None))
        for end in ready:
            data = _read(end)
            ways[end].put(data)
            open_ends = open_ends and bool(data)
    while (left := out.deliver()) is not None:
        time.sleep(left)


def _read(end: int) -> bytes:
    try:
        return os.read(end, READ)
    except OSError:  # the last writer closed its end
        return b""


if __name__ == "__main__":
    sys.exit(run(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
