"""Rows of environments and their parts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, overload
from uuid import uuid4

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from quarterdeck.service.db.records import as_record, readable, stored_json
from quarterdeck.service.db.tables import (
    environment_files,
    environment_hooks,
    environment_mcps,
    environment_skills,
    environment_variables,
    environments,
    hook_logs,
    workspaces,
)
from quarterdeck.service.environments.warm_pool_rows import environment_changed
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.wire.environments import GLOBAL, Environment
from quarterdeck.wire.permissions import (
    PermissionPolicy,
    PermissionRule,
    Permissions,
    ReplicaPermissions,
)
from quarterdeck.wire.setup import HookKind

_sources = environments.alias("sources")


def _count(table: Table, name: str) -> ColumnElement[int]:
    counted = select(func.count()).where(table.c.environment_id == environments.c.id)
    return counted.correlate(environments).scalar_subquery().label(name)


# Statements are built once: building one takes longer than running it.
_visible = and_(
    environments.c.organization_id == bindparam("organization"),
    # Without a user there are none: nothing equals NULL.
    or_(environments.c.user_id.is_(None), environments.c.user_id == bindparam("user")),
)
# Every column, the counts, and the columns taken from the source.
_records = (
    select(
        environments,
        _count(environment_variables, "variable_count"),
        _count(environment_files, "file_count"),
        _count(environment_skills, "skill_count"),
        _count(environment_mcps, "mcp_count"),
        _sources.c.repository_id.label("source_repository_id"),
        _sources.c.repository_set_id.label("source_repository_set_id"),
        _sources.c.system_prompt.label("source_system_prompt"),
    )
    .select_from(
        environments.outerjoin(_sources, _sources.c.id == environments.c.source_environment_id)
    )
    .where(_visible)
)
_ids = select(environments.c.id).where(_visible)
_is_wanted = environments.c.id == bindparam("of")
_one, _one_id = _records.where(_is_wanted), _ids.where(_is_wanted)
_global, _global_id = _records.where(environments.c.is_global), _ids.where(environments.c.is_global)
_in_order = _records.order_by(
    environments.c.is_global.desc(), environments.c.name, environments.c.id
)
_lists = {
    "org": _in_order.where(environments.c.user_id.is_(None)),
    "user": _in_order.where(environments.c.user_id.is_not(None)),
    "all": _in_order,
}


def add_environment(connection: Connection, organization_id: str, now: str, **values: Any) -> str:
    """Store an environment and return its id; `values` are further columns.

    Raises:
        IntegrityError: its name is taken in its scope, or a reference does not exist.
    """
    environment_id = str(uuid4())
    row = {"is_global": False, **values, "created_at": now, "updated_at": now}
    connection.execute(
        insert(environments).values(id=environment_id, organization_id=organization_id, **row)
    )
    return environment_id


def add_global_environment(connection: Connection, organization_id: str, now: str) -> str:
    """Store the one environment that applies to every workspace of an organization."""
    return add_environment(connection, organization_id, now, name=GLOBAL, is_global=True)


_DESCRIPTIVE = {
    *("name", "description", "push", "permission_policy", "permission_rules_json"),
    *("cost_limit", "updated_at"),
}
"""Columns that no workspace depends on."""


def change_environment_row(connection: Connection, environment_id: str, **values: Any) -> None:
    """Set columns of an environment.

    Raises:
        IntegrityError: its name is taken in its scope, or a reference does not exist.
    """
    connection.execute(
        update(environments).where(environments.c.id == environment_id).values(**values)
    )
    if not values.keys() <= _DESCRIPTIVE:
        environment_changed(connection, environment_id)


def remove_environment_row(connection: Connection, environment_id: str) -> None:
    """Remove an environment with all its parts.

    Raises:
        IntegrityError: a workspace is made from it.
    """
    connection.execute(delete(environments).where(environments.c.id == environment_id))


def users_of(connection: Connection, environment_id: str, most: int) -> Sequence[tuple[str, bool]]:
    """Return the names of its workspaces, and whether each waits in a warm pool."""
    waits = workspaces.c.warm_state.is_not(None)
    statement = (
        select(workspaces.c.name, waits.label("waits"))
        .where(workspaces.c.environment_id == environment_id)
        .order_by(waits, workspaces.c.created_at)
        .limit(most)
    )
    return [(row.name, bool(row.waits)) for row in connection.execute(statement)]


def count_with_source(connection: Connection, environment_id: str) -> int:
    """Return how many personal environments have it as their source."""
    statement = select(func.count()).where(environments.c.source_environment_id == environment_id)
    return connection.execute(statement).scalar_one()


def names_bound_to(
    connection: Connection, column: ColumnElement[Any], id: str, user_id: str | None
) -> tuple[list[str], int]:
    """Return the environments with this id as their binding, a column of `environments`.

    The names of those that a user may see, and the number of the others.
    """
    statement = (
        select(environments.c.name, environments.c.user_id)
        .where(column == id)
        .order_by(environments.c.name)
    )
    rows = connection.execute(statement).all()
    seen = [row.name for row in rows if row.user_id in (None, user_id)]
    return seen, len(rows) - len(seen)


def find_environment_id(
    connection: Connection, organization_id: str, user_id: str | None, reference: str
) -> str | None:
    """Return the id of the environment that `find_environment` finds."""
    statement = _global_id if reference == GLOBAL else _one_id
    parameters = {"organization": organization_id, "user": user_id, "of": reference}
    return connection.execute(statement, parameters).scalar()


def find_environment(
    connection: Connection, organization_id: str, user_id: str | None, reference: str
) -> Environment | None:
    """Return the environment of an id, or the global one for `global`, if the caller may see it."""
    statement = _global if reference == GLOBAL else _one
    parameters = {"organization": organization_id, "user": user_id, "of": reference}
    row = connection.execute(statement, parameters).mappings().first()
    return None if row is None else _as_environment(row)


def list_environments(
    connection: Connection, organization_id: str, user_id: str | None, scope: str
) -> list[Environment]:
    """Return environments of a scope (`org`, `user`, `all`), the global one first, then by name."""
    parameters = {"organization": organization_id, "user": user_id}
    rows = connection.execute(_lists[scope], parameters).mappings()
    return readable(rows, _as_environment)


def _as_environment(row: RowMapping) -> Environment:
    values = dict(row)
    for field in ("repository_id", "repository_set_id", "system_prompt"):
        source_value = values.pop(f"source_{field}")
        if values["source_environment_id"] is not None:
            values[field] = source_value
    values["permission_rules"] = stored_json(values.pop("permission_rules_json") or "[]", list)
    return as_record(Environment, values)


@dataclass(frozen=True)
class Layer:
    """The columns of an environment that workspaces depend on."""

    id: str
    name: str
    user_id: str | None
    is_global: bool
    repository_id: str | None
    repository_set_id: str | None
    system_prompt: str | None
    personal_preferences: str | None
    push: str | None
    co_author: str | None
    permission_policy: str | None
    permission_rules_json: str | None
    cost_limit: float | None
    source_environment_id: str | None


_columns = select(*(environments.c[field.name] for field in fields(Layer)))


def layers_of(connection: Connection, organization_id: str, environment_id: str) -> list[Layer]:
    """Return the global environment, then the source, then the environment itself; each once.

    Empty when the organization has no environment of this id.
    """
    own = _one_layer(connection, organization_id, environment_id)
    if own is None:
        return []
    layers = [_global_layer(connection, organization_id)]
    if own.source_environment_id is not None:
        layers.append(_one_layer(connection, organization_id, own.source_environment_id))
    layers.append(own)
    return list({layer.id: layer for layer in layers if layer is not None}.values())


def _one_layer(connection: Connection, organization_id: str, environment_id: str) -> Layer | None:
    statement = _columns.where(
        environments.c.organization_id == organization_id, environments.c.id == environment_id
    )
    row = connection.execute(statement).first()
    return None if row is None else Layer(*row)


def _global_layer(connection: Connection, organization_id: str) -> Layer | None:
    statement = _columns.where(
        environments.c.organization_id == organization_id, environments.c.is_global
    )
    row = connection.execute(statement).first()
    return None if row is None else Layer(*row)


def push_policy(connection: Connection, organization_id: str, environment_id: str) -> str | None:
    """Return the push policy of an environment."""
    return decided(layers_of(connection, organization_id, environment_id), "push")


@overload
def decided(layers: Sequence[Layer], setting: Literal["cost_limit"]) -> float | None: ...
@overload
def decided(
    layers: Sequence[Layer], setting: Literal["push", "co_author", "permission_policy"]
) -> str | None: ...
def decided(layers: Sequence[Layer], setting: str) -> float | str | None:
    """Return a setting of an environment: the source's, its own, or the global one's."""
    ordered = [*layers[1:], *layers[:1]]
    values: list[float | str | None] = [getattr(layer, setting) for layer in ordered]
    return next((value for value in values if value is not None), None)


# The sort columns of each kind.
_ORDER = {
    environment_variables: environment_variables.c.key,
    environment_files: environment_files.c.path,
    environment_skills: environment_skills.c.name,
    environment_mcps: environment_mcps.c.name,
}


def list_parts(connection: Connection, table: Table, environment_id: str) -> Sequence[RowMapping]:
    """Return every part of one kind, in the order of lists."""
    statement = (
        select(table)
        .where(table.c.environment_id == environment_id)
        .order_by(_ORDER[table], table.c.id)
    )
    return connection.execute(statement).mappings().all()


def find_part(
    connection: Connection, table: Table, environment_id: str, part_id: str
) -> RowMapping | None:
    """Return one part of an environment."""
    statement = select(table).where(table.c.environment_id == environment_id, table.c.id == part_id)
    return connection.execute(statement).mappings().first()


def add_part(connection: Connection, table: Table, **values: Any) -> None:
    """Store a part.

    Raises:
        IntegrityError: it is a duplicate in the environment.
    """
    connection.execute(insert(table).values(**values))
    environment_changed(connection, values["environment_id"])


def change_part(connection: Connection, table: Table, part_id: str, **values: Any) -> None:
    """Set columns of a part.

    Raises:
        IntegrityError: it is a duplicate in the environment.
    """
    changed = update(table).where(table.c.id == part_id).values(**values)
    of = connection.execute(changed.returning(table.c.environment_id)).scalar()
    if of is not None:
        environment_changed(connection, of)


def remove_part(connection: Connection, table: Table, environment_id: str, part_id: str) -> bool:
    """Remove a part; False when there is none."""
    done = connection.execute(
        delete(table).where(table.c.environment_id == environment_id, table.c.id == part_id)
    )
    if done.rowcount:
        environment_changed(connection, environment_id)
    return done.rowcount > 0


def active_hook(connection: Connection, environment_id: str, kind: HookKind) -> RowMapping | None:
    """Return the active version, or None."""
    statement = select(environment_hooks).where(
        environment_hooks.c.environment_id == environment_id,
        environment_hooks.c.kind == kind,
        environment_hooks.c.is_active,
    )
    return connection.execute(statement).mappings().first()


def drop_active_hook(connection: Connection, environment_id: str, kind: HookKind) -> None:
    """Deactivate every version; the saved ones stay, so that numbers only grow."""
    connection.execute(
        update(environment_hooks)
        .where(
            environment_hooks.c.environment_id == environment_id,
            environment_hooks.c.kind == kind,
        )
        .values(is_active=False)
    )


MOST_HOOKS = 100
"""How many of the newest versions of each kind of hook an environment keeps, besides the active one."""


def save_hook(
    connection: Connection,
    organization_id: str,
    environment_id: str,
    kind: HookKind,
    content: str,
    now: str,
    active: bool = True,
) -> RowMapping:
    """Store the next version, activate it by default, and return it; forget the oldest of many."""
    if active:
        drop_active_hook(connection, environment_id, kind)
    newest = connection.execute(
        select(func.max(environment_hooks.c.version)).where(
            environment_hooks.c.environment_id == environment_id,
            environment_hooks.c.kind == kind,
        )
    ).scalar()
    connection.execute(
        delete(environment_hooks).where(
            environment_hooks.c.environment_id == environment_id,
            environment_hooks.c.kind == kind,
            environment_hooks.c.version <= (newest or 0) + 1 - MOST_HOOKS,
            ~environment_hooks.c.is_active,
        )
    )
    stored = connection.execute(
        insert(environment_hooks)
        .values(
            id=str(uuid4()),
            organization_id=organization_id,
            environment_id=environment_id,
            kind=kind,
            version=(newest or 0) + 1,
            content=content,
            is_active=active,
            created_at=now,
        )
        .returning(environment_hooks)
    )
    return stored.mappings().one()


_rules = TypeAdapter(list[PermissionRule])


def read_rules(text: str | None) -> list[PermissionRule]:
    """Return the rules of a column."""
    return _rules.validate_json(text) if text else []


def rules_json(rules: Iterable[PermissionRule]) -> str:
    """Return rules as a column stores them."""
    return json.dumps([rule.model_dump() for rule in rules])


def permissions_of(connection: Connection, row: WorkspaceRow) -> ReplicaPermissions:
    """Return the workspace's policy, rules and cost limit, those of its environment, and what applies.

    Its own policy and limit come first, then that of the source, the environment and the global one; else
    everything is asked. Rules add up.
    """
    layers = layers_of(connection, row.organization_id, row.environment_id)
    policy = decided(layers, "permission_policy") or PermissionPolicy.ASK
    inherited = unique(rule for layer in layers for rule in read_rules(layer.permission_rules_json))
    own = read_rules(row.permission_rules_json)
    limit = decided(layers, "cost_limit")
    environment = Permissions(
        policy=PermissionPolicy(policy), rules=inherited, cost_limit=limit or None
    )
    effective = Permissions(
        policy=PermissionPolicy(row.permission_policy or policy),
        rules=unique([*inherited, *own]),
        cost_limit=(limit if row.cost_limit is None else row.cost_limit) or None,
    )
    return ReplicaPermissions(
        policy=PermissionPolicy(row.permission_policy) if row.permission_policy else None,
        rules=own,
        cost_limit=row.cost_limit,
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


MOST_HOOK_LOGS = 100
"""How many of the newest runs of each kind of hook are kept."""


def add_hook_log(connection: Connection, workspace_id: str, log: Mapping[str, Any]) -> None:
    """Store one run of a hook, as the engine reported it, and forget the oldest of many."""
    kind = str(log.get("hookType", ""))[:16]
    newest = connection.execute(
        select(func.max(hook_logs.c.position)).where(hook_logs.c.workspace_id == workspace_id)
    ).scalar()
    connection.execute(
        insert(hook_logs).values(
            id=str(uuid4()),
            workspace_id=workspace_id,
            position=(newest or 0) + 1,
            kind=kind,
            log_json=json.dumps(log),
            executed_at=str(log.get("executedAt", ""))[:32],
        )
    )
    of_kind = (hook_logs.c.workspace_id == workspace_id, hook_logs.c.kind == kind)
    last_kept = (
        select(hook_logs.c.position)
        .where(*of_kind)
        .order_by(hook_logs.c.position.desc())
        .offset(MOST_HOOK_LOGS - 1)
        .limit(1)
        .scalar_subquery()
    )
    connection.execute(delete(hook_logs).where(*of_kind, hook_logs.c.position < last_kept))


def list_hook_logs(connection: Connection, workspace_id: str) -> list[dict[str, Any]]:
    """Return every run of a hook, oldest first."""
    statement = (
        select(hook_logs.c.log_json)
        .where(hook_logs.c.workspace_id == workspace_id)
        .order_by(hook_logs.c.position)
    )
    return [json.loads(text) for text in connection.execute(statement).scalars()]
