"""A workspace's row."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from quarterdeck.service.db.tables import workspaces
from quarterdeck.wire.replicas import WorkspaceStatus

BUSY = (WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING)
"""States that count against the limit of active workspaces."""


@dataclass(frozen=True)
class WorkspaceRow:
    """Every column of `workspaces`, under its own name."""

    id: str
    organization_id: str
    home_id: str | None
    environment_id: str
    name: str
    status: str
    error: str | None
    source: str
    coding_agent: str | None
    model: str | None
    lifecycle_policy: str
    config_json: str | None
    size: str
    webhook_url: str | None
    repositories_json: str
    repository_statuses_json: str
    engine_secret: str
    engine_version: str | None
    boot_id: str | None
    wake_wanted: bool
    next_event_index: int
    next_history_index: int
    journal_index: int
    created_at: str
    last_activity_at: str | None
    user_id: str | None
    auto_stop_minutes: int | None
    rested_at: str | None
    packed_at: str | None
    warm_pool_id: str | None
    warm_generation: int | None
    warm_state: str | None
    setup_json: str | None

    def __repr__(self) -> str:
        """Without the secret: rows end up in messages and tracebacks."""
        return f"WorkspaceRow(id={self.id!r}, name={self.name!r}, status={self.status!r})"


@dataclass(frozen=True)
class WorkspaceFilter:
    """Which workspaces of an organization a list shows."""

    organization_id: str
    status: str | None = None
    source: str | None = None
    environment_id: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The filter as conditions of a statement."""
        given = {
            workspaces.c.organization_id: self.organization_id,
            workspaces.c.status: self.status,
            workspaces.c.source: self.source,
            workspaces.c.environment_id: self.environment_id,
        }
        asked = [column == value for column, value in given.items() if value is not None]
        return [workspaces.c.warm_state.is_(None), *asked]


def workspace_columns() -> Select[Any]:
    """A select of the columns of `WorkspaceRow`, for a `where` of the caller's."""
    return select(*(workspaces.c[field.name] for field in fields(WorkspaceRow)))


_one = workspace_columns().where(workspaces.c.id == bindparam("of"))
# Made once: both are part of storing every batch of events.
_journal_index = select(workspaces.c.journal_index).where(workspaces.c.id == bindparam("of"))
_journal_stored = (
    update(workspaces)
    .where(workspaces.c.id == bindparam("of"))
    .values(
        journal_index=bindparam("journal"),
        last_activity_at=func.coalesce(
            bindparam("at", type_=String), workspaces.c.last_activity_at
        ),
    )
)


def find_workspace(connection: Connection, workspace_id: str) -> WorkspaceRow | None:
    """The workspace of an id, whoever owns it."""
    row = connection.execute(_one, {"of": workspace_id}).first()
    return None if row is None else WorkspaceRow(*row)


def journal_index_of(connection: Connection, workspace_id: str) -> int | None:
    """The newest stored entry of an engine's journal; None when the workspace is gone."""
    return connection.execute(_journal_index, {"of": workspace_id}).scalar()


def keep_journal_index(
    connection: Connection, workspace_id: str, index: int, activity: str | None
) -> None:
    """Everything up to `index` is stored; `activity` is when its newest chat event was, if any."""
    values = {"of": workspace_id, "journal": index, "at": activity}
    connection.execute(_journal_stored, values)


def workspaces_in(
    connection: Connection, home_id: str, statuses: Sequence[str]
) -> list[WorkspaceRow]:
    """Every workspace of a home in one of the states, oldest first."""
    statement = (
        workspace_columns()
        .where(workspaces.c.home_id == home_id, workspaces.c.status.in_(statuses))
        .order_by(workspaces.c.created_at)
    )
    return [WorkspaceRow(*row) for row in connection.execute(statement)]


def page_of_workspaces(
    connection: Connection, which: WorkspaceFilter, offset: int, limit: int
) -> tuple[list[WorkspaceRow], int]:
    """A page of a list, newest first, and how many there are in all.

    Archived ones, asked for alone, come by their last activity.
    """
    conditions = which.conditions()
    total = connection.execute(
        select(func.count()).select_from(workspaces).where(*conditions)
    ).scalar_one()
    newest = workspaces.c.created_at
    if which.status == WorkspaceStatus.ARCHIVED:
        newest = func.coalesce(workspaces.c.last_activity_at, workspaces.c.created_at)
    statement = (
        workspace_columns()
        .where(*conditions)
        .order_by(newest.desc(), workspaces.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return [WorkspaceRow(*row) for row in connection.execute(statement)], total


def count_busy(connection: Connection, organization_id: str, home_id: str | None) -> int:
    """How many workspaces of an organization are active or preparing in a home."""
    statement = (
        select(func.count())
        .select_from(workspaces)
        .where(
            workspaces.c.organization_id == organization_id,
            workspaces.c.home_id == home_id,
            workspaces.c.status.in_(BUSY),
            workspaces.c.warm_state.is_(None),
        )
    )
    return connection.execute(statement).scalar_one()


def add_workspace(
    connection: Connection, row_id: str, repositories: list[dict[str, str]], **values: Any
) -> None:
    """Stores a workspace that begins to be prepared.

    Raises:
        IntegrityError: its name is taken in its organization.
    """
    start = {
        "id": row_id,
        "status": WorkspaceStatus.PREPARING,
        "repositories_json": json.dumps(repositories),
        "repository_statuses_json": "[]",
        "wake_wanted": False,
        "next_event_index": 1,
        "next_history_index": 0,
        "journal_index": 0,
    }
    connection.execute(insert(workspaces).values(**start, **values))


def change_workspace(connection: Connection, workspace_id: str, **values: Any) -> None:
    """Sets columns of a workspace; nothing happens when it is gone."""
    connection.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(**values))


def remove_workspace(connection: Connection, workspace_id: str) -> bool:
    """Removes a workspace with its chats, messages and events; False when it was gone."""
    done = connection.execute(delete(workspaces).where(workspaces.c.id == workspace_id))
    return done.rowcount > 0
