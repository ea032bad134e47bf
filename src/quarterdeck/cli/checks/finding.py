"""One line of `qd doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """WARN: it works, with less. FAIL: something that was asked for cannot work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """What was found, and what to do about it."""

    name: str
    level: Level
    message: str
    next_step: str | None = None


def ok(name: str, message: str) -> Finding:
    return Finding(name, Level.OK, message)


def warn(name: str, message: str, next_step: str | None = None) -> Finding:
    return Finding(name, Level.WARN, message, next_step)


def fail(name: str, message: str, next_step: str | None = None) -> Finding:
    return Finding(name, Level.FAIL, message, next_step)
