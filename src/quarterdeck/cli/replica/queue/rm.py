"""`qd replica queue rm`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.replica.queue.waiting import chat_option, read_waiting, show
from quarterdeck.cli.running import with_client
from quarterdeck.wire.messages import QueuedMessage

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="rm")
@chat_option
@replica_argument
@click.argument("messages", metavar="MESSAGE...", nargs=-1, required=True)
@common_options
def command(common: Common, replica: str, messages: tuple[str, ...], chat: str | None) -> None:
    """Cancel messages that wait; print what waits then. A message that has started is refused."""

    async def work(client: "Client") -> list[QueuedMessage]:
        waiting = await read_waiting(client, replica, chat)
        left = waiting.messages
        for message in dict.fromkeys(waiting.find(one).id for one in messages):
            left = await client.messages.remove_queued(waiting.replica_id, waiting.chat_id, message)
        return left

    show(common, with_client(common, work))
