"""A service over doubled sandboxes with a source host, in a process of its own, to be killed."""

import asyncio
import sys
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.service.hosts.settings import HostSettings, HostsSettings
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.checks.source_host import TOKEN_A
from tests.fleet.doubles import DoubleDriver

AGENTS = [Agent(id="builtin", name="Built-in", available=True)]


async def main(root: Path, api_url: str) -> None:
    home = Home(root)
    hosts = HostsSettings(HostSettings(api_url=api_url, token=TOKEN_A))
    driver = DoubleDriver(home.workspaces)
    async with open_service(home, driver, lambda: AGENTS, hosts=hosts) as context:
        await serve(
            build_service(context),
            [UnixListener(home.socket)],
            lambda _: print("ready", flush=True),
        )


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
