"""`qd env create`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.env.find import find_environment, find_repository, find_set
from quarterdeck.cli.env.settings import setting_options, text_of
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environments import Environment


@click.command(name="create")
@click.argument("name", metavar="NAME")
@click.option("--mine", is_flag=True, help="For you alone.")
@click.option("--source", metavar="ENVIRONMENT", help="Inherit from this one; implies --mine.")
@setting_options
@common_options
def command(
    common: Common,
    name: str,
    mine: bool,
    source: str | None,
    description: str | None,
    repository: str | None,
    repository_set: str | None,
    system_prompt: str | None,
    preferences: str | None,
) -> None:
    """Make an environment and print its id."""
    from quarterdeck.wire.environments import CreateEnvironment

    body = CreateEnvironment(
        name=name,
        scope="user" if mine or source else "org",
        description=description,
        system_prompt=text_of(system_prompt),
        personal_preferences=text_of(preferences),
    )

    async def make(client: "Client") -> "Environment":
        if repository is not None:
            body.repository_id = await find_repository(client, repository)
        if repository_set is not None:
            body.repository_set_id = await find_set(client, repository_set)
        if source is not None:
            body.source_environment_id = (await find_environment(client, source)).id
        return await client.environments.create(body)

    made = with_client(common, make)
    if common.json:
        put_json({"environment": made.model_dump(mode="json")})
    else:
        put(str(made.id))
