"""`qd --plain`: the cockpit as lines of text."""

from pathlib import Path

from quarterdeck.cli.background import service_starter
from quarterdeck.cli.errors import UsageError
from quarterdeck.cli.options import Common
from quarterdeck.cli.repositories import find_checkout, find_repository_url
from quarterdeck.cli.target import find_target_with_key


def open_plain_cockpit(common: Common) -> int:
    """Open the cockpit as lines; closing it does not stop the service.

    Returns:
        The exit code.

    Raises:
        UsageError: JSON is wanted.
        ConfigError: there is no key for the remote service.
    """
    if common.json:
        raise UsageError("The cockpit has no JSON form.", "Use a command: qd --help lists them.")
    target = find_target_with_key(common.profile)
    from quarterdeck.plain.cockpit import run
    from quarterdeck.plain.session import Here

    here = Here(
        repository=find_repository_url(None, target),
        directory=find_checkout(Path.cwd()),
        variables=target.git_variables,
    )
    return run(
        target.client,
        endpoint=target.label,
        drafts=target.home.client,
        revive=service_starter(target),
        here=here,
    )
