"""A service in a process of its own, to be killed by tests; containers are shared with others.

Arguments: its home, the database, the directory of the containers or the address of a container
engine (with `swarm+` before it, of a Swarm's manager), where containers dial to, and the address to listen at.
"""

import asyncio
import sys
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.containers import HomeAddress
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.swarm import SwarmContainers
from tests.containers.daemons import IMAGE
from tests.containers.deck import Deck
from tests.containers.processes import SharedContainers


async def main(home: str, database: str, root: str, url: str, host: str = "127.0.0.1") -> None:
    containers = SharedContainers(Path(root))
    address = root.removeprefix("swarm+")
    if address.startswith("unix:"):
        kind = DockerContainers if address == root else SwarmContainers
        containers = kind(Home(Path(home)), IMAGE, address)
        await containers.open()
    deck = Deck(Home(Path(home)), containers, host, database)
    deck.way = HomeAddress(url)
    await deck.start()
    print(f"{deck.port}", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
