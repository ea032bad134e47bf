"""Running a command (specification, operation 1)."""

from quarterdeck.service.context import Workspace
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.exec import ExecRequest, ExecResponse

STOP_SECONDS = 10.0
"""What an engine may take beyond the command's own limit."""

_replica = replica_router("exec")


@_replica.post("/exec")
async def run(body: ExecRequest, fleet: FleetDep, workspace: Workspace) -> ExecResponse:
    """Runs a shell command in the workspace's root; the replica must be active."""
    limit = body.timeout_seconds + STOP_SECONDS
    return await fleet.of(workspace.id).call(workspace, lambda link: link.exec(body), limit)


router = both_families(_replica)
