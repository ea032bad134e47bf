"""A service's schedules and runs as a process, whose clock stands in a file.

`python -m tests.automations.clocked HOME CLOCK [DATABASE_URL]`. Workspaces are stored and never get
beyond being prepared, so hundreds cost nothing.
"""

import asyncio
import sys
from datetime import datetime
from pathlib import Path

from quarterdeck.local.home import Home
from quarterdeck.service.automations.runner import RunnerSettings
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.fleet.doubles import DoubleDriver

AGENTS = [Agent(id="builtin", name="Built-in", available=True)]
MANY = 100_000
LOOK_SECONDS = 0.02


async def run(home: Home, clock: Path, database_url: str | None) -> None:
    """Works until the process is killed."""
    driver = DoubleDriver(home.workspaces)
    driver.gate = asyncio.Event()
    async with open_service(home, driver, lambda: AGENTS, database_url) as context:
        context.clock = lambda: datetime.fromisoformat(clock.read_text())
        limits = FleetSettings(active_limit=MANY), RunnerSettings(longest_wait=LOOK_SECONDS)
        service = build_service(context, *limits)
        await service.fleet.start()
        service.automations.start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    given = [*sys.argv[1:], ""]
    asyncio.run(run(Home(Path(given[0])), Path(given[1]), given[2] or None))
