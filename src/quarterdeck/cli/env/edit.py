"""`qd env edit`."""

from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.env.find import (
    environment_argument,
    find_environment,
    find_repository,
    find_set,
)
from quarterdeck.cli.env.settings import setting_options, text_of
from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environments import Environment

CLEARABLE = {
    "description": "description",
    "repository": "repository_id",
    "set": "repository_set_id",
    "system-prompt": "system_prompt",
    "preferences": "personal_preferences",
}


@click.command(name="edit")
@environment_argument
@click.option("--name", metavar="NAME")
@setting_options
@click.option("--clear", type=click.Choice(list(CLEARABLE)), multiple=True, help="Make it empty.")
@common_options
def command(
    common: Common,
    environment: str,
    name: str | None,
    description: str | None,
    repository: str | None,
    repository_set: str | None,
    system_prompt: str | None,
    preferences: str | None,
    clear: tuple[str, ...],
) -> None:
    """Change what is given of an environment."""
    from quarterdeck.wire.environments import ChangeEnvironment

    texts = {
        "name": name,
        "description": description,
        "system_prompt": text_of(system_prompt),
        "personal_preferences": text_of(preferences),
    }
    fields: dict[str, Any] = dict.fromkeys(CLEARABLE[one] for one in clear)
    fields |= {field: text for field, text in texts.items() if text is not None}
    if not fields and repository is None and repository_set is None:
        raise UsageFault("Nothing to change was given.", "See: qd env edit --help.")

    async def change(client: "Client") -> "Environment":
        found = await find_environment(client, environment)
        # Being bound to one ends being bound to the other.
        if repository is not None:
            bound = await find_repository(client, repository)
            fields.update(repository_id=bound, repository_set_id=None)
        if repository_set is not None:
            bound = await find_set(client, repository_set)
            fields.update(repository_set_id=bound, repository_id=None)
        return await client.environments.change(found.id, ChangeEnvironment(**fields))

    changed = with_client(common, change)
    if common.json:
        put_json({"environment": changed.model_dump(mode="json")})
    else:
        say(f"{changed.name} is changed.")
