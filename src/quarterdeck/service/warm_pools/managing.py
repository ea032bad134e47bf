"""Switching pools, and looking into them."""

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.access import reach
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.warm_pools import find_pool, find_pool_by_id, pooled, put_pool
from quarterdeck.service.records.workspaces import BUSY
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.warm_pools import PooledWorkspace, WarmPool


async def switch_pool(
    context: ServiceContext, fleet: Fleet, caller: Caller, environment: str, enabled: bool
) -> WarmPool:
    """Switches the pool of an environment on or off; on lets a failed one try again at once.

    Raises:
        ApiError: NOT_FOUND when there is no such environment.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> WarmPool:
        of = reach(connection, caller, environment)
        put_pool(connection, caller.organization_id, of, enabled, now)
        pool = find_pool(connection, context.home_id, of)
        assert pool is not None  # it was stored in the same transaction
        return pool

    pool = await context.database.write(run)
    fleet.pools.nudge()
    return pool


async def look_into(context: ServiceContext, caller: Caller, pool_id: str) -> list[PooledWorkspace]:
    """The workspaces of a pool that wait.

    Raises:
        ApiError: NOT_FOUND when there is no such pool, or its environment is somebody else's.
    """

    def run(connection: Connection) -> list[PooledWorkspace]:
        pool = find_pool_by_id(connection, context.home_id, caller.organization_id, pool_id)
        if pool is None:
            raise ApiError(ErrorCode.NOT_FOUND, "No warm pool has this id.", f"id: {pool_id}")
        reach(connection, caller, str(pool.environment_id))
        return [
            PooledWorkspace(
                id=row["id"],
                state=_state(row["warm_state"], row["status"], row["warm_generation"], pool),
                generation=row["warm_generation"],
                created_at=row["created_at"],
            )
            for row in pooled(connection, context.home_id, pool_id)
        ]

    return await context.database.read(run)


def _state(state: str, status: str, generation: int, pool: WarmPool) -> str:
    if generation != pool.generation:
        return "stale"
    return state if status in BUSY else "failed"
