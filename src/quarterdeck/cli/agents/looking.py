"""The agents as the service tells them, or as this machine has them where no service runs."""

import asyncio

from quarterdeck.cli.agents_here import agents_here, own_agents
from quarterdeck.cli.background import answers
from quarterdeck.cli.output import say
from quarterdeck.cli.target import Target, find_target
from quarterdeck.wire.agents import Agent


async def find_agents(profile: str | None) -> list[Agent]:
    """What there is. Says so when no service could be asked.

    Raises:
        ConfigFault: the configuration file is wrong.
        ClientError: a service could not be asked.
    """
    target = find_target(profile)
    if not target.embedded or await _can_be_asked(target):
        async with target.client() as client:
            return await client.agents.list()
    say("No service runs here; this is what this machine has.")
    return await asyncio.to_thread(agents_here, target.home, own_agents())


async def _can_be_asked(target: Target) -> bool:
    return target.current_key() is not None and await answers(target.home)
