"""Errors of the command line and the exit codes of `qd`.

CliError                  a message for a person, a next step, an exit code
├── UsageError            2: the request makes no sense
│   ├── ConfigError       2: the configuration file, or a variable, is wrong
│   └── AmbiguousNameError 2: a name or a prefix matches several things
├── FailedError           1: the request was carried out and did not succeed
└── NoServiceError        3: no embedded service runs, or it did not start
"""

from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit codes of verbs.

    REFUSED also means that the requested operation did not succeed: a turn that failed, a command of
    `exec` with a status other than 0, a failed check of `doctor`.
    """

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


class CliError(Exception):
    """Printed on stderr; `exit_code` ends the process."""

    exit_code: ClassVar[Exit] = Exit.REFUSED

    def __init__(self, message: str, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


class UsageError(CliError):
    """The request is invalid."""

    exit_code: ClassVar[Exit] = Exit.USAGE


class ConfigError(UsageError):
    """The configuration file or a variable is wrong; the message names the place."""


class AmbiguousNameError(UsageError):
    """A name or a prefix matches several things."""


class FailedError(CliError):
    """It was carried out and did not succeed."""


class NoServiceError(CliError):
    """The embedded service does not run, or did not start."""

    exit_code: ClassVar[Exit] = Exit.UNREACHABLE
