"""Users and what they are members of."""

from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection, insert, select, update

from quarterdeck.service.db.tables import members, organizations, users
from quarterdeck.wire.users import Organization, User


@dataclass(frozen=True)
class Person:
    """A user as the issuer of their tokens knows them."""

    issuer: str
    subject: str
    email: str | None = None
    name: str | None = None


def find_user(connection: Connection, user_id: str) -> User | None:
    """The user of an id."""
    columns = (users.c.id, users.c.email, users.c.name, users.c.created_at)
    row = connection.execute(select(*columns).where(users.c.id == user_id)).mappings().first()
    return None if row is None else User.model_validate(dict(row))


def known_user(connection: Connection, person: Person) -> tuple[str, bool] | None:
    """The id of a user, and whether what is stored of them is still so."""
    statement = select(users).where(
        users.c.issuer == person.issuer, users.c.subject == person.subject
    )
    row = connection.execute(statement).first()
    if row is None:
        return None
    return row.id, (row.email, row.name) == (person.email, person.name)


def add_user(connection: Connection, person: Person, now: str) -> str:
    """Stores a user and returns the id. IntegrityError when the issuer's subject is known."""
    user_id = str(uuid4())
    connection.execute(
        insert(users).values(
            id=user_id,
            issuer=person.issuer,
            subject=person.subject,
            email=person.email,
            name=person.name,
            created_at=now,
        )
    )
    return user_id


def rename_user(connection: Connection, user_id: str, person: Person) -> None:
    """Stores what the issuer now tells of a user."""
    values = {"email": person.email, "name": person.name}
    connection.execute(update(users).where(users.c.id == user_id).values(**values))


def add_member(
    connection: Connection, organization_id: str, user_id: str, role: str, now: str
) -> None:
    """Makes a user a member. IntegrityError when they are one."""
    connection.execute(
        insert(members).values(
            organization_id=organization_id, user_id=user_id, role=role, created_at=now
        )
    )


def role_of(connection: Connection, organization_id: str, user_id: str) -> str | None:
    """A user's role in an organization; None who is no member."""
    statement = select(members.c.role).where(
        members.c.organization_id == organization_id, members.c.user_id == user_id
    )
    return connection.execute(statement).scalar()


def organizations_of(connection: Connection, user_id: str) -> list[Organization]:
    """What a user is a member of, by name."""
    statement = (
        select(organizations.c.id, organizations.c.name, members.c.role)
        .join(members, members.c.organization_id == organizations.c.id)
        .where(members.c.user_id == user_id)
        .order_by(organizations.c.name, organizations.c.id)
    )
    return [Organization.model_validate(dict(r)) for r in connection.execute(statement).mappings()]


def organization_name(connection: Connection, organization_id: str) -> str:
    """The name of an organization that is there."""
    statement = select(organizations.c.name).where(organizations.c.id == organization_id)
    return connection.execute(statement).scalar_one()
