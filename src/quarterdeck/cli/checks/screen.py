"""The terminal that the cockpit would draw on."""

import locale
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Generator

from quarterdeck.cli.checks.finding import Finding, ok, warn
from quarterdeck.cli.checks.machine import first_line

LEAST_COLUMNS, LEAST_ROWS = 80, 24


async def check_screen() -> AsyncGenerator[Finding]:
    """TERM, colors, encoding, size, tmux, SSH."""
    for finding in _terminal():
        yield finding
    if os.environ.get("TMUX"):
        async for finding in _tmux():
            yield finding
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        yield ok("ssh", "a remote terminal: copying goes through OSC 52")


def _terminal() -> Generator[Finding]:
    if not sys.stdout.isatty():
        yield warn("terminal", "stdout is no terminal", "The cockpit needs one; verbs do not.")
    yield _term()
    yield _colors()
    yield _encoding()
    yield _size()


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
    yield ok("tmux", await first_line("tmux", "-V") or "inside tmux")
    if await first_line("tmux", "show", "-gv", "allow-passthrough") not in {"on", "all"}:
        step = "In ~/.tmux.conf: set -g allow-passthrough on"
        yield warn("tmux passthrough", "off: notices do not reach your terminal", step)
    if await first_line("tmux", "show", "-sv", "set-clipboard") == "off":
        step = "In ~/.tmux.conf: set -s set-clipboard on"
        yield warn("tmux clipboard", "off: copied text does not reach your terminal", step)
