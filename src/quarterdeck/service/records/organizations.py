"""Organizations and their keys."""

from uuid import uuid4

from sqlalchemy import Connection, insert, select

from quarterdeck.service.db.tables import api_keys, organizations


def only_organization(connection: Connection) -> str | None:
    """The organization of this installation, the oldest when there are several."""
    statement = select(organizations.c.id).order_by(organizations.c.created_at).limit(1)
    return connection.execute(statement).scalar()


def add_organization(connection: Connection, name: str, now: str) -> str:
    """Stores an organization and returns its id."""
    organization_id = str(uuid4())
    connection.execute(insert(organizations).values(id=organization_id, name=name, created_at=now))
    return organization_id


def has_key(connection: Connection, key_hash: str) -> bool:
    """Whether a key with this digest is accepted."""
    statement = select(api_keys.c.id).where(api_keys.c.key_hash == key_hash)
    return connection.execute(statement).first() is not None


def add_key(
    connection: Connection, organization_id: str, name: str, prefix: str, key_hash: str, now: str
) -> None:
    """Stores an organization key; `prefix` is the part of its text that may be shown."""
    connection.execute(
        insert(api_keys).values(
            id=str(uuid4()),
            organization_id=organization_id,
            user_id=None,
            name=name,
            key_prefix=prefix,
            key_hash=key_hash,
            created_at=now,
            last_used_at=None,
        )
    )
