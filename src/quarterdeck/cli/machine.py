"""Checks of this machine for `qd doctor`: programs, isolation, terminal."""

import asyncio
import locale
import os
import platform
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from quarterdeck.cli.target import config_path
from quarterdeck.local.home import Home


class Level(StrEnum):
    """WARN: it works, with limits. FAIL: something requested cannot work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """A result of a check, and the next step."""

    name: str
    level: Level
    message: str
    next_step: str | None = None


def ok(name: str, message: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(name, Level.OK, message)


def warn(name: str, message: str, next_step: str | None = None) -> Finding:
    """Return a finding of a limit."""
    return Finding(name, Level.WARN, message, next_step)


def fail(name: str, message: str, next_step: str | None = None) -> Finding:
    """Return a finding of a failure."""
    return Finding(name, Level.FAIL, message, next_step)


async def check_machine(home: Home) -> AsyncGenerator[Finding]:
    """Check Python, git, bubblewrap and isolation."""
    yield ok("python", f"{platform.python_version()} at {sys.executable}")
    yield await _git()
    yield await _bubblewrap()
    async for finding in _isolation(home):
        yield finding


async def _git() -> Finding:
    git = shutil.which("git")
    if git is None:
        return fail("git", "not installed", "Install git: repositories are cloned with it.")
    return ok("git", f"{await first_line(git, '--version')} at {git}")


async def _bubblewrap() -> Finding:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return warn(
            "bwrap",
            "not installed: sandboxes are plain processes",
            "Install bubblewrap to keep agents apart from your files.",
        )
    return ok("bwrap", f"{await first_line(bwrap, '--version')} at {bwrap}")


async def _isolation(home: Home) -> AsyncGenerator[Finding]:
    from quarterdeck.sandboxes.port import SandboxError
    from quarterdeck.sandboxes.process import ProcessDriver

    try:
        with _existing_home(home) as place:
            isolation = await ProcessDriver(place).isolation()
    except SandboxError as e:
        yield fail("isolation", str(e), e.details)
        return
    if isolation.mode == "none":
        yield warn("isolation", f"none: {isolation.note or 'no reason was found'}")
    else:
        yield ok("isolation", isolation.mode)
    yield ok("sandbox user", isolation.user)
    for limit in isolation.limits:
        yield ok("limits", limit)


@contextmanager
def _existing_home(home: Home) -> Generator[Home]:
    """Yield the home, or a temporary one: a check does not create a home."""
    if home.root.exists():
        yield home
        return
    with TemporaryDirectory(prefix="qd-doctor-") as directory:
        yield Home(Path(directory))


async def first_line(*command: str) -> str:
    """Return the first line of a program's output; empty when it cannot be run."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return ""
    output, _ = await process.communicate()
    return output.decode(errors="replace").partition("\n")[0].strip()


LEAST_COLUMNS, LEAST_ROWS = 80, 24
SLOW_ESCAPE = 50
"""Milliseconds from which waiting for the next byte is noticeable."""


async def check_terminal() -> AsyncGenerator[Finding]:
    """Check TERM, colors, encoding, size, tmux and SSH."""
    for finding in _terminal():
        yield finding
    for finding in _cockpit_settings():
        yield finding
    if os.environ.get("TMUX"):
        async for finding in _tmux():
            yield finding
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        yield ok("ssh", "a remote terminal: copying goes through OSC 52; motion is reduced")
    yield _notices()


def _terminal() -> Generator[Finding]:
    if not sys.stdout.isatty():
        yield warn("terminal", "stdout is not a terminal", "Only the cockpit needs one.")
    yield _term()
    yield _colors()
    yield _encoding()
    yield _size()


def _cockpit_settings() -> Generator[Finding]:
    """Check the cockpit's tables of the configuration file."""
    from quarterdeck.cli.cockpit import read_cockpit_file

    path = config_path()
    faults = read_cockpit_file(path).faults
    for fault in faults:
        yield warn("cockpit", fault, f"Correct {path}; until then the default holds.")
    if not faults and path.exists():
        yield ok("cockpit", f"keys and settings of {path}")


