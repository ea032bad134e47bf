"""Programs in a pseudo-terminal, their output read by pyte."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

from tests.support.visible import text_rows, visible_rows

_HERE = Path(__file__).parent


class Session:
    """A program in a pseudo-terminal. Every byte it wrote is counted and drawn."""

    def __init__(
        self, script: str, columns: int, rows: int, *arguments: str, **environment: str
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.process, self._fd = pty.fork()
        if self.process == 0:
            kept = {key: value for key, value in os.environ.items() if not key.startswith("QD_")}
            kept |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
            kept |= {"TEXTUAL_ANIMATIONS": "none", "COLUMNS": "", "LINES": ""} | environment
            kept = {key: value for key, value in kept.items() if value}
            os.execve(sys.executable, [sys.executable, str(_HERE / script), *arguments], kept)
        self._set_size(columns, rows)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def send(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def read(self, seconds: float) -> bytes:
        """What comes within the time; returns at the first output."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:
            return b""
        self.output += data
        self._stream.feed(data)
        return data

    def wait(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("not seen:\n" + "\n".join(text_rows(self.screen)))
            self.read(0.05)

    def wait_text(self, text: str) -> None:
        self.wait(lambda: any(text in row for row in text_rows(self.screen)))

    def wait_quiet(self, seconds: float = 0.3) -> None:
        while self.read(seconds):
            pass

    def cells(self) -> list[list[tuple[object, ...]]]:
        """Text and visible look of every cell, and the cursor."""
        screen = self.screen
        return [*visible_rows(screen), [(screen.cursor.x, screen.cursor.y)]]

    def suspend(self) -> None:
        os.kill(self.process, signal.SIGTSTP)

    def resume(self) -> None:
        os.kill(self.process, signal.SIGCONT)

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._fd)


@pytest.fixture
def open_session() -> Iterator[Callable[..., Session]]:
    sessions: list[Session] = []

    def start(
        script: str,
        *arguments: str,
        columns: int = 120,
        rows: int = 40,
        **environment: str,
    ) -> Session:
        session = Session(script, columns, rows, *arguments, **environment)
        sessions.append(session)
        return session

    yield start
    for session in sessions:
        session.close()
