"""`qd --plain`: the cockpit as lines of text."""

from pathlib import Path

from quarterdeck.cli.repositories import find_repository_url
from quarterdeck.cli.services import service_of, services_beside
from quarterdeck.cli.target import find_target_with_key
from quarterdeck.local.files import find_checkout


def open_plain_cockpit(profile: str | None) -> int:
    """Open the cockpit as lines; closing it does not stop the service.

    Returns:
        The exit code.

    Raises:
        ConfigError: there is no key for the remote service.
    """
    target = find_target_with_key(profile)
    from quarterdeck.plain.cockpit import run
    from quarterdeck.plain.session import Here

    directory = find_checkout(Path.cwd())
    return run(
        service_of(target),
        services_beside(target),
        drafts=target.home.client,
        here=Here(find_repository_url(None, target), directory),
    )
