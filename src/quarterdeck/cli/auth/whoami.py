"""`qd auth whoami`."""

from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="whoami")
@common_options
def command(common: Common) -> None:
    """Say which user the key belongs to, and to which organizations it opens."""
    report = with_client(common, _report)
    if common.json:
        put_json(report)
        return
    user = report["user"]
    put(f"user  {_name(user) if user else 'none: this is an organization key'}")
    rows = [[one["name"], one["role"], one["id"]] for one in report["organizations"]]
    table(["ORGANIZATION", "ROLE", "ID"], rows)


async def _report(client: "Client") -> dict[str, Any]:
    from quarterdeck.client.errors import Unauthorized

    organizations = await client.account.organizations()
    try:
        user = await client.account.profile()
    except Unauthorized as e:
        if e.code != "USER_REQUIRED":
            raise
        user = None
    return {
        "user": None if user is None else user.model_dump(mode="json"),
        "organizations": [one.model_dump(mode="json") for one in organizations],
    }


def _name(user: dict[str, Any]) -> str:
    return user["email"] or user["name"] or user["id"]
