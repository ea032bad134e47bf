"""`qd replica respond`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.replica.find import find_chat, find_replica
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="respond")
@click.option("--chat", metavar="CHAT", help="Another chat than the first: its id or title.")
@click.option("--option", metavar="ID", help="Answer with one of the question's options.")
@click.option("--text", help="Answer in words.")
@replica_argument
@click.argument("request")
@common_options
def command(
    common: Common,
    replica: str,
    request: str,
    chat: str | None,
    option: str | None,
    text: str | None,
) -> None:
    """Answer a question of the agent. REQUEST is the question's id, as `qd replica history --json`
    shows it; one that is no longer awaited is refused."""
    if (option is None) == (text is None):
        raise UsageFault("Give --option or --text.")

    async def work(client: "Client") -> None:
        replica_id = await find_replica(client, replica)
        found = find_chat(await client.replicas.get(replica_id), chat)
        await client.chats.respond(replica_id, found.id, request, option_id=option, text=text)

    with_client(common, work)
    if common.json:
        put_json({"success": True})
    say("Answered.")
