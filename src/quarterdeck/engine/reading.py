"""Opening a file below a directory without ever leaving it, and telling text from the rest."""

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TAIL = 3  # bytes of a UTF-8 character that a cut may leave behind


def open_inside(root: Path, name: bytes, hidden: bytes = b"") -> int | None:
    """A descriptor of the regular file of a relative name; None when there is none inside.

    What lies in a directory called `hidden`, or is called so, is not there either.

    Links are followed as long as they stay inside. The resolved path is then walked without
    following any, so one that is changed meanwhile leads nowhere.
    """
    if not name or name.startswith(b"/") or b"\0" in name or b".." in name.split(b"/"):
        return None
    try:
        top = os.path.realpath(os.fsencode(root), strict=True)
        true = os.path.realpath(os.path.join(top, name), strict=True)  # noqa: PTH118 - bytes
    except OSError:
        return None
    if os.path.commonpath((top, true)) != top or true == top:
        return None
    parts = os.path.relpath(true, top).split(b"/")
    return None if hidden in parts else _walk(top, parts)


def _walk(top: bytes, parts: list[bytes]) -> int | None:
    try:
        here = os.open(top, _FLAGS | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = deeper
        found = os.open(parts[-1], _FLAGS, dir_fd=here)
    except OSError:
        return None
    finally:
        os.close(here)
    if stat.S_ISREG(os.fstat(found).st_mode):
        return found
    os.close(found)
    return None


def as_text(data: bytes, cut: bool = False) -> str | None:
    """The text of some bytes, or None when they are none. `cut` bytes may end in a character."""
    if b"\0" in data:
        return None
    for end in range(len(data), len(data) - (_TAIL if cut else 0) - 1, -1):
        try:
            return data[: max(end, 0)].decode()
        except UnicodeDecodeError:
            continue
    return None
