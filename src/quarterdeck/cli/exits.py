"""Exit codes, the same for every verb."""

from enum import IntEnum


class Exit(IntEnum):
    """What a verb ended with.

    REFUSED also stands for what was asked for and did not succeed: a turn that failed, a command
    of `exec` with another status than 0, a check of `doctor` that fails.
    """

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
