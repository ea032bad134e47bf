"""Which keys a verb is about, and how it gets at them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from quarterdeck.cli.options import Common
from quarterdeck.cli.running import run_with
from quarterdeck.cli.target import find_target
from quarterdeck.cli.tokens import run_with_token

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.api_keys import ApiKeys

Result = TypeVar("Result")

organization_option = click.option(
    "--organization", is_flag=True, help="The organization's keys, for its admins."
)


def with_keys(
    common: Common,
    organization: bool,
    work: Callable[["ApiKeys"], Awaitable[Result]],
    making: bool = False,
) -> Result:
    """Runs the work on the keys that are meant.

    Making a personal key takes a token, so that is done with a new one.
    """
    target = find_target(common.profile)

    async def shared(client: "Client") -> Result:
        return await work(client.organization_api_keys)

    async def own(client: "Client") -> Result:
        return await work(client.api_keys)

    if organization:
        return run_with(target, shared)
    return run_with_token(target, own) if making else run_with(target, own)
