"""`qd replica send`."""

import sys
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.replica.find import find_chat, find_replica
from quarterdeck.cli.replica.follow import Following, follow_turn
from quarterdeck.cli.replica.show_events import showing
from quarterdeck.cli.running import with_client
from quarterdeck.wire.messages import Delivery, MessageAccepted, SendMessage

if TYPE_CHECKING:
    from quarterdeck.client import Client

STDIN = "-"


@click.command(name="send")
@click.option("--chat", metavar="CHAT", help="Another chat than the first: its id or title.")
@click.option("--agent", metavar="AGENT", help="Its chat; made when there is none yet.")
@click.option("--model", metavar="MODEL", help="Its model; default: the chat's last.")
@click.option("--plan", is_flag=True, help="Ask for a plan instead of changes.")
@click.option("--wait", is_flag=True, help="Print the turn and wait for its end.")
@replica_argument
@click.argument("message")
@common_options
def command(
    common: Common,
    replica: str,
    message: str,
    chat: str | None,
    agent: str | None,
    model: str | None,
    plan: bool,
    wait: bool,
) -> None:
    """Send a message to the agent; MESSAGE - reads it from stdin.

    A busy chat queues it, a sleeping replica is woken. With --wait the exit code is 1 when the turn
    fails or is interrupted; with --json the first line is the answer, each event follows as a line.
    """
    text = sys.stdin.read() if message == STDIN else message
    if not text.strip():
        raise UsageFault("The message is empty.")

    async def work(client: "Client") -> None:
        replica_id = await find_replica(client, replica)
        body = SendMessage(message=text, coding_agent=agent, model=model, plan_mode=plan or None)
        await _send(client, common, replica_id, body, chat, wait)

    with_client(common, work)


async def _send(
    client: "Client",
    common: Common,
    replica_id: UUID,
    body: SendMessage,
    chat: str | None,
    wait: bool,
) -> None:
    detail = await client.replicas.get(replica_id)
    if chat is not None:
        body.chat_id = find_chat(detail, chat).id
    accepted = await client.messages.send(replica_id, body)
    if common.json:
        put_json(accepted)
    say(_told(accepted))
    if not wait:
        return
    following = Following(replica_id, accepted.chat_id, accepted.message_id, detail.log_index)
    with showing(common, accepted.chat_id) as show:
        await follow_turn(client, following, show)


def _told(accepted: MessageAccepted) -> str:
    match accepted.status:
        case Delivery.QUEUED:
            return f"Queued behind the running turn, place {accepted.position}."
        case Delivery.WAKING:
            return "Accepted; it is delivered as soon as the replica is active."
        case _:
            return "Sent."
