"""Rows of warm pools.

The generation of warm pools: workspaces of an earlier one are stale. Failures of an earlier one do
not count for the next, so each starts without failures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    case,
    func,
    insert,
    or_,
    select,
    update,
)

from quarterdeck.sandboxes.port import PROCESS
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.records import as_record
from quarterdeck.service.db.tables import environments, warm_pools, workspaces
from quarterdeck.service.formats import moment_text, storable
from quarterdeck.service.ownership import ALIVE
from quarterdeck.service.replicas.rows import BUSY
from quarterdeck.service.system_rows import ServiceRow, all_services
from quarterdeck.wire.environments import WarmPool


class WarmState(StrEnum):
    """Values of `workspaces.warm_state`; null for a workspace with an owner."""

    WARMING = "warming"
    """It is being prepared for a pool,"""
    READY = "ready"
    """and can be claimed."""
    TESTING = "testing"
    """A hook is tested in it; it is deleted after the test."""


POOLED = (WarmState.WARMING, WarmState.READY)


WELL: dict[str, Any] = {
    "failures": 0,
    "retry_at": None,
    "last_failure_at": None,
    "last_failure_reason": None,
}
"""Columns of a pool without failures."""


def make_pools_stale(
    connection: Connection, organization_id: str, environment_id: str, now: str
) -> None:
    """Mark the pools of every environment that this one is a layer of as stale."""
    connection.execute(
        update(warm_pools)
        .where(warm_pools.c.organization_id == organization_id, _above(environment_id))
        .values(generation=warm_pools.c.generation + 1, updated_at=now, **WELL)
    )


def environment_changed(connection: Connection, environment_id: str) -> None:
    """Mark the pools of a changed environment as stale, without knowing its organization."""
    organization = select(environments.c.organization_id).where(environments.c.id == environment_id)
    connection.execute(
        update(warm_pools)
        .where(
            warm_pools.c.organization_id == organization.scalar_subquery(), _above(environment_id)
        )
        .values(generation=warm_pools.c.generation + 1, **WELL)
    )


def _above(environment_id: str) -> ColumnElement[bool]:
    """Return the pools of the environment and of those that inherit from it."""
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


TARGET_SIZE = 2
"""Workspaces in a pool."""
FIRST_PAUSE = timedelta(seconds=15)
LONGEST_PAUSE = timedelta(hours=1)
"""After failures a pool waits, twice as long each time."""
REASON_LENGTH = 2000

_waiting = workspaces.c.warm_state.in_(POOLED)


@dataclass(frozen=True)
class PoolPlace:
    """Where the workspaces of a service's pools are: in its home.

    With containers, the pools of all running services with the same driver are one.
    """

    home_id: str
    driver: str

    @classmethod
    def of(cls, context: ServiceContext) -> Self:
        """Return that of a service."""
        return cls(context.home_id, context.drivers.chosen)

    def others(self, connection: Connection) -> Sequence[ServiceRow]:
        """Return the other services with the same pools."""
        if self.driver == PROCESS:
            return ()
        running = (one for one in all_services(connection, ALIVE) if one.alive)
        return [one for one in running if one.home_id != self.home_id]

    def has(self, connection: Connection) -> ColumnElement[bool]:
        """Return the condition that a workspace counts."""
        homes = [one.home_id for one in self.others(connection)]
        shared = workspaces.c.home_id.in_(homes) & (workspaces.c.driver == self.driver)
        return (workspaces.c.home_id == self.home_id) | shared


def find_pool(connection: Connection, place: PoolPlace, environment_id: str) -> WarmPool | None:
    """Return the pool of an environment; None when it never had one."""
    return _described(connection, place, warm_pools.c.environment_id == environment_id)


def find_pool_by_id(
    connection: Connection, place: PoolPlace, organization_id: str, pool_id: str
) -> WarmPool | None:
    """Return a pool of an organization."""
    of = warm_pools.c.organization_id == organization_id
    return _described(connection, place, of, warm_pools.c.id == pool_id)


def put_pool(
    connection: Connection, organization_id: str, environment_id: str, enabled: bool, now: str
) -> None:
    """Switch the pool of an environment, creating it if needed. A failed one may retry at once."""
    values: dict[str, Any] = {
        "enabled": enabled,
        "failures": 0,
        "retry_at": None,
        "updated_at": now,
    }
    changed = connection.execute(
        update(warm_pools).where(warm_pools.c.environment_id == environment_id).values(**values)
    )
    if changed.rowcount:
        return
    connection.execute(
        insert(warm_pools).values(
            id=str(uuid4()),
            organization_id=organization_id,
            environment_id=environment_id,
            target_size=TARGET_SIZE,
            generation=1,
            **values,
        )
    )


def all_pools(connection: Connection) -> list[RowMapping]:
    """Return every pool, as rows."""
    return list(connection.execute(select(warm_pools)).mappings())


def pooled(connection: Connection, place: PoolPlace, pool_id: str) -> list[RowMapping]:
    """Return the workspaces of a pool that nobody claimed, oldest first."""
    statement = (
        select(
            workspaces.c.id,
            workspaces.c.home_id,
            workspaces.c.status,
            workspaces.c.warm_state,
            workspaces.c.warm_generation,
            workspaces.c.created_at,
        )
        .where(place.has(connection), workspaces.c.warm_pool_id == pool_id, _waiting)
        .order_by(workspaces.c.created_at, workspaces.c.id)
    )
    return list(connection.execute(statement).mappings())


def mark_ready(connection: Connection, workspace_id: str) -> None:
    """Note that a workspace is prepared: it can be claimed, and its pool has no failure."""
    connection.execute(
        update(workspaces)
        .where(workspaces.c.id == workspace_id, workspaces.c.warm_state == WarmState.WARMING)
        .values(warm_state=WarmState.READY)
    )
    of_it = (
        select(workspaces.c.id)
        .where(
            workspaces.c.id == workspace_id,
            workspaces.c.warm_pool_id == warm_pools.c.id,
            workspaces.c.warm_generation == warm_pools.c.generation,
        )
        .exists()
    )
    connection.execute(update(warm_pools).where(of_it).values(**WELL))


def note_failure(
    connection: Connection,
    pool_id: str | None,
    generation: int | None,
    reason: str,
    now: datetime,
) -> None:
    """Note that a workspace of the pool could not be prepared: the pool pauses before it retries.

    One of an earlier generation changes nothing: the cause of its failure may be fixed.
    """
    of_it = (warm_pools.c.id == pool_id) & (warm_pools.c.generation == generation)
    failures = connection.execute(select(warm_pools.c.failures).where(of_it)).scalar()
    if failures is None:
        return
    pause = min(FIRST_PAUSE * 2 ** min(failures, 16), LONGEST_PAUSE)
    connection.execute(
        update(warm_pools)
        .where(warm_pools.c.id == pool_id)
        .values(
            failures=failures + 1,
            retry_at=moment_text(now + pause),
            last_failure_at=moment_text(now),
            last_failure_reason=storable(reason)[:REASON_LENGTH],
        )
    )


def claim_one(
    connection: Connection,
    home_id: str,
    environment_id: str,
    repositories_json: str,
    values: Mapping[str, Any],
) -> str | None:
    """Take a prepared workspace of a home out of its pool and set its columns, if there is one.

    It has exactly these repositories, and was prepared in the pool's current generation.
    Two callers never get the same one, whichever database: the second finds its state changed.
    """
    candidates = _prepared(workspaces.c.id, environment_id).where(
        workspaces.c.home_id == home_id, workspaces.c.repositories_json == repositories_json
    )
    for workspace_id in connection.execute(candidates).scalars().all():
        claimed = connection.execute(
            update(workspaces)
            .where(workspaces.c.id == workspace_id, workspaces.c.warm_state == WarmState.READY)
            .values(warm_state=None, **values)
        )
        if claimed.rowcount:
            return workspace_id
    return None


def prepared_elsewhere(
    connection: Connection, place: PoolPlace, environment_id: str
) -> ServiceRow | None:
    """Return another service that has a prepared workspace of an environment; None if this one has."""
    others = {one.home_id: one for one in place.others(connection)}
    if not others:
        return None
    driver = workspaces.c.driver == place.driver
    found = connection.execute(_prepared(workspaces.c.home_id, environment_id).where(driver))
    homes = found.scalars().all()
    if place.home_id in homes:
        return None
    return next((others[one] for one in homes if one in others), None)


def _prepared(column: ColumnElement[str], environment_id: str) -> Select[str]:
    """Return a column of the workspaces that can be claimed, oldest first."""
    return (
        select(column)
        .join(warm_pools, warm_pools.c.id == workspaces.c.warm_pool_id)
        .where(
            warm_pools.c.environment_id == environment_id,
            warm_pools.c.enabled,
            workspaces.c.warm_state == WarmState.READY,
            workspaces.c.warm_generation == warm_pools.c.generation,
            workspaces.c.status.in_(BUSY),
        )
        .order_by(workspaces.c.created_at, workspaces.c.id)
    )


def testing(connection: Connection, home_id: str, before: str) -> list[str]:
    """Return the workspaces of hook tests of a home that were created before a moment."""
    tested = (workspaces.c.warm_state == WarmState.TESTING) & (workspaces.c.created_at < before)
    statement = select(workspaces.c.id).where(workspaces.c.home_id == home_id, tested)
    return list(connection.execute(statement).scalars())


def _described(connection: Connection, place: PoolPlace, *conditions: Any) -> WarmPool | None:
    row = connection.execute(select(warm_pools).where(*conditions)).mappings().first()
    if row is None:
        return None
    fresh = workspaces.c.warm_generation == row["generation"]
    alive = workspaces.c.status.in_(BUSY)

    def count(condition: Any) -> Any:
        return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)

    counts = connection.execute(
        select(
            count(fresh & alive & (workspaces.c.warm_state == WarmState.READY)),
            count(fresh & alive & (workspaces.c.warm_state == WarmState.WARMING)),
            count(~fresh),
        ).where(place.has(connection), workspaces.c.warm_pool_id == row["id"], _waiting)
    ).one()
    return as_record(
        WarmPool,
        {
            **row,
            "ready_count": counts[0],
            "warming_count": counts[1],
            "stale_count": counts[2],
        },
    )
