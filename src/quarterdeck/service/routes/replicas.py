"""Replicas: make, list, read, remove (specification, operation 4; INTERFACE 3)."""

from typing import Annotated

from fastapi import APIRouter, Query

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.identity.doors import admits
from quarterdeck.service.records.workspaces import WorkspaceFilter
from quarterdeck.service.replicas.creating import create_replica
from quarterdeck.service.replicas.describing import describe, diffs_of, list_replicas
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.base import GivenId, GivenWhole, Success
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import (
    CreateReplica,
    ReplicaAnswer,
    ReplicaList,
    ReplicaSource,
    WorkspaceStatus,
)

INCLUDES = ("environment", "diffs")

_all = APIRouter(tags=["replicas"])
_replica = replica_router("replicas")


@_all.post("", status_code=201)
@admits(tokens=False)
async def create(
    body: CreateReplica, context: Context, fleet: FleetDep, caller: CallerDep
) -> ReplicaAnswer:
    """Makes a replica; answered at once, while it is being prepared."""
    made = await create_replica(context, fleet, caller, body)
    return ReplicaAnswer(replica=await describe(context, made))


@_all.get("")
async def list_all(
    context: Context,
    caller: CallerDep,
    page: Annotated[GivenWhole, Query(ge=1, le=1_000_000)] = 1,
    limit: Annotated[GivenWhole, Query(ge=1, le=100)] = 10,
    status: WorkspaceStatus | None = None,
    source: ReplicaSource | None = None,
    environment_id: GivenId | None = None,
) -> ReplicaList:
    """A page of the organization's replicas, newest first."""
    environment = None if environment_id is None else str(environment_id)
    which = WorkspaceFilter(caller.organization_id, status, source, environment)
    return await list_replicas(context, which, page, limit)


@_replica.get("")
async def read(
    context: Context, fleet: FleetDep, workspace: Workspace, include: str | None = None
) -> ReplicaAnswer:
    """One replica, in every state; never wakes it."""
    wanted = [part.strip() for part in (include or "").split(",") if part.strip()]
    unknown = [part for part in wanted if part not in INCLUDES]
    if unknown:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "There is nothing to include by this name.",
            f"include: {', '.join(unknown)}; known are {', '.join(INCLUDES)}",
        )
    diffs = await diffs_of(fleet, workspace) if "diffs" in wanted else {}
    return ReplicaAnswer(replica=await describe(context, workspace.id, wanted, diffs))


@_replica.delete("")
async def remove(fleet: FleetDep, workspace: Workspace) -> Success:
    """Stops everything in it and removes its files."""
    await fleet.delete(workspace.id)
    return Success()


router = both_families(_replica)
for prefix in ("/v1/replica", "/v1/workspaces"):
    router.include_router(_all, prefix=prefix)
