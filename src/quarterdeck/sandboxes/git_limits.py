"""What one git process of the service may use.

An untrusted repository can make git use any amount of memory, time and disk space.
"""

import os
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.sandboxes.disk import room_at

LEAST_MEMORY, MOST_MEMORY = 3 << 30, 8 << 30
"""git may have half of the machine's memory, within these."""
MOST_SECONDS = 3600
"""Most seconds of time of each processor."""
LEAST_FILE = 16 << 20
"""Bytes that a file may have on any disk: a lock or a pack of a few commits on a full one."""


@dataclass(frozen=True)
class Limits:
    """Bytes of memory, and seconds of processor time."""

    memory: int
    seconds: int


def usual_limits() -> Limits:
    """Return the limits of git on this machine."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory = min(MOST_MEMORY, max(LEAST_MEMORY, machine // 2))
    return Limits(memory, MOST_SECONDS * (os.cpu_count() or 1))


def room_beside(path: Path) -> int:
    """Return the bytes that a file may have: what is free beside a path, less what is reserved."""
    room = room_at(next(place for place in (path, *path.parents) if place.exists()))
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = sys.maxsize if limit == resource.RLIM_INFINITY else limit
    if not room.reserved:  # a file system that does not say its size
        return limit
    return min(limit, max(room.free - room.reserved, LEAST_FILE))


def prefix_for(limits: Limits, room: int) -> Sequence[str]:
    """Return a command prefix that sets limits; no file of the command may exceed `room` bytes."""
    values = (f"-d {limits.memory >> 10}", f"-t {limits.seconds}", f"-f {room >> 9}", "-c 0")
    # One that cannot be set is already lower.
    script = "".join(f"ulimit -S {value} 2>/dev/null; " for value in values)
    return ("/bin/sh", "-c", f'{script}exec "$@"', "sh")
