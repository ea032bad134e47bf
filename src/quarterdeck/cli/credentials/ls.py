"""`qd credentials ls`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.credentials.which import whose_option, with_credentials
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, table
from quarterdeck.cli.words import ago

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.credentials import CredentialStatus


@click.command(name="ls")
@whose_option
@click.argument("providers", metavar="[PROVIDER...]", nargs=-1)
@common_options
def command(common: Common, organization: bool, providers: tuple[str, ...]) -> None:
    """Say which providers have a key; without a name, those of the known agents."""

    async def read(client: "Client", shared: bool) -> "dict[str, CredentialStatus]":
        wanted = providers or [agent.id for agent in await client.agents.list()]
        return {one: await client.credentials.get(one, shared=shared) for one in wanted}

    found = with_credentials(common, organization, read)
    if common.json:
        records = {
            provider: status.model_dump(mode="json", by_alias=True, exclude_none=True)
            for provider, status in found.items()
        }
        put_json({"credentials": records})
        return
    table(["PROVIDER", "KEY", "FETCHED"], (_row(one, status) for one, status in found.items()))


def _row(provider: str, status: "CredentialStatus") -> list[str]:
    fetched = status.last_fetched_at
    return [provider, status.api_key or "-", "-" if fetched is None else ago(fetched)]
