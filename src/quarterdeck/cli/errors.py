"""What can go wrong on the command line itself.

CliError                  a message for a person, a next step, an exit code
├── UsageFault            2: what was asked for makes no sense
│   ├── ConfigFault       2: the configuration file, or a variable, is wrong
│   └── AmbiguousName     2: a prefix fits several replicas
├── NotDone               1: it was carried out and did not succeed
└── NoService             3: no embedded service runs, or it did not come up
"""

from typing import ClassVar

from quarterdeck.cli.exits import Exit


class CliError(Exception):
    """Printed on stderr; `exit_code` ends the process."""

    exit_code: ClassVar[Exit] = Exit.REFUSED

    def __init__(self, message: str, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


class UsageFault(CliError):
    """The request makes no sense as it stands."""

    exit_code: ClassVar[Exit] = Exit.USAGE


class ConfigFault(UsageFault):
    """The configuration file or a variable is wrong; the message names the place."""


class AmbiguousName(UsageFault):
    """A prefix fits several replicas."""


class NotDone(CliError):
    """It was carried out and did not succeed."""


class NoService(CliError):
    """The embedded service does not run, or did not come up."""

    exit_code: ClassVar[Exit] = Exit.UNREACHABLE
