"""`qd replica ls`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say, table
from quarterdeck.cli.running import with_client
from quarterdeck.cli.words import ago
from quarterdeck.wire.replicas import Replica

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="ls")
@click.option("--status", metavar="STATUS", help="Only those in this state.")
@common_options
def command(common: Common, status: str | None) -> None:
    """List replicas, newest first."""

    async def read(client: "Client") -> list[Replica]:
        return [replica async for replica in client.replicas.all(status=status)]

    replicas = with_client(common, read)
    if common.json:
        put_json({"replicas": replicas, "total": len(replicas)})
        return
    if not replicas:
        say("No replicas. Make one with: qd replica create.")
        return
    table(["NAME", "STATUS", "ACTIVE", "REPOSITORIES", "ID"], map(_row, replicas))


def _row(replica: Replica) -> list[str]:
    return [
        replica.name,
        replica.status,
        ago(replica.last_activity_at or replica.created_at),
        ", ".join(repository.name for repository in replica.repositories) or "-",
        str(replica.id)[:8],
    ]
