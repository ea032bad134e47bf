"""The generation of warm pools: what was prepared under an earlier one is stale.

What failed under an earlier one says nothing of the next, so each begins without failures.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, or_, select, update

from quarterdeck.service.db.tables import environments, warm_pools

WELL: dict[str, Any] = {
    "failures": 0,
    "retry_at": None,
    "last_failure_at": None,
    "last_failure_reason": None,
}
"""Columns of a pool that nothing is known against."""


def make_pools_stale(
    connection: Connection, organization_id: str, environment_id: str, now: str
) -> None:
    """Bumps the pools of every environment that this one is a layer of."""
    connection.execute(
        update(warm_pools)
        .where(warm_pools.c.organization_id == organization_id, _above(environment_id))
        .values(generation=warm_pools.c.generation + 1, updated_at=now, **WELL)
    )


def environment_changed(connection: Connection, environment_id: str) -> None:
    """The same for an environment whose organization is not at hand: what it carries has changed."""
    organization = select(environments.c.organization_id).where(environments.c.id == environment_id)
    connection.execute(
        update(warm_pools)
        .where(
            warm_pools.c.organization_id == organization.scalar_subquery(), _above(environment_id)
        )
        .values(generation=warm_pools.c.generation + 1, **WELL)
    )


def _above(environment_id: str) -> ColumnElement[bool]:
    """Pools of the environment and of those that inherit from it."""
    is_global = (
        select(environments.c.id)
        .where(environments.c.id == environment_id, environments.c.is_global)
        .exists()
    )
    above = select(environments.c.id).where(environments.c.source_environment_id == environment_id)
    return or_(
        warm_pools.c.environment_id == environment_id,
        warm_pools.c.environment_id.in_(above),
        is_global,
    )
