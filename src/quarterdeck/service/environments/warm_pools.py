"""Keep every pool at its size.

Adds missing workspaces, replaces stale ones, pauses after failures. With containers, all services of an
installation do this for the same pool. The whole state is in the
database, so a killed service continues where it was. Only unclaimed workspaces are ever removed;
that is checked again in the transaction that removes them.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.environments.rows import layers_of
from quarterdeck.service.environments.service import (
    reach,
    reach_layers_to_change,
    repositories_for,
)
from quarterdeck.service.environments.warm_pool_rows import (
    POOLED,
    PoolPlace,
    WarmState,
    all_pools,
    find_pool,
    find_pool_by_id,
    pooled,
    put_pool,
    testing,
)
from quarterdeck.service.errors import (
    ApiError,
    DamagedRecordError,
    DatabaseClosedError,
    StorageError,
)
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.fleet.transitions import append_status_event
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.quotas import require_pool_room
from quarterdeck.service.replicas.rows import BUSY, add_workspace, find_workspace
from quarterdeck.wire.environments import PooledWorkspace, WarmPool
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus

UNKEPT = timedelta(minutes=1)
"""Age after which the workspace of a test that was never started is removed."""

log = logging.getLogger(__name__)


class Living(Protocol):
    """A workspace's supervisor."""

    def begin(self) -> None:
        """Start to prepare the workspace, as its row says."""
        ...


class PoolKeeper:
    """The one owner of the home's unclaimed workspaces, including those of hook tests."""

    def __init__(
        self,
        context: ServiceContext,
        of: Callable[[str], Living],
        delete: Callable[[str, Callable[[Connection], bool]], Coroutine[Any, Any, bool]],
        interval: float,
    ) -> None:
        self._context = context
        self._place = PoolPlace.of(context)
        self._of = of
        self._delete = delete
        self._interval = interval
        self._changed = context.pools_changed
        self._trials: set[str] = set()
        self._began = context.clock()

    def nudge(self) -> None:
        """Note that something about a pool has changed."""
        self._changed.set()

    def keep_trial(self, workspace_id: str) -> None:
        """Note that a hook test starts in a workspace."""
        self._trials.add(workspace_id)

    async def end_trial(self, workspace_id: str) -> None:
        """Note that the test is over; its workspace is deleted, now or soon."""
        self._trials.discard(workspace_id)
        self._changed.set()
        await self._remove(workspace_id, lambda _: True)

    async def run(self) -> None:
        """Maintain the pools forever."""
        while True:
            self._changed.clear()
            try:
                await self._tend()
            except DatabaseClosedError:
                return
            except StorageError as e:
                log_storage_error(log, "The warm pools could not be maintained", e)
            try:
                async with asyncio.timeout(self._interval):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _tend(self) -> None:
        database, home = self._context.database, self._context.home_id
        # One that is just being created for a test is not registered yet.
        before = moment_text(max(self._began, self._context.clock() - UNKEPT))
        for workspace_id in await database.read(lambda c: testing(c, home, before)):
            if workspace_id not in self._trials:
                await self._remove(workspace_id, lambda _: True)
        for pool in await database.read(all_pools):
            try:
                await self._tend_pool(pool)
            except DamagedRecordError as e:  # of its repositories; the other pools go on
                log.warning("Warm pool %s gets no replica: %s", pool["id"], e.for_operator())

    async def _tend_pool(self, pool: RowMapping) -> None:
        rows = await self._context.database.read(lambda c: pooled(c, self._place, pool["id"]))
        good = _kept(rows, pool)
        for row in rows:
            if row not in good and row["home_id"] == self._place.home_id:
                await self._remove(row["id"], _unclaimed(row["id"]))
        now = self._context.clock()
        if pool["enabled"] and _may_try(pool, now):
            for _ in range(pool["target_size"] - len(good)):
                await self._add(pool, now)

    async def _add(self, pool: RowMapping, now: datetime) -> None:
        workspace_id = str(uuid4())
        done = await self._context.event_log.write(
            lambda writer: _store(writer, self._context, pool, workspace_id, moment_text(now))
        )
        if done:
            self._of(workspace_id).begin()

    async def _remove(self, workspace_id: str, only_if: Callable[[Connection], bool]) -> None:
        try:
            await self._delete(workspace_id, only_if)
        except (ApiError, SandboxError) as e:
            log.warning("Workspace %s, which has no owner, was not removed: %s", workspace_id, e)


