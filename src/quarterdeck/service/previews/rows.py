"""Rows of previews."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select

from quarterdeck.service.db.tables import previews, settings, workspaces

PORT_SETTING = "previews/port"
"""An earlier version's name, when a database had one home."""


@dataclass(frozen=True)
class PreviewRow:
    """One preview. Anyone with its token may open it."""

    workspace_id: str
    port: int
    token: str
    created_at: str


@dataclass(frozen=True)
class PreviewTarget:
    """The target of a token: a port, and the state of its workspace."""

    workspace_id: str
    port: int
    status: str


_columns = (previews.c.workspace_id, previews.c.port, previews.c.token, previews.c.created_at)


def port_setting(home_id: str) -> str:
    """Return the name of the setting with a home's port."""
    return f"{PORT_SETTING}/{home_id}"


def add_preview(connection: Connection, row: PreviewRow) -> None:
    """Store a preview.

    Raises:
        IntegrityError: the workspace has one of this port, or was deleted.
    """
    connection.execute(insert(previews).values(**row.__dict__))


def remove_preview(connection: Connection, workspace_id: str, port: int) -> bool:
    """Remove a preview; False when there is none."""
    statement = delete(previews).where(
        previews.c.workspace_id == workspace_id, previews.c.port == port
    )
    return connection.execute(statement).rowcount > 0


def previews_of(connection: Connection, workspace_id: str) -> list[PreviewRow]:
    """Return those of a workspace, by port."""
    statement = (
        select(*_columns).where(previews.c.workspace_id == workspace_id).order_by(previews.c.port)
    )
    return [PreviewRow(*row) for row in connection.execute(statement)]


def count_previews(connection: Connection, home_id: str) -> int:
    """Return the number of previews of all workspaces of a home."""
    statement = (
        select(func.count())
        .select_from(previews)
        .join(workspaces, workspaces.c.id == previews.c.workspace_id)
        .where(workspaces.c.home_id == home_id)
    )
    return connection.execute(statement).scalar_one()


def find_target(connection: Connection, home_id: str, token: str) -> PreviewTarget | None:
    """Return the target of a token in a home; in another home the port is another program's."""
    statement = (
        select(previews.c.workspace_id, previews.c.port, workspaces.c.status)
        .join(workspaces, workspaces.c.id == previews.c.workspace_id)
        .where(previews.c.token == token, workspaces.c.home_id == home_id)
    )
    row = connection.execute(statement).first()
    return None if row is None else PreviewTarget(*row)


def kept_port(connection: Connection, home_id: str) -> int | None:
    """Return the port that a home's previews were last served on."""
    statement = select(settings.c.value).where(settings.c.name == port_setting(home_id))
    value = connection.execute(statement).scalar()
    return int(value) if value is not None else None


def keep_port(connection: Connection, home_id: str, port: int) -> None:
    """Store the port, so that URLs stay the same over a restart."""
    name = port_setting(home_id)
    connection.execute(delete(settings).where(settings.c.name == name))
    connection.execute(insert(settings).values(name=name, value=str(port), revision=0))
