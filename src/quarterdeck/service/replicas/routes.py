"""Routes of replicas."""

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.description import fails, stream_of
from quarterdeck.service.environments.setup import hook_logs_of
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.forwarding import AWAY
from quarterdeck.service.identity.service import AdminDep, CallerDep, require_admin
from quarterdeck.service.replicas.create import create_replica, fork_replica, upload_uncommitted
from quarterdeck.service.replicas.describe import describe, diffs_of, list_replicas, read_status
from quarterdeck.service.replicas.rows import WorkspaceFilter
from quarterdeck.service.routing import admits, both_families, replica_router
from quarterdeck.service.streams import StreamResponse
from quarterdeck.wire.base import DIGITS, GivenId, Success
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import (
    INCLUDES,
    CreateReplica,
    ForkReplica,
    ReplicaAnswer,
    ReplicaList,
    ReplicaSource,
    UncommittedAnswer,
    Waking,
    WorkspaceStatus,
    WorkspaceStatusAnswer,
)
from quarterdeck.wire.setup import HookLogs
from quarterdeck.wire.terminals import EXEC_OUTPUT_LIMIT, ExecRequest, ExecResponse

replicas_router = APIRouter(tags=["replicas"])
_all = APIRouter(tags=["replicas"])
_replicas_replica = replica_router("replicas")
_BUNDLE = {
    "required": True,
    "description": "A git bundle, version 2, of at most 32 MB.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


@_all.post("", status_code=201)
@admits(tokens=False)
async def create(
    body: CreateReplica, context: Context, fleet: FleetDep, caller: CallerDep
) -> ReplicaAnswer:
    """Create a replica; answered immediately, while it is being prepared."""
    workspace_id = await create_replica(context, fleet, caller, body)
    return ReplicaAnswer(replica=await describe(context, workspace_id))


@replicas_router.post(
    "/v1/replica/uncommitted",
    status_code=201,
    responses=fails(413),
    openapi_extra={"requestBody": _BUNDLE},
)
@admits(tokens=False)
async def upload(context: Context, caller: CallerDep, request: Request) -> UncommittedAnswer:
    """Upload uncommitted changes for the replica that is created next with `config.uncommitted`.

    The body is a git bundle of one commit that holds the changes. Its parent, the bundle's only
    prerequisite, is the commit that they were made on.
    """
    kept = await upload_uncommitted(context, caller, await request.body())
    return UncommittedAnswer(uncommitted=kept)


@_replicas_replica.post("/fork", status_code=201)
async def fork(
    body: ForkReplica, context: Context, fleet: FleetDep, caller: CallerDep, workspace: Workspace
) -> ReplicaAnswer:
    """Create a replica with the same files, branches and uncommitted changes.

    The newest chat goes along where its agent can go on with it, else as a transcript file.
    """
    workspace_id = await fork_replica(context, fleet, caller, workspace, body)
    return ReplicaAnswer(replica=await describe(context, workspace_id))


@_all.get("")
async def list_all(
    context: Context,
    caller: CallerDep,
    page: Annotated[int, Query(ge=1, le=1_000_000), DIGITS] = 1,
    limit: Annotated[int, Query(ge=1, le=100), DIGITS] = 10,
    status: WorkspaceStatus | None = None,
    source: ReplicaSource | None = None,
    environment_id: GivenId | None = None,
) -> ReplicaList:
    """Return a page of the organization's replicas, newest first."""
    environment = None if environment_id is None else str(environment_id)
    filter = WorkspaceFilter(caller.organization_id, status, source, environment)
    return await list_replicas(context, filter, page, limit)


@_replicas_replica.get("")
async def read(
    context: Context, fleet: FleetDep, workspace: Workspace, include: str | None = None
) -> ReplicaAnswer:
    """Return one replica, in every state; never wakes it."""
    wanted = [part.strip() for part in (include or "").split(",") if part.strip()]
    unknown = [part for part in wanted if part not in INCLUDES]
    if unknown:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Unknown include.",
            f"include: {', '.join(unknown)}; known are {', '.join(INCLUDES)}",
        )
    diffs = await diffs_of(fleet, workspace) if "diffs" in wanted else {}
    return ReplicaAnswer(replica=await describe(context, workspace.id, wanted, diffs))


