"""Lines in and out: of a terminal, where nothing is printed into a line that is being typed, or of pipes.

    standard input -> thread -> LineEditor -> lines
    say() -> standard output, or held until the line that is being typed is complete

Nothing that is written contains a control sequence.
"""

import asyncio
import codecs
import os
import signal
import sys
import termios
import textwrap
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from quarterdeck.plain.line_editor import LineEditor
from quarterdeck.transcript.text import clean

PROMPT = "> "
MORE = "..."
"""The question for a further line of a text."""
READ = 1 << 16
MOST_LINES = 100
"""Lines of input that are read ahead: more wait in the pipe."""
NARROWEST = 20
"""Columns; a terminal that reports fewer does not know its width."""

Stop = Callable[[BaseException], None]


class Console:
    """Standard input and output."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self.prompting = True
        """Whether a prompt shows that it is the person's turn."""
        self._source = sys.stdin.fileno()
        self._out = sys.stdout
        self._wraps = self._out.isatty()
        self._editor = LineEditor()
        self._echoes = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._taken = asyncio.Event()
        self._held: deque[str] = deque()
        self._prompt: str | None = None
        """The text before the line that is waited for; None while none is."""
        self._shown = ""
        """The prompt that the output ends with."""
        self._stop: Stop = lambda _: None

    @contextmanager
    def opened(self, interrupt: Callable[[], None], stop: Stop) -> Generator[None]:
        """Read from standard input, and restore the terminal at the end.

        Args:
            interrupt: called by Ctrl+C on an empty line.
            stop: called with what ends the program: a signal, or the end of who reads the output.
        """
        loop = asyncio.get_running_loop()
        self._stop = stop
        before = termios.tcgetattr(self._source) if self.interactive else None
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGINT: lambda: self._interrupted(interrupt),
            signal.SIGTERM: lambda: stop(KeyboardInterrupt()),
            signal.SIGHUP: lambda: stop(KeyboardInterrupt()),
        }
        if before is not None:
            self._echoes = bool(before[3] & termios.ECHO)
            self._editor.hidden = not self._echoes
            self._take_keys()
            handlers[signal.SIGCONT] = self._continued
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        # One that is ignored was meant to be, as by nohup.
        ours = [each for each in handlers if signal.getsignal(each) is not signal.SIG_IGN]
        for number in ours:
            loop.add_signal_handler(number, handlers[number])
        try:
            yield
        finally:
            for number in ours:
                loop.remove_signal_handler(number)
            if before is not None:
                termios.tcsetattr(self._source, termios.TCSADRAIN, before)

    def _take_keys(self) -> None:
        """Get each key at once, and echo it here. Signals of keys stay the terminal's."""
        modes = termios.tcgetattr(self._source)
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._source, termios.TCSADRAIN, modes)

    def _continued(self) -> None:
        # The shell that it was suspended to has set its own modes.
        self._take_keys()
        self._shown = ""
        self._offer()

    def _interrupted(self, interrupt: Callable[[], None]) -> None:
        if self._editor.text:
            self._editor.text = ""
            self._shown = ""
            self._write("\n")
            self._release()
        else:
            interrupt()

    # input

    async def line(self, question: str = "", *, secret: bool = False) -> str | None:
        """Return the next line, without control characters; None at the end of the input.

        Args:
            question: what is asked for; the prompt by default.
            secret: nothing of it is shown.
        """
        *lines, last = self._wrapped(" ".join(clean(question).split("\n")))
        if self.interactive:
            self._held.extend(lines)
        elif question != MORE:
            self._held.extend(filter(None, [*lines, last]))
        self._prompt = f"{last} " if question else PROMPT
        self._editor.hidden = secret or not self._echoes
        self._release()
        try:
            line = await self._lines.get()
        finally:
            self._prompt = None
            self._editor.hidden = not self._echoes
        self._taken.set()
        if line is None:
            self._lines.put_nowait(None)  # the end stays the end
            return None
        return clean(line)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read until the end, in a thread: a file or a terminal cannot be waited for in one way."""
        data = b"\n"
        while data:
            try:
                data = os.read(self._source, READ)
            except OSError:
                data = b""
            taking = self._take(self._decoder.decode(data, final=not data), is_last=not data)
            try:
                asyncio.run_coroutine_threadsafe(taking, loop).result()
            except (RuntimeError, CancelledError):  # the program ends
                taking.close()
                return

    async def _take(self, text: str, *, is_last: bool) -> None:
        if self.interactive:
            self._take_typed(text)
        else:
            *lines, self._partial = (self._partial + text).split("\n")
            if is_last and self._partial:
                lines.append(self._partial)
            for line in lines:
                self._lines.put_nowait(line)
        if is_last or self._editor.ended:
            self._lines.put_nowait(None)
        while self._lines.qsize() > MOST_LINES:
            self._taken.clear()
            await self._taken.wait()

    def _take_typed(self, text: str) -> None:
        """Echo what was typed, each line after the prompt, and take the lines that are complete."""
        for part in text.splitlines(keepends=True):
            starts = not (self._editor.text or self._shown)
            echo, lines = self._editor.feed(part)
            if starts and echo and not lines:
                self._shown = self._prompt or PROMPT
                echo = self._shown + echo
            self._write(echo)
            for line in lines:
                self._shown = ""
                self._lines.put_nowait(line)
        self._release()

    # output

    def say(self, *texts: str) -> None:
        """Print texts, each on lines of its own, when no line is being typed."""
        for text in texts:
            for line in clean(text).split("\n"):
                self._held.extend(self._wrapped(line))
        self._release()

    def _wrapped(self, line: str) -> list[str]:
        """Return a line in parts that fit the terminal, broken between words.

        All but the first are indented: what an agent wrote in it must not look like a new line.
        """
        if not self._wraps:
            return [line]
        try:
            columns = os.get_terminal_size(self._out.fileno()).columns
        except OSError:
            columns = 0
        # One column less: some terminals begin a line by themselves after the last one.
        width = columns - 1 if columns >= NARROWEST else 79
        return textwrap.wrap(
            line,
            width,
            subsequent_indent=f"{line[: len(line) - len(line.lstrip(' '))]}  "[: width // 2],
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]

    def _release(self) -> None:
        if self._editor.text:
            return
        if self._held:
            # A prompt is overwritten, a longer question stays.
            end = "\n" if self._shown and self._shown != PROMPT else ""
            start = "\r  \r" if self._shown == PROMPT else end
            self._shown = ""
            self._write(start + "".join(f"{line}\n" for line in self._held))
            self._held.clear()
        asyncio.get_running_loop().call_soon(self._offer)

    def _offer(self) -> None:
        """Show the prompt, if a line is waited for."""
        wanted = self._prompt is not None and (self.prompting or self._prompt != PROMPT)
        if self.interactive and wanted and not (self._shown or self._editor.text):
            self._shown = self._prompt or ""
            self._write(self._shown)

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError as error:
            self._stop(error if isinstance(error, BrokenPipeError) else KeyboardInterrupt())
