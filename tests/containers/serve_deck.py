"""A service in a process of its own, to be killed by tests; containers are shared with others.

Arguments: its home, the database, the directory of the containers, and where these dial to.
"""

import asyncio
import sys
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.containers import HomeAddress
from tests.containers.deck import Deck
from tests.containers.processes import SharedContainers


async def main(home: str, database: str, root: str, url: str) -> None:
    deck = Deck(Home(Path(home)), SharedContainers(Path(root)), "127.0.0.1", database)
    deck.way = HomeAddress(url)
    await deck.start()
    print(deck.port, flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
