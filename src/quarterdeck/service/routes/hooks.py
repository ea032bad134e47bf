"""Logs of a replica's hooks (INTERFACE 6)."""

from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.service.workspace_setup.telling import hook_logs_of
from quarterdeck.wire.setup import HookLogs

_replica = replica_router("hooks")


@_replica.get("/hooks")
async def read(context: Context, workspace: Workspace) -> HookLogs:
    """Every run of its warm and start hooks, in every state; never wakes it."""
    return await hook_logs_of(context, workspace.id)


router = both_families(_replica)
