"""Notes of files that are left of a workspace that is gone."""

from sqlalchemy import Connection, delete, insert, select

from quarterdeck.service.db.tables import settings

NOTE = "remove/"
"""Begins a note's name; its value is the home that has the files."""


def note_removal(connection: Connection, workspace_id: str, home_id: str) -> None:
    """The record is gone, the files are not yet."""
    connection.execute(insert(settings).values(name=NOTE + workspace_id, value=home_id, revision=0))


def end_removal(connection: Connection, workspace_id: str) -> None:
    """The files are gone, too."""
    connection.execute(delete(settings).where(settings.c.name == NOTE + workspace_id))


def removals_left(connection: Connection, home_id: str) -> list[str]:
    """Workspaces whose files a home still has."""
    names = connection.execute(
        select(settings.c.name).where(settings.c.name.startswith(NOTE), settings.c.value == home_id)
    )
    return [name.removeprefix(NOTE) for name in names.scalars()]
