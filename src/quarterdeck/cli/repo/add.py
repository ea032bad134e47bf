"""`qd repo add`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.running import run_with
from quarterdeck.cli.target import find_target

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.repositories import Repository


@click.command(name="add")
@click.argument("url", metavar="URL")
@click.option("--name", metavar="NAME", help="What to call it; by default the end of its URL.")
@click.option("--branch", metavar="BRANCH", help="Where work starts; by default its own default.")
@common_options
def command(common: Common, url: str, name: str | None, branch: str | None) -> None:
    """Connect a git URL or a local path, and print its id."""
    from quarterdeck.wire.repositories import ConnectRepository

    target = find_target(common.profile)
    place = str(Path(url).resolve()) if target.embedded and Path(url).exists() else url
    body = ConnectRepository(url=place, name=name, default_branch=branch)

    async def connect(client: "Client") -> "Repository":
        return await client.repositories.connect(body)

    one = run_with(target, connect)
    if common.json:
        put_json({"repository": one.model_dump(mode="json")})
    else:
        put(str(one.id))
