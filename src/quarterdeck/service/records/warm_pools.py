"""Warm pools and the workspaces that wait in them, as rows."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, RowMapping, case, func, insert, select, update

from quarterdeck.service.db.tables import warm_pools, workspaces
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.warm_generations import WELL
from quarterdeck.service.records.workspaces import BUSY
from quarterdeck.service.storable import storable
from quarterdeck.service.workspace_setup.states import POOLED, WarmState
from quarterdeck.wire.warm_pools import WarmPool

TARGET_SIZE = 2
"""Workspaces that a pool holds."""
FIRST_PAUSE = timedelta(seconds=15)
LONGEST_PAUSE = timedelta(hours=1)
"""After failures a pool waits, twice as long each time."""
REASON_LENGTH = 2000

_waiting = workspaces.c.warm_state.in_(POOLED)


def find_pool(connection: Connection, home_id: str, environment_id: str) -> WarmPool | None:
    """The pool of an environment with what a home has of it; None when it never had one."""
    return _described(connection, home_id, warm_pools.c.environment_id == environment_id)


def find_pool_by_id(
    connection: Connection, home_id: str, organization_id: str, pool_id: str
) -> WarmPool | None:
    """A pool of an organization with what a home has of it."""
    of = warm_pools.c.organization_id == organization_id
    return _described(connection, home_id, of, warm_pools.c.id == pool_id)


def put_pool(
    connection: Connection, organization_id: str, environment_id: str, enabled: bool, now: str
) -> None:
    """Switches the pool of an environment, making it first. A failed one may try again at once."""
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
    """Every pool, as rows."""
    return list(connection.execute(select(warm_pools)).mappings())


def pooled(connection: Connection, home_id: str, pool_id: str) -> list[RowMapping]:
    """A home's workspaces of a pool that nobody claimed, oldest first."""
    statement = (
        select(
            workspaces.c.id,
            workspaces.c.status,
            workspaces.c.warm_state,
            workspaces.c.warm_generation,
            workspaces.c.created_at,
        )
        .where(workspaces.c.home_id == home_id, workspaces.c.warm_pool_id == pool_id, _waiting)
        .order_by(workspaces.c.created_at, workspaces.c.id)
    )
    return list(connection.execute(statement).mappings())


def mark_ready(connection: Connection, workspace_id: str) -> None:
    """A workspace is prepared: it can be claimed, and its pool is well."""
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
    """A workspace of the pool could not be prepared: the pool rests before it tries again.

    One of an earlier generation changes nothing: what failed in it may be mended.
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
    """Takes a prepared workspace of a home out of its pool and sets columns of it; None when there is none.

    It has just these repositories, and was prepared under the pool's present generation.
    Two callers never get the same one, whichever database: the second finds its state changed.
    """
    candidates = (
        select(workspaces.c.id)
        .join(warm_pools, warm_pools.c.id == workspaces.c.warm_pool_id)
        .where(
            workspaces.c.home_id == home_id,
            warm_pools.c.environment_id == environment_id,
            warm_pools.c.enabled,
            workspaces.c.warm_state == WarmState.READY,
            workspaces.c.warm_generation == warm_pools.c.generation,
            workspaces.c.status.in_(BUSY),
            workspaces.c.repositories_json == repositories_json,
        )
        .order_by(workspaces.c.created_at, workspaces.c.id)
    )
    for workspace_id in connection.execute(candidates).scalars().all():
        taken = connection.execute(
            update(workspaces)
            .where(workspaces.c.id == workspace_id, workspaces.c.warm_state == WarmState.READY)
            .values(warm_state=None, **values)
        )
        if taken.rowcount:
            return workspace_id
    return None


def testing(connection: Connection, home_id: str, before: str) -> list[str]:
    """Workspaces of a home in which hooks are tested, those made before a moment."""
    tested = (workspaces.c.warm_state == WarmState.TESTING) & (workspaces.c.created_at < before)
    statement = select(workspaces.c.id).where(workspaces.c.home_id == home_id, tested)
    return list(connection.execute(statement).scalars())


def _described(connection: Connection, home_id: str, *conditions: Any) -> WarmPool | None:
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
        ).where(workspaces.c.home_id == home_id, workspaces.c.warm_pool_id == row["id"], _waiting)
    ).one()
    return WarmPool.model_validate(
        {
            **row,
            "ready_count": counts[0],
            "warming_count": counts[1],
            "stale_count": counts[2],
        }
    )
