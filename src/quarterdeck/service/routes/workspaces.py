"""A replica's life on request: sleep, archive, wake, status (INTERFACE 3)."""

from fastapi import Request

from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.forwarding.middleware import AWAY
from quarterdeck.service.replicas.status import read_status
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.base import Success
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import Waking, WorkspaceStatusAnswer

_replica = replica_router("workspaces")


@_replica.post("/sleep")
async def sleep(fleet: FleetDep, workspace: Workspace) -> Success:
    """Stops the engine and keeps the files; answered when it sleeps."""
    await fleet.of(workspace.id).sleep()
    return Success()


@_replica.post("/archive")
async def archive(fleet: FleetDep, workspace: Workspace) -> Success:
    """Packs the files away and keeps the history; answered when that is done.

    What wakes it meanwhile comes first: then it is a conflict.
    """
    if not await fleet.of(workspace.id).archive():
        raise ApiError(
            ErrorCode.CONFLICT, "The replica was not archived: it was woken or deleted meanwhile."
        )
    return Success()


@_replica.post("/wake", status_code=202)
async def wake(fleet: FleetDep, workspace: Workspace) -> Waking:
    """Makes it prepare again; also a way out of `error`. Changes nothing on an active one."""
    await fleet.of(workspace.id).wake()
    return Waking()


@_replica.get("/status", response_model_exclude_none=True)
async def status(
    request: Request, context: Context, fleet: FleetDep, workspace: Workspace
) -> WorkspaceStatusAnswer:
    """The state and the engine's pulse."""
    away = request.scope.get("state", {}).get(AWAY)
    return await read_status(context, fleet, workspace, away)


router = both_families(_replica)
