"""Runs a verb as a person, so that it reaches what is theirs alone."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common
from quarterdeck.cli.running import run_with
from quarterdeck.cli.target import Target, find_target
from quarterdeck.cli.tokens import fresh_token

if TYPE_CHECKING:
    from quarterdeck.client import Client

Result = TypeVar("Result")


def as_person(common: Common, work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """As `with_client`; but the embedded service's own key, which has no user, is not used.

    Its owner gets a user token at once instead. Elsewhere the key says whose the work is.

    Raises:
        UsageFault: the person has several organizations, and none was named.
    """
    target = find_target(common.profile)
    if not target.embedded or target.key is not None:
        return run_with(target, work)

    async def run(client: "Client") -> Result:
        token = (await fresh_token(client)).access_token
        person = replace(target, key=token)
        async with person.client() as known:
            organization = await _organization(known, target)
        async with replace(person, organization=organization).client() as own:
            return await work(own)

    return run_with(target, run)


async def _organization(client: "Client", target: Target) -> str:
    if target.organization is not None:
        return target.organization
    found = await client.account.organizations()
    if len(found) != 1:
        names = ", ".join(f"{one.name} ({one.id})" for one in found)
        raise UsageFault(
            f"You are a member of several organizations: {names}." if found else "No organization.",
            "Name one as `organization` in a profile, and use --profile.",
        )
    return str(found[0].id)
