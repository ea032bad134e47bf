"""Which agent a request means."""

import asyncio

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode


async def usable_agent(context: ServiceContext, agent_id: str, field: str) -> str:
    """The id of an agent that can be used now; `field` is what named it.

    An agent that is known but cannot be used is refused as well: what it needs can be seen to
    before there is a replica that waits for it.

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
    if not found.available:
        reason = found.reason or "it is not set up"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{found.name} cannot be used: {reason}", field)
    return found.id
