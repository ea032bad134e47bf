"""Writes files that are never seen half written, reads small ones, and finds a checkout."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600
LARGEST = 16 << 20
"""Most bytes that `read_file` reads."""


def write_file(
    path: Path,
    data: str | bytes,
    *,
    mode: int | None = PRIVATE,
    owner: tuple[int, int] | None = None,
    durable: bool = True,
) -> None:
    """Replace a file in one step: a crash, a full disk or another writer leaves one whole version.

    Args:
        data: text is written as UTF-8.
        mode: set exactly, from the start; None: 0666 less the umask.
        owner: uid and gid.
        durable: whether the content is on the disk on return. Also call `sync_directory` if a
            power failure must not restore the previous version.

    Raises:
        OSError: it cannot be written. The previous version is kept.
    """
    # Unique to this call, because several may write at once. A link of this name is not followed.
    draft = path.with_name(f".{os.urandom(8).hex()}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666 if mode is None else mode & PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if owner is not None:
                os.fchown(descriptor, *owner)
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            if durable:
                os.fsync(descriptor)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def make_private_directory(directory: Path) -> None:
    """Create a directory, and those above it that are missing, for this user alone.

    `mkdir` with `parents` gives the others whatever mode the umask leaves.

    Raises:
        OSError: one cannot be created.
    """
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_private_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


def read_file(path: Path) -> bytes:
    """Return the content of a small file.

    Raises:
        OSError: it cannot be read, is not a file (reading a pipe might never end), or is too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Not a file", str(path))
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power failure.

    Raises:
        OSError: it cannot be opened or synchronized.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reason_of(error: OSError) -> str:
    """Return what went wrong, and what to do when a directory is in the place of a file or the reverse."""
    name = error.filename2 or error.filename
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST) and isinstance(name, str):
        with suppress(OSError):
            there = next(path for path in (Path(name), *Path(name).parents) if path.exists())
            if there.is_dir() == (error.errno == errno.EISDIR):
                kinds = ("directory", "file") if there.is_dir() else ("file", "directory")
                return "{} is a {} in the place of a {}; move it away and try again".format(
                    there, *kinds
                )
    return error.strerror or str(error)


def find_checkout(directory: Path) -> Path | None:
    """Return the root of the checkout that contains a directory, or None."""
    for candidate in (directory, *directory.parents):
        if (candidate / ".git").exists():
            return candidate
    return None
