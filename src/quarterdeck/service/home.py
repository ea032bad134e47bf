"""Takes an installation's home: its directories, and the lock that one service holds."""

import fcntl
import os
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.service.errors import HomeInUseError, HomeUnusableError

PRIVATE = 0o700
PASSABLE = 0o711
"""The root when root runs the service: sandboxes run as another user and must reach their own
directories below it, but may not list it. Likewise the directory of the socket for them."""


class HomeLock:
    """The home's lock, held until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Lets another service take the home. Safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def take_home(home: Home) -> HomeLock:
    """Makes the home's directories and takes its lock.

    Raises:
        HomeInUseError: another service holds it.
        HomeUnusableError: a directory or the lock file cannot be made.
    """
    try:
        passable = PASSABLE if os.geteuid() == 0 else PRIVATE
        _make(home.root, passable)
        _make(home.service, PRIVATE)
        _make(home.doorway, passable)
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise HomeUnusableError(f"The directory {home.root} cannot be used: {e.strerror}.") from e
    return _lock(home, descriptor)


def _make(directory: Path, mode: int) -> None:
    directory.mkdir(mode=mode, parents=True, exist_ok=True)
    directory.chmod(mode)


def _lock(home: Home, descriptor: int) -> HomeLock:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as e:
        pid = _holder(descriptor)
        os.close(descriptor)
        who = "another process" if pid is None else f"process {pid}"
        raise HomeInUseError(f"A service of {home.root} runs already: {who}.", pid) from e
    except OSError as e:
        os.close(descriptor)
        raise HomeUnusableError(f"The lock {home.lock} cannot be written: {e.strerror}.") from e
    return HomeLock(descriptor)


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
