"""`qd env rm`."""

import sys
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.env.find import find_environment
from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, safe_line, say
from quarterdeck.cli.persons import as_person

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="rm")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("environments", metavar="ENVIRONMENT...", nargs=-1, required=True)
@common_options
def command(common: Common, environments: tuple[str, ...], yes: bool) -> None:
    """Delete environments with their parts. One that replicas are made from is refused."""

    async def find(client: "Client") -> dict[UUID, str]:
        return {(await find_environment(client, wanted)).id: wanted for wanted in environments}

    found = as_person(common, find)
    if not yes:
        _ask(list(found.values()))

    async def remove(client: "Client") -> None:
        for environment_id, wanted in found.items():
            await client.environments.delete(environment_id)
            say(f"{wanted} is gone.")

    as_person(common, remove)
    if common.json:
        put_json({"success": True, "deleted": [str(one) for one in found]})


def _ask(names: list[str]) -> None:
    if not sys.stdin.isatty():
        raise UsageFault("Deleting asks first, and stdin is no terminal.", "Add --yes.")
    what = safe_line(", ".join(names))
    click.confirm(f"Delete {what} with all parts?", abort=True, err=True)