def _kept(rows: Sequence[RowMapping], pool: RowMapping) -> list[RowMapping]:
    """Return the workspaces that stay in a pool. After a takeover there may be more than it has."""
    good = [
        row
        for row in rows
        if row["warm_generation"] == pool["generation"] and row["status"] in BUSY
    ]
    return good[: pool["target_size"]] if pool["enabled"] else []


def _may_try(pool: RowMapping, now: datetime) -> bool:
    return pool["retry_at"] is None or pool["retry_at"] <= moment_text(now)


def _unclaimed(workspace_id: str) -> Callable[[Connection], bool]:
    def is_unclaimed(connection: Connection) -> bool:
        row = find_workspace(connection, workspace_id)
        return row is not None and row.warm_state in POOLED

    return is_unclaimed


def _store(
    writer: LogWriter, context: ServiceContext, pool: RowMapping, workspace_id: str, now: str
) -> bool:
    """Add a workspace to a pool; False when it is full, or its environment was deleted."""
    rows = pooled(writer.connection, PoolPlace.of(context), pool["id"])
    if len(_kept(rows, pool)) >= pool["target_size"]:
        return False  # another service was faster
    organization, environment = pool["organization_id"], pool["environment_id"]
    layers = layers_of(writer.connection, organization, environment)
    if not layers:
        return False
    user = layers[-1].user_id
    repositories = repositories_for(writer.connection, organization, user, environment)
    add_workspace(
        writer.connection,
        workspace_id,
        repositories or [],
        home_id=context.home_id,
        driver=context.drivers.chosen,
        organization_id=organization,
        environment_id=environment,
        user_id=user,
        name=f"warm-{workspace_id}",
        source="api",
        lifecycle_policy="default",
        size="small",
        engine_secret_sealed=context.vault.new_engine_secret(workspace_id),
        warm_pool_id=pool["id"],
        warm_generation=pool["generation"],
        warm_state=WarmState.WARMING,
        created_at=now,
        last_activity_at=now,
    )
    append_status_event(writer, workspace_id, WorkspaceStatus.PREPARING)
    return True


async def switch_pool(
    context: ServiceContext, caller: Caller, environment: str, enabled: bool
) -> WarmPool:
    """Switch the pool of an environment on or off; on lets a failed one try again at once.

    Raises:
        ApiError: NOT_FOUND when there is no such environment, QUOTA_REACHED.
    """
    now = moment_text(context.clock())
    place = PoolPlace.of(context)

    def run(connection: Connection) -> WarmPool:
        own = reach_layers_to_change(connection, caller, environment)[-1]
        of, organization = own.id, caller.organization_id
        before = find_pool(connection, place, of)
        if enabled and not (before and before.enabled):
            require_pool_room(connection, organization, own.user_id, but=of)
        put_pool(connection, organization, of, enabled, now)
        pool = find_pool(connection, place, of)
        assert pool is not None  # it was stored in the same transaction
        return pool

    pool = await context.database.write(run)
    context.pools_changed.set()
    return pool


async def look_into(context: ServiceContext, caller: Caller, pool_id: str) -> list[PooledWorkspace]:
    """Return the waiting workspaces of a pool.

    Raises:
        ApiError: NOT_FOUND when there is no such pool, or its environment belongs to somebody else.
    """
    place = PoolPlace.of(context)

    def run(connection: Connection) -> list[PooledWorkspace]:
        pool = find_pool_by_id(connection, place, caller.organization_id, pool_id)
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
            for row in pooled(connection, place, pool_id)
        ]

    return await context.database.read(run)


def _state(state: str, status: str, generation: int, pool: WarmPool) -> str:
    if generation != pool.generation:
        return "stale"
    return state if status in BUSY else "failed"
