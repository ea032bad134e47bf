"""Keeps this home's part of every pool at its size: makes what is missing, replaces what is stale, rests after failures.

All it knows is in the database, so one that is killed anywhere goes on where it was. Only workspaces
that nobody claimed are ever removed; that is asked again in the transaction that removes them.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.sources import repositories_for
from quarterdeck.service.errors import ApiError, DatabaseClosedError, StorageError
from quarterdeck.service.fleet.transitions import tell_status
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.environment_layers import layers_of
from quarterdeck.service.records.warm_pools import all_pools, pooled, testing
from quarterdeck.service.records.workspaces import BUSY, add_workspace, find_workspace
from quarterdeck.service.workspace_setup.states import POOLED, WarmState
from quarterdeck.wire.replicas import WorkspaceStatus

SECRET_BYTES = 32
UNKEPT = timedelta(minutes=1)
"""How old the workspace of a test is by which nobody has begun it and nobody will."""

log = logging.getLogger(__name__)


class Living(Protocol):
    """A workspace's supervisor."""

    def begin(self) -> None:
        """The row says preparing: sees to it."""
        ...


class PoolKeeper:
    """The one owner of the home's workspaces that nobody has claimed, those of hook tests too."""

    def __init__(
        self,
        context: ServiceContext,
        of: Callable[[str], Living],
        delete: Callable[[str, Callable[[Connection], bool]], Coroutine[Any, Any, bool]],
        interval: float,
    ) -> None:
        self._context = context
        self._of = of
        self._delete = delete
        self._interval = interval
        self._asked = asyncio.Event()
        self._trials: set[str] = set()
        self._began = context.clock()

    def nudge(self) -> None:
        """Something about a pool has changed."""
        self._asked.set()

    def keep_trial(self, workspace_id: str) -> None:
        """A test of a hook begins in a workspace."""
        self._trials.add(workspace_id)

    async def end_trial(self, workspace_id: str) -> None:
        """The test is over; its workspace goes, now or soon."""
        self._trials.discard(workspace_id)
        self._asked.set()
        await self._remove(workspace_id, lambda _: True)

    async def run(self) -> None:
        """Looks after the pools for ever."""
        while True:
            self._asked.clear()
            try:
                await self._tend()
            except DatabaseClosedError:
                return
            except StorageError:
                log.exception("The warm pools could not be looked after")
            try:
                async with asyncio.timeout(self._interval):
                    await self._asked.wait()
            except TimeoutError:
                continue

    async def _tend(self) -> None:
        database, home = self._context.database, self._context.home_id
        # One that is just being made for a test is nobody's yet.
        before = moment_text(max(self._began, self._context.clock() - UNKEPT))
        for workspace_id in await database.read(lambda c: testing(c, home, before)):
            if workspace_id not in self._trials:
                await self._remove(workspace_id, lambda _: True)
        for pool in await database.read(all_pools):
            await self._tend_pool(pool)

    async def _tend_pool(self, pool: RowMapping) -> None:
        rows = await self._context.database.read(
            lambda c: pooled(c, self._context.home_id, pool["id"])
        )
        good = [row for row in rows if pool["enabled"] and _is_good(row, pool)]
        for row in rows:
            if row not in good:
                await self._remove(row["id"], _unclaimed(row["id"]))
        now = self._context.clock()
        if pool["enabled"] and _may_try(pool, now):
            for _ in range(pool["target_size"] - len(good)):
                await self._add(pool, now)

    async def _add(self, pool: RowMapping, now: datetime) -> None:
        made = str(uuid4())
        done = await self._context.event_log.write(
            lambda writer: _store(writer, pool, made, self._context.home_id, moment_text(now))
        )
        if done:
            self._of(made).begin()

    async def _remove(self, workspace_id: str, only_if: Callable[[Connection], bool]) -> None:
        try:
            await self._delete(workspace_id, only_if)
        except (ApiError, SandboxError) as e:
            log.warning("Workspace %s, which nobody has, was not removed: %s", workspace_id, e)


def _is_good(row: RowMapping, pool: RowMapping) -> bool:
    return row["warm_generation"] == pool["generation"] and row["status"] in BUSY


def _may_try(pool: RowMapping, now: datetime) -> bool:
    return pool["retry_at"] is None or pool["retry_at"] <= moment_text(now)


def _unclaimed(workspace_id: str) -> Callable[[Connection], bool]:
    def ask(connection: Connection) -> bool:
        row = find_workspace(connection, workspace_id)
        return row is not None and row.warm_state in POOLED

    return ask


def _store(writer: LogWriter, pool: RowMapping, made: str, home_id: str, now: str) -> bool:
    """Adds a workspace to a pool; False when its environment is gone."""
    organization, environment = pool["organization_id"], pool["environment_id"]
    layers = layers_of(writer.connection, organization, environment)
    if not layers:
        return False
    user = layers[-1].user_id
    repositories = repositories_for(writer.connection, organization, user, environment)
    add_workspace(
        writer.connection,
        made,
        repositories or [],
        home_id=home_id,
        organization_id=organization,
        environment_id=environment,
        user_id=user,
        name=f"warm-{made}",
        source="api",
        lifecycle_policy="default",
        size="small",
        engine_secret=secrets.token_hex(SECRET_BYTES),
        warm_pool_id=pool["id"],
        warm_generation=pool["generation"],
        warm_state=WarmState.WARMING,
        created_at=now,
        last_activity_at=now,
    )
    tell_status(writer, made, WorkspaceStatus.PREPARING)
    return True
