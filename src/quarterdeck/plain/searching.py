"""Search in the chats of all replicas, and open one that was found."""

from collections.abc import Iterator

from quarterdeck.client.errors import ClientError
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.wire.search import SearchHit

SPEAKERS = {"user": "you", "agent": "agent", "tool": "tool"}


async def search(session: Session, _: str) -> None:
    """Find words in the chats of all services, the newest first, and open the chat of a number."""
    services = session.services
    with session.dialog():
        words = await session.ask("Words to find; a phrase in quotation marks:")
        if not words:
            raise CanceledError
        hits: list[SearchHit] = []
        for store in services.stores:
            try:
                hits += await store.commands.search(words)
            except ClientError as error:
                if not services.several:
                    raise
                session.say(one_line(f"{store.connection.name}: {error} {error.next_step}"))
        hits.sort(key=lambda hit: hit.ts, reverse=True)
        session.say(*_lines(session, hits))
        if not hits:
            return
        number = await session.ask_number("Open which (Enter for none):", len(hits))
    replica = services.get(hits[number - 1].workspace_id) if number else None
    if number and replica is None:
        session.say("It was deleted.")
    elif number and replica is not None:
        await session.open(replica, hits[number - 1].chat_id)


def _lines(session: Session, hits: list[SearchHit]) -> Iterator[str]:
    if not hits:
        yield "Nothing found. A turn is searched once it has ended."
    for number, hit in enumerate(hits, 1):
        state = session.services.get(hit.workspace_id)
        name = name_line(state.full_name if state else hit.workspace_name)
        yield f"{number}. {name}, {SPEAKERS[hit.role]}: {one_line(hit.excerpt)}"
