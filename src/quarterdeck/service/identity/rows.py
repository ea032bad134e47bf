"""Rows of people, organizations, API keys and device codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update

from quarterdeck.service.db.records import as_record, readable
from quarterdeck.service.db.tables import api_keys, device_codes, members, organizations, users
from quarterdeck.wire.account import ApiKey, Organization, User


@dataclass(frozen=True)
class Person:
    """A user's data from the issuer of their tokens."""

    issuer: str
    subject: str
    email: str | None = None
    name: str | None = None


def find_user(connection: Connection, user_id: str) -> User | None:
    """Return the user of an id."""
    columns = (users.c.id, users.c.email, users.c.name, users.c.created_at)
    row = connection.execute(select(*columns).where(users.c.id == user_id)).mappings().first()
    return None if row is None else as_record(User, row)


def known_user(connection: Connection, person: Person) -> tuple[str, bool] | None:
    """Return the id of a user, and whether the stored data is up to date."""
    statement = select(users).where(
        users.c.issuer == person.issuer, users.c.subject == person.subject
    )
    row = connection.execute(statement).first()
    if row is None:
        return None
    return row.id, (row.email, row.name) == (person.email, person.name)


def add_user(connection: Connection, person: Person, now: str) -> str:
    """Store a user and return the id. IntegrityError when the issuer's subject exists."""
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
    """Store the issuer's current data of a user."""
    values = {"email": person.email, "name": person.name}
    connection.execute(update(users).where(users.c.id == user_id).values(**values))


def add_member(
    connection: Connection, organization_id: str, user_id: str, role: str, now: str
) -> None:
    """Make a user a member. IntegrityError when they are one."""
    connection.execute(
        insert(members).values(
            organization_id=organization_id, user_id=user_id, role=role, created_at=now
        )
    )


def role_of(connection: Connection, organization_id: str, user_id: str) -> str | None:
    """Return a user's role in an organization; None for a non-member."""
    statement = select(members.c.role).where(
        members.c.organization_id == organization_id, members.c.user_id == user_id
    )
    return connection.execute(statement).scalar()


def organizations_of(connection: Connection, user_id: str) -> list[Organization]:
    """Return the organizations of a user, by name."""
    statement = (
        select(organizations.c.id, organizations.c.name, members.c.role)
        .join(members, members.c.organization_id == organizations.c.id)
        .where(members.c.user_id == user_id)
        .order_by(organizations.c.name, organizations.c.id)
    )
    rows = connection.execute(statement).mappings()
    return readable(rows, partial(as_record, Organization))


def organization_name(connection: Connection, organization_id: str) -> str:
    """Return the name of an existing organization."""
    statement = select(organizations.c.name).where(organizations.c.id == organization_id)
    return connection.execute(statement).scalar_one()


def only_organization(connection: Connection) -> str | None:
    """Return the organization of this installation, the oldest when there are several."""
    statement = select(organizations.c.id).order_by(organizations.c.created_at).limit(1)
    return connection.execute(statement).scalar()


def add_organization(connection: Connection, name: str, now: str) -> str:
    """Store an organization and return its id."""
    organization_id = str(uuid4())
    connection.execute(insert(organizations).values(id=organization_id, name=name, created_at=now))
    return organization_id


@dataclass(frozen=True)
class KeyScope:
    """The owner of keys: a user if there is one, else an organization.

    With an empty `organization_id`, a user's keys of every organization.
    """

    organization_id: str
    user_id: str | None


@dataclass(frozen=True)
class KeyRow:
    """The key of a digest; `role` is None for a user who is no longer a member."""

    id: str
    organization_id: str
    user_id: str | None
    role: str | None


def find_key(connection: Connection, key_hash: str) -> KeyRow | None:
    """Return the key with a digest."""
    belongs = and_(
        members.c.organization_id == api_keys.c.organization_id,
        members.c.user_id == api_keys.c.user_id,
    )
    statement = (
        select(api_keys.c.id, api_keys.c.organization_id, api_keys.c.user_id, members.c.role)
        .select_from(api_keys.outerjoin(members, belongs))
        .where(api_keys.c.key_hash == key_hash)
    )
    row = connection.execute(statement).first()
    return None if row is None else KeyRow(*row)


def add_key(
    connection: Connection, scope: KeyScope, name: str, prefix: str, key_hash: str, now: str
) -> ApiKey:
    """Store a key; `prefix` is the part of its text that may be shown."""
    shown = {"id": str(uuid4()), "name": name, "key_prefix": prefix, "created_at": now}
    connection.execute(
        insert(api_keys).values(
            organization_id=scope.organization_id,
            user_id=scope.user_id,
            key_hash=key_hash,
            last_used_at=None,
            **shown,
        )
    )
    return ApiKey.model_validate(shown)


