"""A program in a real pseudo-terminal, and the screen that a person would see."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

from tests.support.visible import known_to_pyte, text_rows

READ = 65_536
_REPLIES = {b"\x1b[5n": b"\x1b[0n", b"\x1b[?2026$p": b"\x1b[?2026;2$y"}
"""What a terminal replies: it works, and it can show frames whole."""
_QUERY = re.compile(b"|".join(map(re.escape, _REPLIES)))


class ScreenTimeoutError(AssertionError):
    """What was waited for did not show; the text holds the screen as it was."""


class Program:
    """Runs `argv` on a terminal of `columns` x `lines`.

    Every step waits for something visible: there are no sleeps. `sent` counts the bytes that the
    program wrote, and `raw` keeps them. With `answers` it replies to queries as terminals do.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        answers: bool = False,
    ) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.raw = bytearray()
        self._answers = answers
        self._answered = 0
        self._shown = (-1, 0, 0)
        self._text = ""
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = os.openpty()
        self._set_size(columns, lines)
        variables = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):  # they would be believed, not the terminal
            variables.pop(name, None)
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**variables, "LANG": "C.UTF-8", **(environment or {})},
            cwd=directory,
            preexec_fn=_take_terminal,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def sent(self) -> int:
        """Bytes written by the program so far."""
        return len(self.raw)

    @property
    def text(self) -> str:
        """The screen as lines without trailing blanks."""
        shown = len(self.raw), self.screen.columns, self.screen.lines
        if shown != self._shown:  # whoever waits asks again and again
            self._shown = shown
            self._text = "\n".join(line.rstrip() for line in text_rows(self.screen))
        return self._text

    def type(self, keys: str) -> None:
        """Sends keys as a terminal would."""
        os.write(self._master, keys.encode())

    def pump(self, seconds: float) -> bool:
        """Takes what comes within `seconds`; False when nothing came."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._master, READ)
        except OSError:  # the last writer closed its end
            return False
        self.raw += data
        if self._answers:
            self._answer()
        self._stream.feed(known_to_pyte(data))
        return bool(data)

    def _answer(self) -> None:
        """Reply to the queries since the last reply."""
        for query in _QUERY.finditer(self.raw, self._answered):
            self._answered = query.end()
            os.write(self._master, _REPLIES[query[0]])

    def wait(self, condition: Callable[[], bool], timeout: float = 60.0) -> float:
        """Reads until the condition holds; the seconds that it took.

        Raises:
            ScreenTimeoutError: it never held.
        """
        begun = time.monotonic()
        while not condition():
            left = begun + timeout - time.monotonic()
            if left <= 0:
                raise ScreenTimeoutError(f"not seen within {timeout} s on:\n{self.text}")
            if not self.pump(min(left, 0.05)) and self.process.poll() is not None:
                if condition():
                    break
                raise ScreenTimeoutError(
                    f"the program ended ({self.process.returncode}) on:\n{self.text}"
                )
        return time.monotonic() - begun

    def wait_for(self, text: str, timeout: float = 60.0) -> float:
        """Waits until `text` is on the screen."""
        return self.wait(lambda: text in self.text, timeout)

    def wait_gone(self, text: str, timeout: float = 60.0) -> float:
        """Waits until `text` is no longer on the screen."""
        return self.wait(lambda: text not in self.text, timeout)

    def settle(self, quiet: float = 0.3, timeout: float = 10.0) -> None:
        """Reads until nothing came for `quiet` seconds."""
        end = time.monotonic() + timeout
        while self.pump(quiet):
            if time.monotonic() > end:
                raise ScreenTimeoutError(f"never quiet for {quiet} s on:\n{self.text}")

    def resize(self, columns: int, lines: int) -> None:
        """Gives the terminal another size and tells the program."""
        self.screen.resize(lines, columns)
        self._shown = (-1, 0, 0)
        self._set_size(columns, lines)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def finish(self, timeout: float = 60.0) -> int:
        """Waits for the end of the program; its exit status."""
        end = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < end:
            self.pump(0.05)
        while self.pump(0.0):
            pass
        return self.process.wait(timeout=max(0.1, end - time.monotonic()))

    def close(self) -> None:
        """Ends the program, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def _set_size(self, columns: int, lines: int) -> None:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
