"""The permission policy of a workspace: its own and that of its environment."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection

from quarterdeck.service.environments.rows import decided, layers_of
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.wire.permissions import (
    PermissionPolicy,
    PermissionRule,
    Permissions,
    ReplicaPermissions,
)

_rules = TypeAdapter(list[PermissionRule])


def read_rules(text: str | None) -> list[PermissionRule]:
    """Return the rules of a column."""
    return _rules.validate_json(text) if text else []


def rules_json(rules: Iterable[PermissionRule]) -> str:
    """Return rules as a column stores them."""
    return json.dumps([rule.model_dump() for rule in rules])


def permissions_of(connection: Connection, row: WorkspaceRow) -> ReplicaPermissions:
    """Return the workspace's policy and rules, those of its environment, and what applies.

    Its own policy comes first, then that of the source, the environment and the global one; else
    everything is asked. Rules add up.
    """
    layers = layers_of(connection, row.organization_id, row.environment_id)
    policy = decided(layers, "permission_policy") or PermissionPolicy.ASK
    inherited = unique(rule for layer in layers for rule in read_rules(layer.permission_rules_json))
    own = read_rules(row.permission_rules_json)
    environment = Permissions(policy=PermissionPolicy(policy), rules=inherited)
    effective = Permissions(
        policy=PermissionPolicy(row.permission_policy or policy),
        rules=unique([*inherited, *own]),
    )
    return ReplicaPermissions(
        policy=PermissionPolicy(row.permission_policy) if row.permission_policy else None,
        rules=own,
        environment=environment,
        effective=effective,
    )


def as_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of an environment for fields of its body, with the rules as JSON."""
    if "permission_rules" not in values:
        return values
    rules = values.pop("permission_rules")
    return {**values, "permission_rules_json": json.dumps(rules) if rules else None}


def unique(rules: Iterable[PermissionRule]) -> list[PermissionRule]:
    """Return the rules in order, each once."""
    return list({(rule.action, rule.pattern): rule for rule in rules}.values())
