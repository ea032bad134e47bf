"""`qd replica queue ls`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.replica.queue.waiting import chat_option, read_waiting, show
from quarterdeck.cli.running import with_client
from quarterdeck.wire.messages import QueuedMessage

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="ls")
@chat_option
@replica_argument
@common_options
def command(common: Common, replica: str, chat: str | None) -> None:
    """List what waits for the running turn, first to run first."""

    async def work(client: "Client") -> list[QueuedMessage]:
        return (await read_waiting(client, replica, chat)).messages

    show(common, with_client(common, work))
