"""The limit of open files of a process (`RLIMIT_NOFILE`)."""

import resource

STARTED_WITH, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
"""The soft limit at the start of this process, also used for its children: some programs close
every descriptor up to the limit, and some fail with descriptors above 1,023."""


def raise_limit() -> int:
    """Raise the soft limit of this process to the hard one, and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def lower_limit(most: int) -> None:
    """Lower both limits of this process, and of what it starts, to at most `most`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
