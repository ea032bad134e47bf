"""Whose key a verb is about."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from quarterdeck.cli.options import Common
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client

Result = TypeVar("Result")

whose_option = click.option(
    "--organization/--mine",
    "organization",
    default=False,
    help="The organization's key, for its admins, or your own.",
)


def with_credentials(
    common: Common, organization: bool, work: Callable[["Client", bool], Awaitable[Result]]
) -> Result:
    """Runs the work, told whether it is about the organization's key."""

    async def run(client: "Client") -> Result:
        return await work(client, organization)

    return with_client(common, run)
