"""What one git process of the service may use.

A repository of somebody else may make git take any memory, time and room on the disk.
"""

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.sandboxes.disk import room_at

LEAST_MEMORY, MOST_MEMORY = 3 << 30, 8 << 30
"""git may have half of the machine's memory, within these."""
MOST_SECONDS = 3600
"""Most seconds of processor time."""
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
    return Limits(min(MOST_MEMORY, max(LEAST_MEMORY, machine // 2)), MOST_SECONDS)


def room_beside(path: Path) -> int:
    """Return the bytes that a file may have: what is free beside a path, less what is reserved."""
    room = room_at(next(place for place in (path, *path.parents) if place.exists()))
    most = max(room.free - room.reserved, LEAST_FILE)
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return most if limit == resource.RLIM_INFINITY else min(most, limit)


def prefix_for(limits: Limits, room: int) -> Sequence[str]:
    """Return a command prefix that sets limits; no file of the command may exceed `room` bytes."""
    values = (f"-d {limits.memory >> 10}", f"-t {limits.seconds}", f"-f {room >> 9}", "-c 0")
    # One that cannot be set is already lower.
    script = "".join(f"ulimit -S {value} 2>/dev/null; " for value in values)
    return ("/bin/sh", "-c", f'{script}exec "$@"', "sh")
