"""`qd replica queue clear`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.replica.queue.waiting import chat_option, read_waiting, show
from quarterdeck.cli.running import with_client
from quarterdeck.wire.messages import QueuedMessage

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="clear")
@chat_option
@replica_argument
@common_options
def command(common: Common, replica: str, chat: str | None) -> None:
    """Cancel everything that waits for the running turn; the turn goes on."""

    async def work(client: "Client") -> list[QueuedMessage]:
        waiting = await read_waiting(client, replica, chat)
        return await client.messages.clear_queue(waiting.replica_id, waiting.chat_id)

    show(common, with_client(common, work))
