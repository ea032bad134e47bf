"""What a new installation begins with: an organization, its owner, its key, an environment."""

import asyncio

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.local.home import Home
from quarterdeck.service.auth import Role
from quarterdeck.service.db.database import Database
from quarterdeck.service.identity.keys import hash_of, new_key, shown_prefix
from quarterdeck.service.identity.tokens import ISSUER
from quarterdeck.service.key_file import read_key_file, write_key_file
from quarterdeck.service.moments import now_text
from quarterdeck.service.records.api_keys import KeyScope, add_key, find_key, give_key
from quarterdeck.service.records.environments import add_global_environment
from quarterdeck.service.records.organizations import add_organization, only_organization
from quarterdeck.service.records.users import (
    Person,
    add_member,
    add_user,
    known_user,
    role_of,
)

ORGANIZATION_NAME = "Local"
KEY_NAME = "This installation"
OWNER = Person(ISSUER, "owner", name="Owner")
"""The one user that an installation has of itself: whoever its unix socket belongs to."""


async def ensure_installation(database: Database, home: Home) -> None:
    """Makes what is missing; a key file that was lost or belongs elsewhere is made anew.

    The key is a personal one of the owner; an earlier version's had no user and gets it here.

    The key's text is on disk before its digest is stored, so no crash leaves an installation that
    nobody can open.

    Raises:
        HomeUnusableError: the key file cannot be read or written.
        StorageError: the database cannot be written.
    """
    owner = await _ensure_owner(database)
    await _ensure_key(database, home, owner)


async def owner_of(database: Database) -> str:
    """The id of the installation's own user."""
    known = await database.read(lambda c: known_user(c, OWNER))
    assert known is not None  # made before the first request
    return known[0]


def is_owner(connection: Connection, user_id: str | None) -> bool:
    """Whether this is the installation's own user."""
    known = known_user(connection, OWNER) if user_id is not None else None
    return known is not None and known[0] == user_id


async def _ensure_owner(database: Database) -> KeyScope:
    found = await database.read(_owner)
    if found is not None:
        return found
    try:
        return await database.write(_store_owner)
    except IntegrityError:
        # Another service over the same database was first.
        return await database.write(_store_owner)


def _owner(connection: Connection) -> KeyScope | None:
    known, organization = known_user(connection, OWNER), only_organization(connection)
    if known is None or organization is None:
        return None
    member = role_of(connection, organization, known[0]) is not None
    return KeyScope(organization, known[0]) if member else None


def _store_owner(connection: Connection) -> KeyScope:
    found = _owner(connection)
    if found is not None:
        return found
    now, organization = now_text(), only_organization(connection)
    if organization is None:
        organization = add_organization(connection, ORGANIZATION_NAME, now)
        add_global_environment(connection, organization, now)
    known = known_user(connection, OWNER)
    user_id = known[0] if known else add_user(connection, OWNER, now)
    add_member(connection, organization, user_id, Role.ADMIN, now)
    return KeyScope(organization, user_id)


async def _ensure_key(database: Database, home: Home, owner: KeyScope) -> None:
    key = await asyncio.to_thread(read_key_file, home.key)
    found = key and await database.read(lambda c: find_key(c, hash_of(key)))
    if not found:
        fresh = new_key()
        await asyncio.to_thread(write_key_file, home.key, fresh)
        await database.write(lambda c: _store_key(c, owner, fresh))
    elif found.user_id is None and found.organization_id == owner.organization_id:
        await database.write(lambda c: give_key(c, found.id, owner))


def _store_key(connection: Connection, owner: KeyScope, key: str) -> None:
    add_key(connection, owner, KEY_NAME, shown_prefix(key), hash_of(key), now_text())
