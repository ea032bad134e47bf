"""Which coding agents can be used, and what the others need."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

from quarterdeck.cli.agents_here import agents_here, own_agents
from quarterdeck.cli.background import answers
from quarterdeck.cli.checks.finding import Finding, fail, ok, warn
from quarterdeck.cli.errors import ConfigFault
from quarterdeck.cli.target import Target
from quarterdeck.wire.agents import Agent


async def check_agents(target: Target) -> AsyncGenerator[Finding]:
    """One line for each agent of this machine; the service knows which have a key."""
    try:
        own = own_agents()
    except ConfigFault as e:
        yield fail("agents", e.message, e.next_step)
        return
    told = await _told(target)
    for here in await asyncio.to_thread(agents_here, target.home, own):
        yield _finding(told.get(here.id, here))


async def _told(target: Target) -> Mapping[str, Agent]:
    """What the embedded service says; nothing when there is none to be asked."""
    from quarterdeck.client.errors import ClientError

    if not target.embedded or target.current_key() is None or not await answers(target.home):
        return {}
    try:
        async with target.client() as client:
            return {agent.id: agent for agent in await client.agents.list()}
    except ClientError:
        return {}  # what is wrong with the service is told where it is looked at


def _finding(agent: Agent) -> Finding:
    version = f", version {agent.version}" if agent.version else ""
    if agent.available:
        return ok(f"agent {agent.id}", f"ready{version}")
    if agent.installed:
        return warn(f"agent {agent.id}", f"installed{version}", agent.reason)
    return warn(f"agent {agent.id}", agent.reason or "not available")
