"""Which agent a request means."""

import asyncio

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.records.credentials import has_key_for
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.errors import ErrorCode


async def usable_agent(
    context: ServiceContext, organization_id: str, agent_id: str, field: str
) -> str:
    """The id of an agent that can be used now; `field` is what named it.

    An agent that is known but cannot be used is refused as well: what it needs can be seen to
    before there is a replica that waits for it. One that only lacks a key may be used where the
    organization has one for it, as a credential or as a variable of an environment.

    Raises:
        ApiError: INVALID_REQUEST, with the known agents or the reason.
    """
    agents = await asyncio.to_thread(context.agents)  # looks for programs on the disk
    found = next((agent for agent in agents if agent.id == agent_id), None)
    if found is None:
        known = ", ".join(agent.id for agent in agents)
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "There is no such agent.", f"{field}: one of {known}"
        )
    if not found.available and not await _has_key(context, organization_id, found):
        reason = found.reason or "it is not set up"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{found.name} cannot be used: {reason}", field)
    return found.id


async def _has_key(context: ServiceContext, organization_id: str, agent: Agent) -> bool:
    if not agent.missing_keys:
        return False
    return await context.database.read(
        lambda c: has_key_for(c, organization_id, agent.id, agent.missing_keys)
    )
