"""Starts the launcher, detached: what it becomes outlives this process."""

import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from json import dumps
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.py")

_ABOVE = 16  # descriptors are duplicated above the numbers they are put on


@dataclass(frozen=True)
class LaunchSpec:
    """What the launcher does. Written as JSON to its standard input.

    `bubblewrap` is the program's path and `options` its options; without it the command is run as
    a plain process in `directory`. `uid` and `gid` are set when the launcher starts as root and
    must become someone else; `expose` then names the paths that user must reach.
    """

    command: list[str]
    environment: dict[str, str]
    directory: str
    bubblewrap: str | None = None
    options: list[str] = field(default_factory=list[str])
    uid: int | None = None
    gid: int | None = None
    expose: list[str] = field(default_factory=list[str])


def spawn(spec: LaunchSpec, log: int, status: int) -> int:
    """Starts a sandbox in a session of its own and returns the pid of its outermost process.

    That process is a child of this one: `processes.reap` collects it when it ends.

    Args:
        log: descriptor for standard output and error.
        status: descriptor for the JSON lines that tell the inner process and the exit code.
    """
    with _described(spec) as described, _raised(described, log, status) as (source, out, lines):
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(LAUNCHER)],
            spec.environment,
            setsid=True,
            setsigmask=[],
            file_actions=[
                (os.POSIX_SPAWN_DUP2, source, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, out, 2),
                (os.POSIX_SPAWN_DUP2, lines, 3),
            ],
        )


@contextmanager
def _described(spec: LaunchSpec) -> Generator[int]:
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, dumps(asdict(spec)).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _raised(*descriptors: int) -> Generator[list[int]]:
    copies: list[int] = []
    try:
        for descriptor in descriptors:
            copies.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE))
        yield copies
    finally:
        for copy in copies:
            os.close(copy)
