"""Describe replicas."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import ceil
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection

from quarterdeck.sandboxes.errors import IsolationError
from quarterdeck.service.agents.service import agents_for
from quarterdeck.service.chats.rows import activities, activity_of, list_chats, newest_message_chat
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.records import as_record, readable
from quarterdeck.service.environments.setup import setup_summary
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.runtime import WorkspaceHealth
from quarterdeck.service.ownership import unreachable_since
from quarterdeck.service.replicas.rows import (
    WorkspaceFilter,
    WorkspaceRow,
    find_workspace,
    page_of_workspaces,
    replica_record,
    seen_repositories,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git_state import EventRepository, RepositoryStatus
from quarterdeck.wire.replicas import (
    AgentAvailability,
    EngineHeartbeat,
    LastChatMessage,
    Replica,
    ReplicaDetail,
    ReplicaEnvironment,
    ReplicaList,
    WorkspaceStatus,
    WorkspaceStatusAnswer,
)

log = logging.getLogger(__name__)


async def list_replicas(
    context: ServiceContext, filter: WorkspaceFilter, page: int, limit: int
) -> ReplicaList:
    """Return a page (from 1) of at most `limit` replicas, newest first."""
    replicas, total = await context.database.read(
        lambda c: _page(c, context, filter, (page - 1) * limit, limit)
    )
    return ReplicaList(
        replicas=replicas,
        total=total,
        page=page,
        limit=limit,
        total_pages=ceil(total / limit),
    )


def _page(
    connection: Connection,
    context: ServiceContext,
    filter: WorkspaceFilter,
    offset: int,
    limit: int,
) -> tuple[list[Replica], int]:
    rows, total = page_of_workspaces(connection, filter, offset, limit)
    active = activities(connection, [row.id for row in rows])
    lost = _unreachable(connection, context, rows)

    def read(row: WorkspaceRow) -> Replica:
        return as_record(Replica, {**replica_record(row), **active[row.id], **lost[row.id]})

    return readable(rows, read), total


def _unreachable(
    connection: Connection, context: ServiceContext, rows: Sequence[WorkspaceRow]
) -> dict[str, dict[str, Any]]:
    """Return the fields about replicas that cannot be reached, by the replicas' ids."""
    lost = unreachable_since(connection, context.home_id, rows)
    return {
        row.id: {"unreachable_since": lost.get(row.id)}
        | (context.drivers.unreachable(row) if row.home_id == context.home_id else {})
        for row in rows
    }


async def diffs_of(fleet: Fleet, row: WorkspaceRow) -> dict[str, str]:
    """Return the difference of each repository by its name; none while no engine can be called."""
    if row.status != WorkspaceStatus.ACTIVE:
        return {}
    try:
        answer = await fleet.of(row.id).call(row, lambda link: link.repos_diffs())
    except ApiError as e:
        log.info("The differences of %s cannot be read: %s", row.id, e)
        return {}
    return {diff.name: diff.diff for diff in answer.diffs}


async def describe(
    context: ServiceContext,
    workspace_id: str,
    include: Sequence[str] = (),
    diffs: Mapping[str, str] = MappingProxyType({}),
) -> ReplicaDetail:
    """Return a replica with its chats; `include` may have `environment`; `diffs` are included.

    Raises:
        ApiError: NOT_FOUND.
    """
    detail, row, setup = await context.database.read(
        lambda c: _detail(c, context, workspace_id, include, diffs)
    )
    if "environment" in include:
        detail.environment = await _environment(context, row, setup)
    return detail


