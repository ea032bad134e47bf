"""Starting a shell on a pseudo-terminal of its own."""

import fcntl
import os
import pwd
import signal
import struct
import termios
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_IN_DIRECTORY = 'cd -- "$1" || exit 1; shift; exec "$@"'
_NO_SHELLS = ("nologin", "false", "sync")
_FALLBACKS = ("/bin/bash", "/bin/sh")


@dataclass(frozen=True)
class Shell:
    """A running shell: its pid (also its session's id) and the terminal's master side."""

    pid: int
    master: int
    name: str


def spawn_shell(directory: Path, environment: Mapping[str, str], cols: int, rows: int) -> Shell:
    """Starts the user's shell in a directory, with the terminal as its controlling one.

    Raises:
        OSError: no pseudo-terminal is left, or no shell can be started.
    """
    shell = find_shell(environment)
    settings = {k: v for k, v in environment.items() if k not in ("LINES", "COLUMNS")}
    settings |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "SHELL": shell}
    master, slave = os.openpty()
    try:
        set_size(master, cols, rows)
        os.set_blocking(master, False)
        pid = _spawn(["/bin/sh", "-c", _IN_DIRECTORY, "sh", str(directory), shell], settings, slave)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return Shell(pid, master, Path(shell).name)


def set_size(master: int, cols: int, rows: int) -> None:
    """Tells the terminal its size; its programs get SIGWINCH."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def find_shell(environment: Mapping[str, str]) -> str:
    """The shell named by SHELL, else the account's, else bash, else sh."""
    candidates = (environment.get("SHELL"), _account_shell(), *_FALLBACKS)
    return next((shell for shell in candidates if shell and _is_shell(shell)), _FALLBACKS[-1])


def _account_shell() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return None


def _is_shell(path: str) -> bool:
    named = path.startswith("/") and Path(path).name not in _NO_SHELLS
    return named and os.access(path, os.X_OK)


def _spawn(argv: list[str], environment: Mapping[str, str], slave: int) -> int:
    """`setsid` comes before the files are opened, so opening the terminal makes it the controlling
    one; signals that Python ignores are given back their default."""
    device = os.ttyname(slave)
    return os.posix_spawn(
        argv[0],
        argv,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, device, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)],
    )
