"""Runs the asynchronous part of a verb with a client that is closed afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from quarterdeck.cli.errors import NoService
from quarterdeck.cli.options import Common
from quarterdeck.cli.target import Target, find_target

if TYPE_CHECKING:
    from quarterdeck.client import Client

Result = TypeVar("Result")


def with_client(common: Common, work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """Opens a client of the service that is meant, awaits the work, closes it.

    Raises:
        NoService: the embedded service was never started here, or does not answer.
        ClientError: what the work raised.
    """
    return run_with(find_target(common.profile), work)


def run_with(target: Target, work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """The same for a service that is known already."""

    async def run() -> Result:
        async with target.client() as client:
            return await work(client)

    if target.embedded and not _was_started(target):
        raise _not_running(target)
    from quarterdeck.client.errors import Unreachable

    try:
        return asyncio.run(run())
    except Unreachable as e:
        if not target.embedded:
            raise
        raise _not_running(target) from e


def _was_started(target: Target) -> bool:
    return target.home.socket.exists() and target.current_key() is not None


def _not_running(target: Target) -> NoService:
    return NoService(
        f"No service runs for {target.home.root}.",
        "Start it with: qd serve (or qd, which opens the cockpit and starts it too).",
    )
