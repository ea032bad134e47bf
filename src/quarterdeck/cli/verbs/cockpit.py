"""`qd` without a verb: the cockpit, on a service that is started when none runs."""

import sys
from pathlib import Path

from quarterdeck.cli.config_path import config_path
from quarterdeck.cli.errors import ConfigFault, UsageFault
from quarterdeck.cli.options import Common
from quarterdeck.cli.target import find_target


def open_cockpit(common: Common) -> int:
    """Opens the cockpit; closing it stops nothing.

    Returns:
        The exit code.

    Raises:
        UsageFault: there is no terminal to draw on.
        ConfigFault: a service elsewhere was chosen without a key.
    """
    if common.json:
        raise UsageFault("The cockpit has no JSON form.", "Use a verb: qd --help lists them.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageFault("The cockpit needs a terminal.", "Use a verb: qd --help lists them.")
    target = find_target(common.profile)
    if not target.embedded and target.key is None:
        raise ConfigFault(
            f"There is no key for {target.endpoint}.", "Set QD_API_KEY or the profile's key."
        )
    from quarterdeck.cli.cockpit_file import read_cockpit_file
    from quarterdeck.cli.surroundings import Machine, service_of
    from quarterdeck.tui.app import run

    service = service_of(target)
    return run(
        service.client,
        endpoint=service.endpoint,
        drafts=target.home.client,
        revive=service.revive,
        directory=repository_of(Path.cwd()),
        options=read_cockpit_file(config_path()),
        surroundings=Machine(target),
    )


def repository_of(directory: Path) -> Path | None:
    """The top of the checkout that a directory lies in, or None."""
    for candidate in (directory, *directory.parents):
        if (candidate / ".git").exists():
            return candidate
    return None
