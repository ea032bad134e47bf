"""The place of a message that was taken out of its queue, edited and sent again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import Conflict, NotFound

if TYPE_CHECKING:
    from quarterdeck.client.messages import Messages


@dataclass(frozen=True)
class Place:
    """Where a message stood: in the service's queue, or among those that have not left."""

    behind: tuple[UUID, ...] | None = None
    """The messages that went before it in the queue."""
    moment: datetime | None = None
    """When it was written, by which those that have not left are in order."""


def place_behind(queue: Sequence[UUID], before: Collection[UUID]) -> int:
    """The first place, from one, that has none of those before it behind it."""
    return 1 + max((at for at, id in enumerate(queue, 1) if id in before), default=0)


async def go_behind(
    messages: "Messages", replica_id: UUID, chat_id: UUID, message_id: UUID, before: list[UUID]
) -> None:
    """Moves a message right behind those before it, as far as it and they still wait.

    Raises:
        ClientError: refused or unreachable; the message is where it was.
    """
    queue = [entry.id for entry in (await messages.queue(replica_id, chat_id)).queue]
    if message_id not in queue:
        return
    place = place_behind([id for id in queue if id != message_id], before)
    if place == queue.index(message_id) + 1:
        return
    try:
        await messages.reorder_queue(replica_id, chat_id, message_id, place)
    except (Conflict, NotFound):
        # It has started meanwhile, so nothing is before it any more.
        return
