"""Core dumps: none, since the memory of our processes has keys and what was said."""

import resource


def prevent_core_dumps() -> None:
    """Let neither this process nor what it starts leave a core dump.

    One is written into the working directory, often a checkout that replicas and other users read.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
