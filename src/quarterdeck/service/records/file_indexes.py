"""Indexes of workspaces' files, as rows: one of the engine's and one fallback each."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select

from quarterdeck.service.db.tables import file_indexes, workspaces


class Origin(StrEnum):
    """Where an index comes from."""

    ENGINE = "engine"
    FALLBACK = "fallback"


@dataclass(frozen=True)
class SavedIndex:
    """An index without its files. `indexed_at` is its version."""

    workspace_id: str
    origin: Origin
    truncated: bool
    indexed_at: str


def save_index(connection: Connection, index: SavedIndex, files: bytes) -> None:
    """Stores an index in place of the one before; nothing happens when its workspace is gone."""
    there = select(workspaces.c.id).where(workspaces.c.id == index.workspace_id)
    if connection.execute(there).first() is None:
        return
    connection.execute(
        delete(file_indexes).where(
            file_indexes.c.workspace_id == index.workspace_id,
            file_indexes.c.origin == index.origin,
        )
    )
    connection.execute(
        insert(file_indexes).values(
            workspace_id=index.workspace_id,
            origin=index.origin,
            files=files,
            truncated=index.truncated,
            indexed_at=index.indexed_at,
        )
    )


def find_index(
    connection: Connection, workspace_id: str, origin: Origin, since: str
) -> SavedIndex | None:
    """The index of an origin, unless it was made before `since`."""
    statement = select(file_indexes.c.truncated, file_indexes.c.indexed_at).where(
        file_indexes.c.workspace_id == workspace_id,
        file_indexes.c.origin == origin,
        file_indexes.c.indexed_at >= since,
    )
    row = connection.execute(statement).first()
    return None if row is None else SavedIndex(workspace_id, origin, row.truncated, row.indexed_at)


def files_of(connection: Connection, index: SavedIndex) -> bytes | None:
    """The packed files of an index; None when another one took its place meanwhile."""
    statement = select(file_indexes.c.files).where(
        file_indexes.c.workspace_id == index.workspace_id,
        file_indexes.c.origin == index.origin,
        file_indexes.c.indexed_at == index.indexed_at,
    )
    return connection.execute(statement).scalar()
