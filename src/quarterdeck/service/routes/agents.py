"""Agents and their models (INTERFACE 4)."""

import asyncio

from fastapi import APIRouter

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.conversation.agents import agents_for
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.agents import AgentList, AgentModels
from quarterdeck.wire.errors import ErrorCode

router = APIRouter(tags=["agents"])


@router.get("/v1/agents")
async def list_agents(context: Context, caller: CallerDep) -> AgentList:
    """The agents that can be asked for, usable or not, and what is to be done where not."""
    return AgentList(agents=await agents_for(context, caller.organization_id, caller.user_id))


@router.get("/v1/agents/{agent}/models")
async def list_models(agent: str, context: Context) -> AgentModels:
    """The models that an agent is known to offer; others may be asked for as well."""
    found = [one for one in await asyncio.to_thread(context.agents) if one.id == agent]
    if not found:
        raise ApiError(ErrorCode.NOT_FOUND, "No agent has this id.", f"agent: {agent}")
    return AgentModels(models=found[0].models, default_model=found[0].default_model)
