"""Files in directories that a sandbox can write to, handled as if an enemy had been there.

A program inside may put a link or a pipe where the service expects a file. The service runs
outside, so following one would carry the program's reach out of its sandbox. Everything here
creates new files under names of its own and moves them into place, or refuses to follow.
"""

import os
import secrets
import stat
from pathlib import Path

from quarterdeck.sandboxes.identity import SandboxUser

_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC


def make_directory(path: Path, user: SandboxUser) -> bool:
    """Makes a directory for the user inside; False when it was there."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    if user.drop:
        os.chown(path, user.uid, user.gid)
    return True


def write_file(path: Path, data: bytes, user: SandboxUser, mode: int = 0o600) -> None:
    """Puts a file in place at once and whole, owned by the user inside."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if user.drop:
                os.fchown(file.fileno(), user.uid, user.gid)
            file.write(data)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def open_new_log(path: Path, user: SandboxUser) -> int:
    """Begins a log, keeping the one before as `NAME.1`; returns a descriptor to append and read."""
    if os.path.lexists(path):
        path.replace(path.with_name(f"{path.name}.1"))
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
    descriptor = os.open(path, flags, 0o600)
    if user.drop:
        os.fchown(descriptor, user.uid, user.gid)
    return descriptor


def read_tail(descriptor: int, size: int = 4096) -> str:
    """The last bytes of an open log, as text."""
    length = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, max(0, length - size)).decode(errors="replace").strip()


def hold_socket(path: Path) -> int:
    """A descriptor that stands for a socket, and for nothing a link may point to.

    Raises:
        ConnectionError: no socket is there.
    """
    try:
        descriptor = os.open(path, os.O_PATH | _NO_FOLLOW)
    except OSError as e:
        raise ConnectionRefusedError(e.errno, f"no engine listens: {e.strerror}") from e
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ConnectionRefusedError("what stands in the engine's socket's place is no socket")
