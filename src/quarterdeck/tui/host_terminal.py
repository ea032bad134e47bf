"""The terminal around the cockpit: what it is, its colors and signals.

Variables of the environment do not come over SSH, and are inherited by terminals that they do not describe, so the
terminal is asked:

    query at start -> terminal -> TerminalAnswered (driver) -> TerminalIdentity -> what needs it

There are sixteen colors for terminal programs, where the theme is ours and not the terminal's own. Textual's have
several alike (red is magenta, bright is normal) and a white that is invisible on light.

The program ends when its terminal closes, or when a signal requests it. Textual's own reader would spin on the end of
its input, and a killed program would leave the terminal in the alternate screen.
"""

import asyncio
import contextlib
import fcntl
import re
import select
import signal
import struct
import sys
import termios
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress

from rich.terminal_theme import TerminalTheme
from textual.geometry import Size
from textual.message import Message

from quarterdeck.local.processes import end_process

SECONDS = 2.0
"""Time limit of a question to tmux."""
ESCAPE = "\x1b"
LEAST_ASPECT, MOST_ASPECT = 1.0, 4.0
"""Ratios of a cell's height to its width; reported values beyond these are wrong."""


def cell_pixels() -> tuple[int, int] | None:
    """Return the width and height of a cell as the terminal's device reports them; many do not."""
    try:
        size = fcntl.ioctl(sys.__stderr__.fileno(), termios.TIOCGWINSZ, bytes(8))  # pyright: ignore[reportOptionalMemberAccess]
    except (OSError, ValueError, AttributeError):
        return None  # no terminal
    rows, columns, width, height = struct.unpack("HHHH", size)
    if not (rows and columns and width and height):
        return None
    aspect = (height / rows) / (width / columns)
    return (width // columns, height // rows) if LEAST_ASPECT <= aspect <= MOST_ASPECT else None


def in_tmux(environment: Mapping[str, str]) -> bool:
    """Return whether the cockpit runs in tmux."""
    return bool(environment.get("TMUX"))


def is_remote(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal is on another machine."""
    return bool(environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"))


def through_tmux(sequence: str) -> str:
    """Return a sequence for the terminal around tmux, in tmux's passthrough format."""
    doubled = sequence.replace(ESCAPE, ESCAPE * 2)
    return f"{ESCAPE}Ptmux;{doubled}{ESCAPE}\\"


async def tmux_passes() -> bool:
    """Return whether tmux passes sequences through from here."""
    for options in ("-Apqv", "-gqv"):
        found = await ask(["tmux", "show", options, "allow-passthrough"])
        if found:
            return found in ("on", "all")
    return False


_CLIENT = "#{?client_termtype,#{client_termtype},#{client_termname}}"


async def tmux_client() -> str:
    """Return what tmux knows of its terminal: the name that this reported, else its TERM."""
    return await ask(["tmux", "display-message", "-p", _CLIENT]) or ""


async def ask(command: list[str]) -> str | None:
    """Return the output of a program, None when it cannot be run or fails."""
    return await _run(command, b"", asyncio.subprocess.PIPE)


async def give(command: list[str], typed: bytes) -> bool:
    """Pass input to a program; return whether it succeeded. It may continue in the background, as xclip does."""
    return await _run(command, typed, asyncio.subprocess.DEVNULL) is not None


async def _run(command: list[str], typed: bytes, output: int) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(SECONDS):
            printed, _ = await process.communicate(typed)
    except TimeoutError:
        return None
    finally:
        await end_process(process)
    return (printed or b"").decode(errors="replace").strip() if process.returncode == 0 else None


Triplet = tuple[int, int, int]


def _triplets(words: str) -> list[Triplet]:
    """Return the eight colors in ANSI order."""
    return [(int(word[:2], 16), int(word[2:4], 16), int(word[4:], 16)) for word in words.split()]


DARK = TerminalTheme(
    (12, 12, 12),
    (217, 217, 217),
    _triplets("1a1a1a e5484d 3fb950 d9a21b 4c8df6 c061cb 2ab7ca c8c8c0"),
    _triplets("7f7f78 ff7b72 7ee787 f2cc60 82b1ff e39bf0 6fe3ee f6f6ef"),
)
LIGHT = TerminalTheme(
    (247, 247, 247),
    (0, 0, 0),
    _triplets("1a1a1a b3261e 1b7a2b 8a5a00 1f56b5 8a2ba8 00708a 6a6a66"),
    _triplets("565652 d0342c 2f8f20 a06800 2f74d9 b04ac6 1285a3 8c8c86"),
)


SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ending_on_hangup(end: Callable[[], object]) -> Generator[None]:
    """Call `end` in the running loop on SIGTERM, SIGHUP, and when the terminal hangs up."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, end)
    try:
        with _watching(loop, end):
            yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _watching(loop: asyncio.AbstractEventLoop, end: Callable[[], object]) -> Generator[None]:
    if not hasattr(select, "epoll"):
        yield
        return
    with select.epoll() as watch:
        # No event is requested: a hang-up is always reported, and typed keys do not wake this poll.
        watch.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)

        def hung_up() -> None:
            loop.remove_reader(watch.fileno())
            end()

        loop.add_reader(watch.fileno(), hung_up)
        try:
            yield
        finally:
            loop.remove_reader(watch.fileno())


QUERY = "\x1b[>0q\x1b[16t\x1b[c"
"""Asks for name and version (XTVERSION), the size of a cell, then attributes, which every terminal reports."""
ANSWERS = re.compile(
    "\x1bP>\\|(?P<name>[^\x1b\x07]*)(?:\x1b\\\\|\x07)"
    "|\x1b\\[6;(?P<cell>\\d{1,4};\\d{1,4})t"
    "|\x1b\\[\\?(?P<attributes>[\\d;]*)c"
)
"""The reports that `QUERY` asks for."""
BEGUN = re.compile("\x1b(?:P>[^\x1b\x07]{0,200}\x1b?|\\[6;[\\d;]{0,9}|\\[\\?[\\d;]{0,50})$")
"""A report whose end has not been read yet."""
ANSWER_SECONDS = 1.0
"""Time for which a notification or a picture waits for the answer; nothing else does."""
SIXEL = "4"
"""The attribute of terminals that show sixel images."""


class TerminalAnswered(Message):
    """The terminal reported its name, the pixels of a cell, or its attributes, which end the answer."""

    def __init__(
        self, name: str | None = None, cell: str | None = None, attributes: str | None = None
    ) -> None:
        super().__init__()
        self.name = name
        self.cell = cell
        self.attributes = attributes


class TerminalIdentity:
    """What the terminal has reported."""

    def __init__(self) -> None:
        self._name = ""
        self._attributes: frozenset[str] = frozenset()
        self._answered: asyncio.Event | None = None
        self.cell: Size | None = None
        """Width and height of a cell in pixels at the start."""

    def expect(self) -> str:
        """Return the query to send; its answer is waited for."""
        self._answered = asyncio.Event()
        return QUERY

    def take(self, answer: TerminalAnswered) -> None:
        """Note an answer."""
        if answer.cell is not None:
            height, width = map(int, answer.cell.split(";"))
            self.cell = Size(width, height) if width and height else None
            return
        if answer.name is not None:
            self._name = answer.name
        if answer.attributes is not None:
            # The first is the class of the terminal, which may be any number.
            self._attributes = frozenset(answer.attributes.split(";")[1:])
        if self._answered is not None:
            self._answered.set()

    async def name(self) -> str:
        """Return the name and version, such as `kitty(0.35.2)`; empty when the terminal does not say."""
        if self._answered is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._answered.wait()
            # Asked once: a terminal that does not answer delays one notification or picture.
            self._answered.set()
        return self._name

    @property
    def has_sixel(self) -> bool:
        """Whether the terminal has reported that it shows sixel images."""
        return SIXEL in self._attributes
