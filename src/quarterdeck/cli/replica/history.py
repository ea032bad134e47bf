"""`qd replica history`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json
from quarterdeck.cli.replica.find import find_chat, find_replica
from quarterdeck.cli.replica.show_events import printing
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.history import History


@click.command(name="history")
@click.option("--chat", metavar="CHAT", help="Another chat than the first: its id or title.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="The last N events only.")
@click.option(
    "--before", metavar="INDEX", type=click.IntRange(0), help="Events before this index only."
)
@replica_argument
@common_options
def command(
    common: Common, replica: str, chat: str | None, limit: int | None, before: int | None
) -> None:
    """Print what was said and done in a chat; never wakes the replica.

    With --json it is the page as the service answers it, of the whole replica without --chat;
    `eventsStartIndex` is the --before of the page before.
    """

    async def work(client: "Client") -> "tuple[UUID, History]":
        replica_id = await find_replica(client, replica)
        if common.json and chat is None:
            return replica_id, await client.history.page(
                replica_id, limit=limit, before_event=before
            )
        found = find_chat(await client.replicas.get(replica_id), chat)
        return found.id, await client.history.page(
            replica_id, chat_id=found.id, limit=limit, before_event=before
        )

    thread, page = with_client(common, work)
    if common.json:
        put_json(page)
        return
    with printing(thread) as printer:
        printer.take_page(page.events)
