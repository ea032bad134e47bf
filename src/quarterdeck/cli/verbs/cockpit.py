"""`qd` without a verb: the cockpit, on a service that is started when none runs."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from quarterdeck.cli.background import ensure_service
from quarterdeck.cli.errors import CliError, ConfigFault, UsageFault
from quarterdeck.cli.options import Common
from quarterdeck.cli.target import Target, find_target


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
    from quarterdeck.tui.app import run

    return run(
        target.client,
        endpoint="local" if target.embedded else target.endpoint,
        drafts=target.home.client,
        revive=_reviver(target),
        directory=repository_of(Path.cwd()),
    )


def repository_of(directory: Path) -> Path | None:
    """The top of the checkout that a directory lies in, or None."""
    for candidate in (directory, *directory.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def _reviver(target: Target) -> Callable[[], Awaitable[str | None]] | None:
    """Sees to it that the embedded service runs; nothing for a service elsewhere."""
    if not target.embedded:
        return None

    async def revive() -> str | None:
        try:
            await ensure_service(target.home, lambda _: None)
        except CliError as e:
            return f"{e.message} {e.next_step or ''}".strip()
        return None

    return revive
