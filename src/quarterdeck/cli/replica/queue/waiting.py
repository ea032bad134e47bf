"""What the verbs on the queue share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import put_json, safe_line, table
from quarterdeck.cli.replica.find import find_chat, find_replica
from quarterdeck.cli.words import ago
from quarterdeck.wire.messages import QueuedMessage

if TYPE_CHECKING:
    from quarterdeck.client import Client

TEXT_WIDTH = 60
SHORTEST_PREFIX = 4
"""A shorter number is a place: one behind the end must not be taken for an id."""

chat_option = click.option(
    "--chat", metavar="CHAT", help="Another chat than the first: its id or title."
)


@dataclass(frozen=True)
class Waiting:
    """A chat's queue as it was read."""

    replica_id: UUID
    chat_id: UUID
    messages: list[QueuedMessage]

    def find(self, wanted: str) -> QueuedMessage:
        """The message at a place, or with an id or a prefix of one.

        Raises:
            NotDone: there is none.
            UsageFault: a prefix of several.
        """
        if wanted.isdecimal() and len(wanted) < SHORTEST_PREFIX:
            found = self.messages[int(wanted) - 1 : int(wanted)] if int(wanted) else []
        elif len(wanted) < SHORTEST_PREFIX:
            found = []
        else:
            found = [one for one in self.messages if str(one.id).startswith(wanted.lower())]
        if not found:
            raise NotDone(f"No message {wanted!r} waits.", "See them with: qd replica queue ls.")
        if len(found) > 1:
            raise UsageFault(f"{wanted!r} fits {len(found)} messages.", "Give the whole id.")
        return found[0]


async def read_waiting(client: "Client", replica: str, chat: str | None) -> Waiting:
    """The queue of a replica's chat."""
    replica_id = await find_replica(client, replica)
    found = find_chat(await client.replicas.get(replica_id), chat)
    queue = await client.messages.queue(replica_id, found.id)
    return Waiting(replica_id, found.id, queue.queue)


def show(common: Common, messages: list[QueuedMessage]) -> None:
    """Prints a queue."""
    if common.json:
        put_json({"queue": [one.model_dump(mode="json") for one in messages]})
        return
    rows = [
        [str(place), str(one.id)[:8], ago(one.queued_at), _short(one.message)]
        for place, one in enumerate(messages, 1)
    ]
    table(["PLACE", "ID", "AGE", "MESSAGE"], rows)


def _short(text: str) -> str:
    line = safe_line(text)
    return line if len(line) <= TEXT_WIDTH else f"{line[: TEXT_WIDTH - 1]}…"
