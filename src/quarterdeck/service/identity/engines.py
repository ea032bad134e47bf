"""Callers inside a workspace, who show its engine's secret (INTERFACE 2)."""

from hmac import compare_digest
from uuid import UUID

from quarterdeck.service.auth import Caller, CallerKind, Role
from quarterdeck.service.db.database import Database
from quarterdeck.service.records.workspaces import find_workspace


async def engine_caller(database: Database, secret: str, workspace: str) -> Caller | None:
    """The caller of a workspace's secret, or None when it is not that workspace's."""
    try:
        workspace_id = str(UUID(workspace))
    except ValueError:
        return None
    row = await database.read(lambda c: find_workspace(c, workspace_id))
    if row is None or not compare_digest(row.engine_secret.encode(), secret.encode()):
        return None
    return Caller(row.organization_id, None, CallerKind.ENGINE, Role.MEMBER, row.id)