def _term() -> Finding:
    term = os.environ.get("TERM", "")
    if term in {"", "dumb", "unknown"}:
        return warn("TERM", term or "not set", "Set TERM, for instance to xterm-256color.")
    return ok("TERM", term)


def _colors() -> Finding:
    if "NO_COLOR" in os.environ:
        return ok("colors", "off: NO_COLOR is set")
    colors = os.environ.get("COLORTERM", "")
    if colors in {"truecolor", "24bit"}:
        return ok("COLORTERM", colors)
    step = "Set COLORTERM=truecolor when the terminal shows 16 million colors."
    return warn("COLORTERM", colors or "not set: 256 colors at most", step)


def _encoding() -> Finding:
    encoding = locale.getpreferredencoding(False)
    if encoding.upper().replace("-", "") == "UTF8":
        return ok("locale", encoding)
    return warn("locale", f"{encoding}, not UTF-8", "Set LANG, for instance to C.UTF-8.")


def _size() -> Finding:
    size = shutil.get_terminal_size()
    text = f"{size.columns}x{size.lines}"
    if size.columns < LEAST_COLUMNS or size.lines < LEAST_ROWS:
        return warn("size", text, f"Make it {LEAST_COLUMNS}x{LEAST_ROWS} or larger.")
    return ok("size", text)


async def _tmux() -> AsyncGenerator[Finding]:
    version = await first_line("tmux", "-V")
    yield ok("tmux", version or "inside tmux")
    every = _can_pass_all(version)
    passes = await first_line("tmux", "show", "-gv", "allow-passthrough")
    if passes not in {"on", "all"}:
        step = f"In ~/.tmux.conf: set -g allow-passthrough {'all' if every else 'on'}"
        yield warn("tmux passthrough", "off: a notice is only a bell, with no words", step)
    elif passes == "on" and every:
        step = "For notices from windows that are not shown: set -g allow-passthrough all"
        yield ok("tmux passthrough", f"on, from windows that are shown. {step}")
    if await first_line("tmux", "show", "-sv", "set-clipboard") == "off":
        step = "In ~/.tmux.conf: set -s set-clipboard external"
        yield warn("tmux clipboard", "off: copied text does not reach your terminal", step)
    yield await _escape_time()
    term = os.environ.get("TERM", "")
    if not term.startswith(("tmux", "screen")):
        step = "In ~/.tmux.conf: set -g default-terminal tmux-256color"
        yield warn("tmux TERM", f"{term or 'not set'} inside tmux draws wrongly", step)
    features = await first_line("tmux", "display-message", "-p", "#{client_termfeatures}")
    if features and "RGB" not in features.split(","):
        step = "In ~/.tmux.conf: set -as terminal-features ',*:RGB'; or use the theme ansi."
        yield warn("tmux colors", "tmux sends 256 colors at most to its terminal", step)


def _can_pass_all(version: str) -> bool:
    """Return whether this tmux can pass through output of windows that are not shown.

    Versions before 3.4 reject "all" as a value.
    """
    numbers = re.findall(r"\d+", version)[:2]
    return len(numbers) < 2 or (int(numbers[0]), int(numbers[1])) >= (3, 4)


async def _escape_time() -> Finding:
    milliseconds = await first_line("tmux", "show", "-sv", "escape-time")
    if milliseconds.isdecimal() and int(milliseconds) > SLOW_ESCAPE:
        step = "In ~/.tmux.conf: set -s escape-time 10"
        return warn("tmux escape-time", f"{milliseconds} ms: every esc is delayed by this", step)
    return ok("tmux escape-time", f"{milliseconds or 'unknown'} ms")


def _notices() -> Finding:
    """Report how notices are shown on this terminal; the setting itself is the cockpit's."""
    from quarterdeck.tui.notices import protocol_of

    protocol = protocol_of(os.environ)
    if protocol == "bell":
        return ok("notices", "by the bell; this terminal is not known to support others")
    return ok("notices", f"by OSC {protocol}")
