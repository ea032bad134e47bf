"""Organizations."""

from uuid import uuid4

from sqlalchemy import Connection, insert, select

from quarterdeck.service.db.tables import organizations


def only_organization(connection: Connection) -> str | None:
    """The organization of this installation, the oldest when there are several."""
    statement = select(organizations.c.id).order_by(organizations.c.created_at).limit(1)
    return connection.execute(statement).scalar()


def add_organization(connection: Connection, name: str, now: str) -> str:
    """Stores an organization and returns its id."""
    organization_id = str(uuid4())
    connection.execute(insert(organizations).values(id=organization_id, name=name, created_at=now))
    return organization_id