def _detail(
    connection: Connection,
    context: ServiceContext,
    workspace_id: str,
    include: Sequence[str],
    diffs: Mapping[str, str],
) -> tuple[ReplicaDetail, WorkspaceRow, dict[str, Any]]:
    row = find_workspace(connection, workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.", f"id: {workspace_id}")
    chats = list_chats(connection, row.id)
    detail = as_record(
        ReplicaDetail,
        {
            **replica_record(row),
            "coding_agent": row.coding_agent,
            "repository_statuses": [
                _status(
                    repository,
                    diffs.get(repository.name, _known(repository)) if "diffs" in include else None,
                )
                for repository in seen_repositories(row)
            ],
            "chats": chats,
            **activity_of(chats),
            **_unreachable(connection, context, [row])[row.id],
            "waking": row.status == WorkspaceStatus.PREPARING and row.wake_wanted,
            "error": row.error if row.status == WorkspaceStatus.ERROR else None,
            "log_index": row.next_event_index - 1,
            "model": row.model,
            "size": row.size,
            "lifecycle_policy": row.lifecycle_policy,
            "auto_stop_minutes": row.auto_stop_minutes,
        },
    )
    setup = setup_summary(connection, row) if "environment" in include else {}
    return detail, row, setup


def _known(seen: EventRepository) -> str | None:
    """Return the difference in the last event, if any."""
    return seen.git_diff.full_diff if seen.git_diff else None


def _status(seen: EventRepository, full_diff: str | None) -> RepositoryStatus:
    status = seen.status()
    if status.git_diff is not None and full_diff is not None:
        status.git_diff["full_diff"] = full_diff
    return status


async def _environment(
    context: ServiceContext, row: WorkspaceRow, setup: dict[str, Any]
) -> ReplicaEnvironment:
    # For a packed workspace the whole archive would have to be read.
    there = row.id if row.packed_at is None else None
    agents = await agents_for(context, row.organization_id, row.user_id, there)
    isolation = await _isolation(context, row.id)
    return ReplicaEnvironment(
        engine_version=row.engine_version,
        coding_agents={
            agent.id: AgentAvailability(available=agent.available, auth_method=agent.auth_method)
            for agent in agents
        },
        **isolation,
        **setup,
    )


async def _isolation(context: ServiceContext, workspace_id: str) -> dict[str, Any]:
    try:
        isolation = await (await context.driver(workspace_id)).isolation()
    except IsolationError as e:
        return {"isolation": None, "isolation_note": str(e)}
    return {
        "isolation": isolation.mode,
        "isolation_note": isolation.note,
        "size_limited": isolation.size_limited,
    }


MISSED_BEATS = 3
"""The number of missed heartbeats after which a status is stale."""


async def read_status(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, away: str | None = None
) -> WorkspaceStatusAnswer:
    """Return the current state; never wakes. `away` says that the owner is unreachable."""
    last, lost = await context.database.read(
        lambda c: (_last_message(c, row.id), _unreachable(c, context, [row])[row.id])
    )
    pulse = fleet.of(row.id).pulse
    living = row.status in (WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING)
    return WorkspaceStatusAnswer(
        status=row.status,
        last_checked=context.clock(),
        error=row.error if row.status == WorkspaceStatus.ERROR else None,
        message=away or (pulse.progress if row.status == WorkspaceStatus.PREPARING else None),
        engine_heartbeat=_heartbeat(context, fleet, pulse) if living else None,
        last_chat_message=last,
        **lost,
    )


def _heartbeat(
    context: ServiceContext, fleet: Fleet, pulse: WorkspaceHealth
) -> EngineHeartbeat | None:
    if pulse.last_seen is None:
        return None
    age = max(0, round((context.clock() - pulse.last_seen).total_seconds() * 1000))
    stale_after = round(fleet.settings.heartbeat * MISSED_BEATS * 1000)
    booted = pulse.hello and pulse.hello.boot_time_ms
    return EngineHeartbeat(
        last_seen_at=pulse.last_seen,
        age_ms=age,
        fresh=age < stale_after,
        stale_after_ms=stale_after,
        boot_time_ms=booted,
        uptime_seconds=None if booted is None else _uptime(pulse.last_seen, booted),
    )


def _uptime(seen: datetime, booted_ms: int) -> int:
    """Return the engine's uptime when it was last seen; its own count is of its last report."""
    return max(0, int(seen.timestamp() * 1000) - booted_ms) // 1000


def _last_message(connection: Connection, workspace_id: str) -> LastChatMessage | None:
    chat = newest_message_chat(list_chats(connection, workspace_id))
    if chat is None or chat.last_message_text is None:
        return None
    return LastChatMessage(text=chat.last_message_text, provider=chat.provider, at=chat.updated_at)
