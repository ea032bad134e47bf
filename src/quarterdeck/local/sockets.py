"""Unix sockets at paths longer than the kernel's 108 bytes.

A socket address holds at most 107 bytes of path, and a home may be deeper. The directory is opened
and the socket named through `/proc/self/fd`, which is always short.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ADDRESS_LIMIT = 107


@contextmanager
def socket_address(path: Path) -> Generator[str]:
    """Yield an address for `connect` and `bind`, valid within the block.

    Raises:
        OSError: the directory cannot be opened.
    """
    name = os.fsencode(path)
    if len(name) <= ADDRESS_LIMIT:
        yield os.fsdecode(name)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
