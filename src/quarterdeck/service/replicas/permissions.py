"""Read and change the permission policy of a replica."""

import logging
from typing import Any

from sqlalchemy import Connection

from quarterdeck.service.chats.service import current
from quarterdeck.service.context import Context, ServiceContext, Workspace
from quarterdeck.service.environments.rows import (
    permissions_of,
    read_rules,
    rules_json,
    unique,
)
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet, FleetDep
from quarterdeck.service.fleet.permissions import give_permissions
from quarterdeck.service.fleet.workspace_manager import LOST
from quarterdeck.service.replicas.rows import WorkspaceRow, change_workspace
from quarterdeck.service.routing import both_families, replica_router
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.permissions import MOST_RULES, ChangePermissions, ReplicaPermissions
from quarterdeck.wire.replicas import WorkspaceStatus

log = logging.getLogger(__name__)


async def change_permissions(
    context: ServiceContext, fleet: Fleet, workspace_id: str, body: ChangePermissions
) -> ReplicaPermissions:
    """Change the replica's own policy and rules, in every state.

    A running engine has them when this returns; open questions that they decide are answered.

    Raises:
        ApiError: NOT_FOUND; INVALID_REQUEST for too many rules.
    """
    row, permissions = await context.database.write(lambda c: _store(c, workspace_id, body))
    supervisor = fleet.of(workspace_id)
    supervisor.site.permissions_changed.set()
    if row.status == WorkspaceStatus.ACTIVE:
        try:
            await supervisor.call(row, lambda link: give_permissions(supervisor.site, link))
        except ApiError as e:
            if e.code not in (*LOST, ErrorCode.WORKSPACE_NOT_ACTIVE):
                raise
            # It is stored: the engine gets it with its next link.
            log.info("The permission policy of %s was not given yet: %s", workspace_id, e.message)
    return permissions


def _store(
    connection: Connection, workspace_id: str, body: ChangePermissions
) -> tuple[WorkspaceRow, ReplicaPermissions]:
    row = current(connection, workspace_id)
    rules = unique([*read_rules(row.permission_rules_json), *body.add_rules])
    rules = [rule for rule in rules if rule not in body.remove_rules]
    if len(rules) > MOST_RULES:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "The replica has too many rules.", f"at most {MOST_RULES}"
        )
    values: dict[str, Any] = {"permission_rules_json": rules_json(rules) if rules else None}
    if "policy" in body.model_fields_set:
        values["permission_policy"] = body.policy
    if "cost_limit" in body.model_fields_set:
        values["cost_limit"] = body.cost_limit
    change_workspace(connection, workspace_id, **values)
    row = current(connection, workspace_id)
    return row, permissions_of(connection, row)


_permissions_replica = replica_router("permissions")


@_permissions_replica.get("/permissions")
async def read(context: Context, workspace: Workspace) -> ReplicaPermissions:
    """Return which permission requests of its agents are answered without a person."""
    return await context.database.read(lambda c: permissions_of(c, current(c, workspace.id)))


@_permissions_replica.patch("/permissions")
async def change(
    body: ChangePermissions, context: Context, fleet: FleetDep, workspace: Workspace
) -> ReplicaPermissions:
    """Change the replica's own policy and cost limit, and add or remove rules; effective at once."""
    return await change_permissions(context, fleet, workspace.id, body)


permissions_router = both_families(_permissions_replica)
