"""Runs the model server as a process: prints its address, and ends with its standard input."""

import asyncio
import sys

from tests.real_agents.model.responses import Responses
from tests.real_agents.model.server import Model


async def main() -> None:
    async with Model.running(Responses()) as model:
        print(model.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
