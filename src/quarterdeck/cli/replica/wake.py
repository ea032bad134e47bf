"""`qd replica wake`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.replica.follow import until_active
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="wake")
@click.option("--wait", is_flag=True, help="Wait until it is active, or failed (exit code 1).")
@replica_argument
@common_options
def command(common: Common, replica: str, wait: bool) -> None:
    """Start a sleeping replica again; a failed one is tried again."""

    async def work(client: "Client") -> str:
        replica_id = await find_replica(client, replica)
        answer = await client.replicas.wake(replica_id)
        if not wait:
            return answer.status
        return (await until_active(client, replica_id)).status

    status = with_client(common, work)
    if common.json:
        put_json({"status": status})
    say(f"{replica}: {status}.")
