"""Unix sockets at paths longer than the kernel's 108 bytes, and without descriptors that others send.

A socket address holds at most 107 bytes of path, and a home may be deeper. The directory is opened
and the socket named through `/proc/self/fd`, which is always short.
"""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ADDRESS_LIMIT = 107
SO_PASSRIGHTS = 83
"""Of Linux 6.16; the standard library does not name it."""


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


def refuse_descriptors(descriptor: int) -> bool:
    """Make the kernel refuse open files that the other end of a unix socket sends; return whether it does.

    An open file that arrives is closed when its message is read, also by a program that does not ask for
    it. Closing a TCP socket with `SO_LINGER` takes as long as its sender wants, and nothing else happens
    in that thread. What is accepted on a listening socket refuses them, too.
    """
    with socket.fromfd(descriptor, socket.AF_UNIX, socket.SOCK_STREAM) as same:
        try:
            same.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError:  # an earlier kernel, or a pipe, which carries no open files
            return False
    return True
