"""Whose key a verb is about."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from quarterdeck.cli.options import Common
from quarterdeck.cli.persons import as_person
from quarterdeck.cli.running import run_with
from quarterdeck.cli.target import find_target

if TYPE_CHECKING:
    from quarterdeck.client import Client

Result = TypeVar("Result")

whose_option = click.option(
    "--organization/--mine",
    "organization",
    default=None,
    help="The organization's key, for its admins, or your own.",
)


def with_credentials(
    common: Common,
    organization: bool | None,
    work: Callable[["Client", bool], Awaitable[Result]],
) -> Result:
    """Runs the work, told whether it is about the organization's key.

    Unless something else is said it is the person's own; but with the embedded service's own key
    it is the organization's: replicas that are made with that key belong to no user, and would
    not get a personal one.
    """
    target = find_target(common.profile)
    if organization is None:
        organization = target.embedded and target.key is None

    async def run(client: "Client") -> Result:
        return await work(client, organization)

    return run_with(target, run) if organization else as_person(common, run)
