"""Warm pools (INTERFACE 7)."""

from fastapi import APIRouter

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.routes.environment_paths import EnvironmentRef, environment_router
from quarterdeck.service.warm_pools.managing import look_into, switch_pool
from quarterdeck.wire.base import GivenId
from quarterdeck.wire.warm_pools import ChangeWarmPool, PooledWorkspaceList, WarmPoolAnswer

_environment = environment_router()
_pools = APIRouter(tags=["environments"])


@_environment.put("/warm-pools")
async def switch(
    environment: EnvironmentRef,
    body: ChangeWarmPool,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
) -> WarmPoolAnswer:
    """Switches the environment's pool on or off; its workspaces come, or go, by and by."""
    pool = await switch_pool(context, fleet, caller, environment, body.enabled)
    return WarmPoolAnswer(warm_pool=pool)


@_pools.get("/v1/warm-pools/{id}/workspaces")
async def list_workspaces(id: GivenId, context: Context, caller: CallerDep) -> PooledWorkspaceList:
    """What waits in a pool."""
    return PooledWorkspaceList(workspaces=await look_into(context, caller, str(id)))


router = APIRouter()
router.include_router(_environment)
router.include_router(_pools)
