"""Routes of the MCP servers of an environment."""

from quarterdeck.service.context import Context
from quarterdeck.service.environments.parts import MCPS, add_mcp, change_mcp
from quarterdeck.service.environments.routes import EnvironmentRef, environment_router
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_parts import (
    ChangeMcp,
    CreateMcp,
    EnvironmentMcpAnswer,
    EnvironmentMcpList,
)

router = environment_router()


@router.get("/mcps")
async def list_all(
    environment: EnvironmentRef, context: Context, caller: CallerDep
) -> EnvironmentMcpList:
    """Return the environment's own ones, without what it inherits."""
    mcps = await MCPS.list_own(context, caller, environment)
    return EnvironmentMcpList(environment_mcps=mcps)


@router.post("/mcps", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateMcp, context: Context, caller: CallerDep
) -> EnvironmentMcpAnswer:
    """Add one."""
    mcp = await add_mcp(context, caller, environment, body)
    return EnvironmentMcpAnswer(environment_mcp=mcp)


@router.patch("/mcps/{id}")
async def change(
    environment: EnvironmentRef, id: GivenId, body: ChangeMcp, context: Context, caller: CallerDep
) -> EnvironmentMcpAnswer:
    """Edit an environment."""
    changed = await change_mcp(context, caller, environment, str(id), body)
    return EnvironmentMcpAnswer(environment_mcp=changed)


@router.delete("/mcps/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Remove one."""
    await MCPS.remove(context, caller, environment, str(id))
    return Success()
