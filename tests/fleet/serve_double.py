"""A whole service over doubled sandboxes in a process of its own, to be killed by tests."""

import asyncio
import sys
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.fleet.doubles import DoubleDriver

AGENTS = [Agent(id="builtin", name="Built-in", available=True)]


async def main(root: Path, database_url: str | None = None) -> None:
    home = Home(root)
    async with open_service(
        home, DoubleDriver(home.workspaces), lambda: AGENTS, database_url
    ) as context:
        await serve(
            build_service(context),
            [UnixListener(home.socket)],
            lambda _: print("ready", flush=True),
        )


asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
