"""The terminal that the cockpit would draw on."""

import locale
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Generator

from quarterdeck.cli.checks.finding import Finding, ok, warn
from quarterdeck.cli.checks.machine import first_line
from quarterdeck.cli.config_path import config_path

LEAST_COLUMNS, LEAST_ROWS = 80, 24
SLOW_ESCAPE = 50
"""Milliseconds from which on waiting for the next byte is felt."""


async def check_screen() -> AsyncGenerator[Finding]:
    """TERM, colors, encoding, size, tmux, SSH."""
    for finding in _terminal():
        yield finding
    for finding in _settings():
        yield finding
    if os.environ.get("TMUX"):
        async for finding in _tmux():
            yield finding
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        yield ok("ssh", "a remote terminal: copying goes through OSC 52; motion is reduced")
    yield _notices()


def _terminal() -> Generator[Finding]:
    if not sys.stdout.isatty():
        yield warn("terminal", "stdout is no terminal", "The cockpit needs one; verbs do not.")
    yield _term()
    yield _colors()
    yield _encoding()
    yield _size()


def _settings() -> Generator[Finding]:
    """What of the cockpit's part of the configuration file cannot be."""
    from quarterdeck.cli.cockpit_file import read_cockpit_file

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
    found = os.environ.get("COLORTERM", "")
    if found in {"truecolor", "24bit"}:
        return ok("COLORTERM", found)
    step = "Set COLORTERM=truecolor when the terminal shows 16 million colors."
    return warn("COLORTERM", found or "not set: 256 colors at most", step)


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
    every = _knows_all(version)
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


def _knows_all(version: str) -> bool:
    """Whether this tmux can pass on what windows print that are not shown: one before 3.4 takes
    "all" for a mistake.
    """
    numbers = re.findall(r"\d+", version)[:2]
    return len(numbers) < 2 or (int(numbers[0]), int(numbers[1])) >= (3, 4)


async def _escape_time() -> Finding:
    told = await first_line("tmux", "show", "-sv", "escape-time")
    if told.isdecimal() and int(told) > SLOW_ESCAPE:
        step = "In ~/.tmux.conf: set -s escape-time 10"
        return warn("tmux escape-time", f"{told} ms: every escape waits so long", step)
    return ok("tmux escape-time", f"{told or 'unknown'} ms")


def _notices() -> Finding:
    """How a notice would be told; the setting itself is the cockpit's."""
    from quarterdeck.tui.notices import protocol_of

    protocol = protocol_of(os.environ)
    if protocol == "bell":
        return ok("notices", "by the bell: this terminal is not known to take others")
    return ok("notices", f"by OSC {protocol}")
