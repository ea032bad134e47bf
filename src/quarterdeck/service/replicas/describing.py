"""Replicas as the contract's records, from their rows. Nothing here wakes anything."""

import asyncio
import json
import re
from collections.abc import Sequence
from math import ceil
from typing import Any

from sqlalchemy import Connection

from quarterdeck.sandboxes.port import IsolationError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.records.chats import list_chats
from quarterdeck.service.records.workspaces import (
    WorkspaceFilter,
    WorkspaceRow,
    find_workspace,
    page_of_workspaces,
)
from quarterdeck.service.workspace_setup.telling import told_setup
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventRepository
from quarterdeck.wire.replicas import (
    AgentAvailability,
    PullRequest,
    Replica,
    ReplicaDetail,
    ReplicaEnvironment,
    ReplicaList,
    RepositoryStatus,
    WorkspaceStatus,
)

_NUMBER = re.compile(r"/(\d+)/?$")


async def list_replicas(
    context: ServiceContext, which: WorkspaceFilter, page: int, limit: int
) -> ReplicaList:
    """A page (from 1) of at most `limit` replicas, newest first."""
    rows, total = await context.database.read(
        lambda c: page_of_workspaces(c, which, (page - 1) * limit, limit)
    )
    return ReplicaList(
        replicas=[Replica.model_validate(_record(row)) for row in rows],
        total=total,
        page=page,
        limit=limit,
        total_pages=ceil(total / limit),
    )


async def describe(
    context: ServiceContext, workspace_id: str, include: Sequence[str] = ()
) -> ReplicaDetail:
    """One replica with its chats; `include` may hold `environment` and `diffs`.

    Raises:
        ApiError: NOT_FOUND.
    """
    detail, version, told = await context.database.read(
        lambda c: _detail(c, workspace_id, "diffs" in include)
    )
    if "environment" in include:
        detail.environment = await _environment(context, version, told)
    return detail


def _detail(
    connection: Connection, workspace_id: str, diffs: bool
) -> tuple[ReplicaDetail, str | None, dict[str, Any]]:
    row = find_workspace(connection, workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.", f"id: {workspace_id}")
    detail = ReplicaDetail.model_validate(
        {
            **_record(row),
            "coding_agent": row.coding_agent,
            "repository_statuses": [_status(one, diffs) for one in _seen(row)],
            "chats": list_chats(connection, row.id),
            "waking": row.status == WorkspaceStatus.PREPARING and row.wake_wanted,
            "error": row.error if row.status == WorkspaceStatus.ERROR else None,
            "log_index": row.next_event_index - 1,
        }
    )
    return detail, row.engine_version, told_setup(connection, row)


def _record(row: WorkspaceRow) -> dict[str, Any]:
    repositories = json.loads(row.repositories_json)
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "source": row.source,
        "created_at": row.created_at,
        "last_activity_at": row.last_activity_at,
        "environment_id": row.environment_id,
        "repositories": [{key: one[key] for key in ("id", "name", "url")} for one in repositories],
        "pull_requests": [pull for one in _seen(row) for pull in _pulls(one)],
    }


def _seen(row: WorkspaceRow) -> list[EventRepository]:
    """The repositories as the engine told of them last."""
    return [EventRepository.model_validate(one) for one in json.loads(row.repository_statuses_json)]


def _status(seen: EventRepository, diffs: bool) -> RepositoryStatus:
    diff: dict[str, Any] | None = None
    if seen.git_diff is not None:
        diff = {"added": seen.git_diff.added, "removed": seen.git_diff.removed}
        if diffs and seen.git_diff.full_diff is not None:
            diff["full_diff"] = seen.git_diff.full_diff
    return RepositoryStatus(
        repository=seen.name,
        branch=seen.current_branch,
        default_branch=seen.default_branch,
        pr_urls=seen.pr_urls,
        start_hooks_completed=seen.start_hooks_completed,
        git_diff=diff,
    )


def _pulls(seen: EventRepository) -> list[PullRequest]:
    numbered = [(url, _NUMBER.search(url)) for url in seen.pr_urls]
    return [
        PullRequest(repository=seen.name, number=int(found[1]), url=url)
        for url, found in numbered
        if found
    ]


async def _environment(
    context: ServiceContext, engine_version: str | None, told: dict[str, Any]
) -> ReplicaEnvironment:
    agents = await asyncio.to_thread(context.agents)
    mode, note = await _isolation(context)
    return ReplicaEnvironment(
        engine_version=engine_version,
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
