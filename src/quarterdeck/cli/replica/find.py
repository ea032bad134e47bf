"""From what a person typed to the replica and chat that are meant."""

from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.cli.errors import AmbiguousName, NotDone, UsageFault
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.replicas import Replica, ReplicaDetail

if TYPE_CHECKING:
    from quarterdeck.client import Client

SHOWN = 5
"""Candidates of an ambiguous prefix that are named."""


async def find_replica(client: "Client", wanted: str) -> UUID:
    """The id of the replica with this name, this id, or the only one with this prefix.

    Raises:
        NotDone: there is none.
        AmbiguousName: a prefix of several.
    """
    try:
        return UUID(wanted)
    except ValueError:
        pass
    known = [replica async for replica in client.replicas.all()]
    for replica in known:
        if replica.name == wanted:
            return replica.id
    return _only(wanted, [replica for replica in known if _begins(replica, wanted)]).id


def _begins(replica: Replica, wanted: str) -> bool:
    return replica.name.startswith(wanted) or str(replica.id).startswith(wanted.lower())


def _only(wanted: str, found: list[Replica]) -> Replica:
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotDone(f"There is no replica {wanted!r}.", "See them with: qd replica ls.")
    names = ", ".join(replica.name for replica in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise AmbiguousName(f"{wanted!r} fits {names}{more}.", "Give the whole name.")


def find_chat(replica: ReplicaDetail, wanted: str | None) -> Chat:
    """The chat with this id, prefix of an id, or title; the first chat by default.

    Raises:
        NotDone: there is none.
        UsageFault: a prefix of several.
    """
    if wanted is None:
        if not replica.chats:
            raise NotDone(f"{replica.name} has no chat.", "Send it a message first.")
        return min(replica.chats, key=lambda chat: chat.created_at)
    exact = [chat for chat in replica.chats if wanted in {str(chat.id), chat.title}]
    begun = [chat for chat in replica.chats if str(chat.id).startswith(wanted.lower())]
    found = exact or begun
    if not found:
        raise NotDone(f"{replica.name} has no chat {wanted!r}.", "See them with: qd replica show.")
    if len(found) > 1:
        raise UsageFault(f"{wanted!r} fits {len(found)} chats.", "Give the whole id.")
    return found[0]