def give_key(connection: Connection, key_id: str, scope: KeyScope) -> None:
    """Turn an organization's key into a personal one."""
    connection.execute(
        update(api_keys)
        .where(api_keys.c.id == key_id, api_keys.c.user_id.is_(None))
        .values(user_id=scope.user_id)
    )


def page_of_keys(
    connection: Connection, scope: KeyScope, offset: int, limit: int
) -> tuple[list[ApiKey], int]:
    """Return a page of the keys, newest first, and how many there are."""
    columns = [api_keys.c[name] for name in ApiKey.model_fields]
    statement = (
        select(*columns)
        .where(_within(scope))
        .order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        .offset(offset)
        .limit(limit)
    )
    counting = select(func.count()).select_from(api_keys).where(_within(scope))
    rows = connection.execute(statement).mappings()
    keys = readable(rows, partial(as_record, ApiKey))
    return keys, connection.execute(counting).scalar_one()


def remove_key(connection: Connection, scope: KeyScope, key_id: str) -> bool:
    """Remove a key; False when there is none of this id."""
    statement = delete(api_keys).where(_within(scope), api_keys.c.id == key_id)
    return connection.execute(statement).rowcount == 1


def store_uses(connection: Connection, uses: Mapping[str, str]) -> None:
    """Store when keys (by id) were last used; never an earlier moment than the stored one."""
    for key_id, moment in uses.items():
        older = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < moment)
        connection.execute(
            update(api_keys).where(api_keys.c.id == key_id, older).values(last_used_at=moment)
        )


def _within(scope: KeyScope) -> ColumnElement[bool]:
    of_user = (
        api_keys.c.user_id.is_(None)
        if scope.user_id is None
        else api_keys.c.user_id == scope.user_id
    )
    if scope.user_id is not None and not scope.organization_id:
        return of_user
    return and_(of_user, api_keys.c.organization_id == scope.organization_id)


@dataclass(frozen=True)
class DeviceRow:
    """One request; approved when it has a user."""

    id: str
    user_id: str | None
    denied: bool
    expires_at: str
    polled_at: str | None


def add_device(
    connection: Connection,
    device_hash: str,
    user_code: str,
    expires_at: str,
    user_id: str | None,
) -> None:
    """Store a request. IntegrityError when the code is taken."""
    connection.execute(
        insert(device_codes).values(
            id=str(uuid4()),
            device_hash=device_hash,
            user_code=user_code,
            user_id=user_id,
            denied=False,
            expires_at=expires_at,
            polled_at=None,
        )
    )


def find_device(connection: Connection, device_hash: str) -> DeviceRow | None:
    """Return the request of a device code's digest."""
    columns = [device_codes.c[name] for name in DeviceRow.__dataclass_fields__]
    statement = select(*columns).where(device_codes.c.device_hash == device_hash)
    row = connection.execute(statement).first()
    return None if row is None else DeviceRow(*row)


def note_poll(connection: Connection, device_id: str, now: str) -> None:
    """Note when a device last polled."""
    statement = update(device_codes).where(device_codes.c.id == device_id)
    connection.execute(statement.values(polled_at=now))


def take_device(connection: Connection, device_id: str) -> bool:
    """Remove a request; False when another poll was first."""
    return (
        connection.execute(delete(device_codes).where(device_codes.c.id == device_id)).rowcount == 1
    )


def decide(connection: Connection, user_code: str, user_id: str | None, now: str) -> bool:
    """Approve an open request for a user, or deny it without one; False when none is open."""
    statement = (
        update(device_codes)
        .where(
            device_codes.c.user_code == user_code,
            device_codes.c.user_id.is_(None),
            device_codes.c.denied.is_(False),
            device_codes.c.expires_at > now,
        )
        .values(user_id=user_id, denied=user_id is None)
    )
    return connection.execute(statement).rowcount == 1


def count_waiting(connection: Connection, now: str) -> int:
    """Return how many requests wait for a decision."""
    waiting = select(func.count()).where(
        device_codes.c.user_id.is_(None),
        device_codes.c.denied.is_(False),
        device_codes.c.expires_at > now,
    )
    return connection.execute(waiting).scalar_one()


def forget_expired(connection: Connection, before: str) -> None:
    """Remove requests that expired before a moment."""
    connection.execute(delete(device_codes).where(device_codes.c.expires_at < before))
