"""`qd search`: search in the chats of all replicas."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.clients import with_client
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import local_time, print_json, print_message, print_text, safe_line
from quarterdeck.wire.search import DEFAULT_HITS, MOST_HITS, SearchHit, SearchHits

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="search")
@click.option(
    "--limit",
    metavar="COUNT",
    type=click.IntRange(1, MOST_HITS),
    default=DEFAULT_HITS,
    show_default=True,
    help="Print at most this many.",
)
@click.argument("words", metavar="WORDS...", nargs=-1, required=True)
@common_options
def search(common: Common, words: tuple[str, ...], limit: int) -> None:
    """Search in the chats of all replicas, also of sleeping and archived ones; newest first.

    Finds messages and titles of tool calls that have all of the words. A phrase is one argument with
    blanks. The last word may be the beginning of a longer one. A turn is found once it has ended.
    """
    query = " ".join(f'"{word}"' if " " in word else word for word in words)

    async def work(client: "Client") -> SearchHits:
        return await client.history.search(query, limit=limit)

    found = with_client(common, work)
    if common.json:
        return print_json(found)
    for hit in found.hits:
        print_text(_line(hit))
    if not found.hits:
        print_message("Nothing found. A turn is searched once it has ended.")
    elif found.next_cursor is not None:
        print_message(f"There is more; these are the newest {len(found.hits)}. See --limit.")


def _line(hit: SearchHit) -> str:
    title = f" ({safe_line(hit.chat_title)})" if hit.chat_title else ""
    where = f"{safe_line(hit.workspace_name)}{title}"
    return f"{where}  {local_time(hit.ts)}  {hit.role}: {safe_line(hit.excerpt)}"
