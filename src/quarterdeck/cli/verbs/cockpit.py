"""`qd` without a verb: the cockpit, on a service that is started when none runs."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from quarterdeck.cli.background import ensure_service
from quarterdeck.cli.errors import ConfigFault, UsageFault
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import say
from quarterdeck.cli.target import Target, find_target


def open_cockpit(common: Common) -> int:
    """Opens the cockpit; closing it stops nothing.

    Returns:
        The exit code.

    Raises:
        UsageFault: there is no terminal to draw on.
        NoService: the embedded service did not come up.
    """
    if common.json:
        raise UsageFault("The cockpit has no JSON form.", "Use a verb: qd --help lists them.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageFault("The cockpit needs a terminal.", "Use a verb: qd --help lists them.")
    target = find_target(common.profile)
    if target.embedded:
        asyncio.run(ensure_service(target.home, say))
    elif target.key is None:
        raise ConfigFault(
            f"There is no key for {target.endpoint}.", "Set QD_API_KEY or the profile's key."
        )
    from quarterdeck.tui.app import run

    return run(
        target.client,
        endpoint=target.endpoint,
        drafts=target.home.client,
        revive=_reviver(target),
        directory=Path.cwd(),
    )


def _reviver(target: Target) -> Callable[[], Awaitable[None]] | None:
    """Starts the embedded service again when it is gone; nothing for a service elsewhere."""
    if not target.embedded:
        return None

    async def revive() -> None:
        await ensure_service(target.home, lambda _: None)

    return revive
