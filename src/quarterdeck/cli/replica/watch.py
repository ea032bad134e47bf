"""`qd replica watch`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import say
from quarterdeck.cli.replica.find import find_chat, find_replica
from quarterdeck.cli.replica.follow import received
from quarterdeck.cli.replica.show_events import printing, put_event
from quarterdeck.cli.running import with_client
from quarterdeck.wire.events import EngineStatusChanged, Event, payload_of

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="watch")
@click.option("--chat", metavar="CHAT", help="Another chat than the first: its id or title.")
@click.option(
    "--last",
    metavar="N",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    help="Begin with the last N events of the chat.",
)
@click.option("--once", is_flag=True, help="Print what there is and end.")
@click.option(
    "--after",
    metavar="INDEX",
    type=click.IntRange(0),
    help="With --json: begin after this index of the log; 0 is everything.",
)
@replica_argument
@common_options
def command(
    common: Common, replica: str, chat: str | None, last: int, once: bool, after: int | None
) -> None:
    """Print the transcript of a chat, and go on as it streams, until Ctrl+C.

    With --json every event of the replica is a line: its envelope and `index`, its place in the
    log; without --after only what is new.
    """

    async def watch(client: "Client") -> None:
        replica_id = await find_replica(client, replica)
        if common.json:
            await _watch_events(client, replica_id, after, once)
        else:
            await _watch_chat(client, replica_id, chat, last, once)

    with_client(common, watch)


async def _watch_events(client: "Client", replica_id: UUID, after: int | None, once: bool) -> None:
    newest = (await client.replicas.get(replica_id)).log_index
    start = newest if after is None else after
    if once and (newest is None or start is None or start >= newest):
        return
    events = received(client, replica_id, start)
    try:
        async for item in events:
            if item is None:
                continue
            put_event(item)
            if once and item.index is not None and newest is not None and item.index >= newest:
                return
    finally:
        await events.aclose()


async def _watch_chat(
    client: "Client", replica_id: UUID, wanted: str | None, last: int, once: bool
) -> None:
    detail = await client.replicas.get(replica_id)
    chat = find_chat(detail, wanted)
    with printing(chat.id) as printer:
        after = detail.log_index
        if last:
            page = await client.history.page(replica_id, chat_id=chat.id, limit=last)
            printer.take_page(page.events)
            after = page.log_index if page.log_index is not None else after
        if once:
            return
        events = received(client, replica_id, after)
        try:
            async for item in events:
                if item is None:
                    say("qd: Some of the transcript may be missing here.")
                    continue
                _tell_status(item.event)
                printer.take(item.event)
        finally:
            await events.aclose()


def _tell_status(event: Event) -> None:
    match payload_of(event):
        case EngineStatusChanged(workspace_status=str() as status, error=error):
            say(f"qd: The replica is {status}{f': {error}' if error else ''}.")
        case _:
            pass
