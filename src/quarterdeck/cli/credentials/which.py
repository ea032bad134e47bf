"""Whose key a verb is about."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from quarterdeck.cli.options import Common
from quarterdeck.cli.persons import as_person
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client

Result = TypeVar("Result")

organization_option = click.option(
    "--organization", is_flag=True, help="The organization's key, for its admins."
)


def with_credentials(
    common: Common, organization: bool, work: Callable[["Client"], Awaitable[Result]]
) -> Result:
    """Runs the work as who the key belongs to."""
    return with_client(common, work) if organization else as_person(common, work)
