"""MCP servers of an environment (INTERFACE 7)."""

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.environments.mcps import (
    add_mcp,
    change_mcp,
    list_mcps,
    remove_mcp,
)
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.environment_mcps import (
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
    """The environment's own ones, without what it inherits."""
    found = await list_mcps(context, caller, environment)
    return EnvironmentMcpList(environment_mcps=found)


@router.post("/mcps", status_code=201)
async def add(
    environment: EnvironmentRef, body: CreateMcp, context: Context, caller: CallerDep
) -> EnvironmentMcpAnswer:
    """Adds one."""
    made = await add_mcp(context, caller, environment, body)
    return EnvironmentMcpAnswer(environment_mcp=made)


@router.patch("/mcps/{id}")
async def change(
    environment: EnvironmentRef, id: GivenId, body: ChangeMcp, context: Context, caller: CallerDep
) -> EnvironmentMcpAnswer:
    """Changes what is given of one."""
    changed = await change_mcp(context, caller, environment, str(id), body)
    return EnvironmentMcpAnswer(environment_mcp=changed)


@router.delete("/mcps/{id}")
async def remove(
    environment: EnvironmentRef, id: GivenId, context: Context, caller: CallerDep
) -> Success:
    """Removes one."""
    await remove_mcp(context, caller, environment, str(id))
    return Success()
