"""Memory of this process."""

import ctypes


def trim() -> None:
    """Give free memory back to the system, where the C library can (glibc).

    By itself glibc returns only the end of each of its heaps, so what threads have freed before a piece
    that is still in use stays with a service for days.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:  # another C library
        return
    malloc_trim(0)
