"""What `qd doctor` finds."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from quarterdeck.local.home import Home

if TYPE_CHECKING:
    from quarterdeck.sandboxes.port import Isolation


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


def bounds(isolation: "Isolation", sizes: str, gap: str) -> Generator[Finding]:
    """Return what bounds replicas, and what is open to them."""
    if isolation.size_limited:
        yield ok(sizes, "processor, memory and processes of a replica are limited by its size")
    for one in isolation.gaps:
        yield warn(gap, one.message, one.next_step)


@contextmanager
def existing_home(home: Home) -> Generator[Home]:
    """Yield the home, or a temporary one: a check does not create a home."""
    if home.root.exists():
        yield home
        return
    with TemporaryDirectory(prefix="qd-doctor-") as directory:
        yield Home(Path(directory))
