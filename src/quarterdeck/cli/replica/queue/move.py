"""`qd replica queue move`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.replica.queue.waiting import chat_option, read_waiting, show
from quarterdeck.cli.running import with_client
from quarterdeck.wire.messages import QueuedMessage

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="move")
@chat_option
@replica_argument
@click.argument("message")
@click.argument("place", type=click.IntRange(1))
@common_options
def command(common: Common, replica: str, message: str, place: int, chat: str | None) -> None:
    """Give a message another place, from 1; one behind the end is the last. Print what waits."""

    async def work(client: "Client") -> list[QueuedMessage]:
        waiting = await read_waiting(client, replica, chat)
        moved = waiting.find(message).id
        return await client.messages.reorder_queue(
            waiting.replica_id, waiting.chat_id, moved, place
        )

    show(common, with_client(common, work))
