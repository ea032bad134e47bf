"""`GET /v1/agents` (INTERFACE 4)."""

import asyncio

from fastapi import APIRouter

from quarterdeck.service.context import Context
from quarterdeck.wire.agents import AgentList

router = APIRouter(tags=["agents"])


@router.get("/v1/agents")
async def list_agents(context: Context) -> AgentList:
    """The agents that can be asked for, usable or not."""
    # Finding out looks for programs on the disk.
    return AgentList(agents=await asyncio.to_thread(context.agents))
