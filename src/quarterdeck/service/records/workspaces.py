"""A workspace's row."""

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Select, select

from quarterdeck.service.db.tables import workspaces


@dataclass(frozen=True)
class WorkspaceRow:
    """Every column of `workspaces`, under its own name."""

    id: str
    organization_id: str
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

    def __repr__(self) -> str:
        """Without the secret: rows end up in messages and tracebacks."""
        return f"WorkspaceRow(id={self.id!r}, name={self.name!r}, status={self.status!r})"


def workspace_columns() -> Select[Any]:
    """A select of the columns of `WorkspaceRow`, for a `where` of the caller's."""
    return select(*(workspaces.c[field.name] for field in fields(WorkspaceRow)))


def find_workspace(connection: Connection, workspace_id: str) -> WorkspaceRow | None:
    """The workspace of an id, whoever owns it."""
    row = connection.execute(workspace_columns().where(workspaces.c.id == workspace_id)).first()
    return None if row is None else WorkspaceRow(*row)
