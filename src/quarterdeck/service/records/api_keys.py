"""API keys: digests and what may be shown of them. A key without a user is an organization's."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from quarterdeck.service.db.tables import api_keys, members
from quarterdeck.wire.api_keys import ApiKey


@dataclass(frozen=True)
class KeyScope:
    """Whose keys: a user's when there is one, else an organization's.

    A user's keys of every organization when `organization_id` is empty.
    """

    organization_id: str
    user_id: str | None


@dataclass(frozen=True)
class KeyRow:
    """What a digest stands for; `role` is None for a user who is no member any more."""

    id: str
    organization_id: str
    user_id: str | None
    role: str | None


def find_key(connection: Connection, key_hash: str) -> KeyRow | None:
    """The key with a digest."""
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
    """Stores a key; `prefix` is the part of its text that may be shown."""
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
    """Makes an organization's key a personal one."""
    connection.execute(
        update(api_keys)
        .where(api_keys.c.id == key_id, api_keys.c.user_id.is_(None))
        .values(user_id=scope.user_id)
    )


def page_of_keys(
    connection: Connection, scope: KeyScope, offset: int, limit: int
) -> tuple[list[ApiKey], int]:
    """A part of the keys, newest first, and how many there are."""
    columns = [api_keys.c[name] for name in ApiKey.model_fields]
    statement = (
        select(*columns)
        .where(_within(scope))
        .order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        .offset(offset)
        .limit(limit)
    )
    counting = select(func.count()).select_from(api_keys).where(_within(scope))
    found = [ApiKey.model_validate(dict(r)) for r in connection.execute(statement).mappings()]
    return found, connection.execute(counting).scalar_one()


def remove_key(connection: Connection, scope: KeyScope, key_id: str) -> bool:
    """Takes a key away; False when there is none of this id."""
    statement = delete(api_keys).where(_within(scope), api_keys.c.id == key_id)
    return connection.execute(statement).rowcount == 1


def store_uses(connection: Connection, uses: Mapping[str, str]) -> None:
    """Stores when keys (by id) were last used; never an earlier moment than the stored one."""
    for key_id, moment in uses.items():
        older = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < moment)
        connection.execute(
            update(api_keys).where(api_keys.c.id == key_id, older).values(last_used_at=moment)
        )


def _within(scope: KeyScope) -> ColumnElement[bool]:
    whose = (
        api_keys.c.user_id.is_(None)
        if scope.user_id is None
        else api_keys.c.user_id == scope.user_id
    )
    if scope.user_id is not None and not scope.organization_id:
        return whose
    return and_(whose, api_keys.c.organization_id == scope.organization_id)