@_replicas_replica.delete("", responses=fails(403))
async def remove(fleet: FleetDep, caller: CallerDep, workspace: Workspace) -> Success:
    """Delete a replica: stop everything in it and remove its files."""
    if workspace.user_id not in (None, caller.user_id):
        require_admin(caller, "delete another user's replica")
    await fleet.delete(workspace.id)
    return Success()


for prefix in ("/v1/replica", "/v1/workspaces"):
    replicas_router.include_router(_all, prefix=prefix)
# After the others: an id may be any word, so it would match their paths.
replicas_router.include_router(both_families(_replicas_replica))


_workspaces_replica = replica_router("workspaces")


@_workspaces_replica.post("/sleep")
async def sleep(fleet: FleetDep, workspace: Workspace) -> Success:
    """Stop the engine and keep the files; answered when it sleeps.

    A turn that runs is interrupted.
    """
    await fleet.of(workspace.id).sleep(by_request=True)
    return Success()


@_workspaces_replica.post("/archive")
async def archive(fleet: FleetDep, workspace: Workspace) -> Success:
    """Pack the files away and keep the history; answered when that is done.

    What wakes it meanwhile comes first: then it is a conflict.
    """
    if not await fleet.of(workspace.id).archive(by_request=True):
        raise ApiError(
            ErrorCode.CONFLICT, "The replica was not archived: it was woken or deleted meanwhile."
        )
    return Success()


@_workspaces_replica.post("/wake", status_code=202)
async def wake(fleet: FleetDep, workspace: Workspace) -> Waking:
    """Prepare the replica again; also a way out of `error`. Changes nothing on an active one."""
    await fleet.of(workspace.id).wake()
    return Waking()


@_workspaces_replica.post("/forget")
async def forget(_: AdminDep, fleet: FleetDep, workspace: Workspace) -> Success:
    """Remove the record of a replica whose service will not come back, and free its name.

    A conflict while that service answers: then it is deleted. Should the service come back, it
    removes the files.
    """
    await fleet.forget(workspace.id)
    return Success()


@_workspaces_replica.get("/status", response_model_exclude_none=True)
async def status(
    request: Request, context: Context, fleet: FleetDep, workspace: Workspace
) -> WorkspaceStatusAnswer:
    """Return the state and the engine's pulse."""
    away = request.scope.get("state", {}).get(AWAY)
    return await read_status(context, fleet, workspace, away)


workspaces_router = both_families(_workspaces_replica)


_hooks_replica = replica_router("hooks")


@_hooks_replica.get("/hooks")
async def read_hook_logs(context: Context, workspace: Workspace) -> HookLogs:
    """Return every run of its warm and start hooks, in every state; never wakes it."""
    return await hook_logs_of(context, workspace.id)


hooks_router = both_families(_hooks_replica)


STOP_SECONDS = 10.0
"""Seconds for an engine beyond the command's own limit."""

_exec_replica = replica_router("exec")


@_exec_replica.post("/exec")
async def run(body: ExecRequest, fleet: FleetDep, workspace: Workspace) -> ExecResponse:
    """Run a shell command in the workspace's root, or its repository; the replica must be active."""
    limit = body.timeout_seconds + STOP_SECONDS
    answer = await fleet.of(workspace.id).call(workspace, lambda link: link.exec(body), limit)
    if len(answer.output) > EXEC_OUTPUT_LIMIT:  # an engine may answer anything
        answer.output, answer.truncated = answer.output[-EXEC_OUTPUT_LIMIT:], True
    return answer


exec_router = both_families(_exec_replica)


_events_replica = replica_router("events")

_INDEX = re.compile(r"[0-9]{1,18}")


@_events_replica.get("/events", response_class=StreamResponse, responses=stream_of("Event"))
async def follow(
    context: Context,
    workspace: Workspace,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Return everything after `Last-Event-ID`, then live; without it live only. In every state."""
    after = index_of(last_event_id)
    subscription = await context.event_log.subscribe(workspace.id, after)
    return StreamResponse(subscription, context.stopping)


def index_of(last_event_id: str | None) -> int | None:
    """Return the index after which a stream continues; None for live only.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if not last_event_id:
        return None
    if not _INDEX.fullmatch(last_event_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The stream cannot be resumed from there.",
            "Last-Event-ID: the `id:` of an event of this stream, a whole number",
        )
    return int(last_event_id)


events_router = both_families(_events_replica)
