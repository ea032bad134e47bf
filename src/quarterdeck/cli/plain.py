"""`qd --plain`: the cockpit as lines of text."""

from pathlib import Path

from quarterdeck.cli.errors import UsageError
from quarterdeck.cli.options import Common
from quarterdeck.cli.repositories import find_checkout, find_repository_url
from quarterdeck.cli.services import service_of, services_beside
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

    directory = find_checkout(Path.cwd())
    return run(
        service_of(target),
        services_beside(target),
        drafts=target.home.client,
        here=Here(find_repository_url(None, target), directory),
    )
