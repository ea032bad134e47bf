"""Replicas as the contract's records, from their rows. Nothing here wakes anything."""

import logging
from collections.abc import Mapping, Sequence
from math import ceil
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection

from quarterdeck.sandboxes.port import IsolationError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.agents import agents_for
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.records.chats import list_chats, with_plans
from quarterdeck.service.records.workspaces import (
    WorkspaceFilter,
    WorkspaceRow,
    find_workspace,
    page_of_workspaces,
)
from quarterdeck.service.replicas.record import replica_record, seen_repositories
from quarterdeck.service.workspace_setup.telling import told_setup
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventRepository
from quarterdeck.wire.replicas import (
    AgentAvailability,
    Replica,
    ReplicaDetail,
    ReplicaEnvironment,
    ReplicaList,
    RepositoryStatus,
    WorkspaceStatus,
)

log = logging.getLogger(__name__)


async def list_replicas(
    context: ServiceContext, which: WorkspaceFilter, page: int, limit: int
) -> ReplicaList:
    """A page (from 1) of at most `limit` replicas, newest first."""
    replicas, total = await context.database.read(
        lambda c: _page(c, which, (page - 1) * limit, limit)
    )
    return ReplicaList(
        replicas=replicas,
        total=total,
        page=page,
        limit=limit,
        total_pages=ceil(total / limit),
    )


def _page(
    connection: Connection, which: WorkspaceFilter, offset: int, limit: int
) -> tuple[list[Replica], int]:
    rows, total = page_of_workspaces(connection, which, offset, limit)
    planned = with_plans(connection, [row.id for row in rows])
    records = ({**replica_record(row), "plan_ready": row.id in planned} for row in rows)
    return [Replica.model_validate(record) for record in records], total


async def diffs_of(fleet: Fleet, row: WorkspaceRow) -> dict[str, str]:
    """The difference of each repository by its name; none while no engine can be asked."""
    if row.status != WorkspaceStatus.ACTIVE:
        return {}
    try:
        told = await fleet.of(row.id).call(row, lambda link: link.repos_diffs())
    except ApiError as e:
        log.info("The differences of %s cannot be told: %s", row.id, e)
        return {}
    return {one.name: one.diff for one in told.diffs}


async def describe(
    context: ServiceContext,
    workspace_id: str,
    include: Sequence[str] = (),
    diffs: Mapping[str, str] = MappingProxyType({}),
) -> ReplicaDetail:
    """One replica with its chats; `include` may hold `environment`, `diffs` is put in where given.

    Raises:
        ApiError: NOT_FOUND.
    """
    detail, row, told = await context.database.read(
        lambda c: _detail(c, workspace_id, include, diffs)
    )
    if "environment" in include:
        detail.environment = await _environment(context, row, told)
    return detail


def _detail(
    connection: Connection, workspace_id: str, include: Sequence[str], diffs: Mapping[str, str]
) -> tuple[ReplicaDetail, WorkspaceRow, dict[str, Any]]:
    row = find_workspace(connection, workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.", f"id: {workspace_id}")
    chats = list_chats(connection, row.id)
    detail = ReplicaDetail.model_validate(
        {
            **replica_record(row),
            "coding_agent": row.coding_agent,
            "repository_statuses": [
                _status(one, diffs.get(one.name, _known(one)) if "diffs" in include else None)
                for one in seen_repositories(row)
            ],
            "chats": chats,
            "plan_ready": any(chat.plan_ready for chat in chats),
            "waking": row.status == WorkspaceStatus.PREPARING and row.wake_wanted,
            "error": row.error if row.status == WorkspaceStatus.ERROR else None,
            "log_index": row.next_event_index - 1,
            "model": row.model,
            "size": row.size,
            "lifecycle_policy": row.lifecycle_policy,
            "auto_stop_minutes": row.auto_stop_minutes,
        }
    )
    told = told_setup(connection, row) if "environment" in include else {}
    return detail, row, told


def _known(seen: EventRepository) -> str | None:
    """The difference that came with the last event, if one did."""
    return seen.git_diff.full_diff if seen.git_diff else None


def _status(seen: EventRepository, full_diff: str | None) -> RepositoryStatus:
    diff: dict[str, Any] | None = None
    if seen.git_diff is not None:
        diff = {"added": seen.git_diff.added, "removed": seen.git_diff.removed}
        if full_diff is not None:
            diff["full_diff"] = full_diff
    return RepositoryStatus(
        repository=seen.name,
        branch=seen.current_branch,
        default_branch=seen.default_branch,
        pr_urls=seen.pr_urls,
        start_hooks_completed=seen.start_hooks_completed,
        git_diff=diff,
    )


async def _environment(
    context: ServiceContext, row: WorkspaceRow, told: dict[str, Any]
) -> ReplicaEnvironment:
    # Of a packed workspace the whole archive would have to be read.
    there = row.id if row.packed_at is None else None
    agents = await agents_for(context, row.organization_id, row.user_id, there)
    mode, note = await _isolation(context)
    return ReplicaEnvironment(
        engine_version=row.engine_version,
        coding_agents={
            agent.id: AgentAvailability(available=agent.available, auth_method=agent.auth_method)
            for agent in agents
        },
        isolation=mode,
        isolation_note=note,
        **told,
    )


async def _isolation(context: ServiceContext) -> tuple[str | None, str | None]:
    try:
        isolation = await context.sandboxes.isolation()
    except IsolationError as e:
        return None, str(e)
    return isolation.mode, isolation.note
