"""Create the first rows of an installation: an organization, its owner, a key, an environment."""

import asyncio

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.local.home import Home
from quarterdeck.service.db.database import Database
from quarterdeck.service.environments.rows import add_global_environment
from quarterdeck.service.formats import now_text
from quarterdeck.service.identity.authentication import hash_of, new_key, shown_prefix
from quarterdeck.service.identity.rows import (
    KeyScope,
    Person,
    add_key,
    add_member,
    add_organization,
    add_user,
    find_key,
    give_key,
    known_user,
    only_organization,
    role_of,
)
from quarterdeck.service.identity.service import MemberRole
from quarterdeck.service.identity.tokens import ISSUER
from quarterdeck.service.vault import read_key_file, write_key_file

ORGANIZATION_NAME = "Local"
KEY_NAME = "This installation"
OWNER = Person(ISSUER, "owner", name="Owner")
"""The built-in user of an installation: the owner of its unix socket."""


async def ensure_installation(database: Database, home: Home) -> None:
    """Create missing rows; a key file that was lost or belongs elsewhere is created again.

    The key is a personal one of the owner; an earlier version's had no user and gets it here.

    The key's text is on disk before its digest is stored, so no crash leaves an installation
    without a usable key.

    Raises:
        HomeUnusableError: the key file cannot be read or written.
        StorageError: the database cannot be written.
    """
    owner = await _ensure_owner(database)
    await _ensure_key(database, home, owner)


async def owner_of(database: Database) -> str:
    """Return the id of the installation's own user."""
    known = await database.read(lambda c: known_user(c, OWNER))
    assert known is not None  # created before the first request
    return known[0]


async def reaches_private(
    database: Database, outgoing_private: bool | None, user_id: str | None
) -> bool:
    """Return whether a user's calls may reach private addresses: as configured, else the owner's."""
    if outgoing_private is not None:
        return outgoing_private
    return await database.read(lambda c: is_owner(c, user_id))


def is_owner(connection: Connection, user_id: str | None) -> bool:
    """Return whether this is the installation's own user."""
    known = known_user(connection, OWNER) if user_id is not None else None
    return known is not None and known[0] == user_id


async def _ensure_owner(database: Database) -> KeyScope:
    owner = await database.read(_owner)
    if owner is not None:
        return owner
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
    owner = _owner(connection)
    if owner is not None:
        return owner
    now, organization = now_text(), only_organization(connection)
    if organization is None:
        organization = add_organization(connection, ORGANIZATION_NAME, now)
        add_global_environment(connection, organization, now)
    known = known_user(connection, OWNER)
    user_id = known[0] if known else add_user(connection, OWNER, now)
    add_member(connection, organization, user_id, MemberRole.ADMIN, now)
    return KeyScope(organization, user_id)


async def _ensure_key(database: Database, home: Home, owner: KeyScope) -> None:
    key = await asyncio.to_thread(read_key_file, home.key, "Remove it: a new one is made.")
    known = key and await database.read(lambda c: find_key(c, hash_of(key)))
    if not known:
        fresh = new_key()
        await asyncio.to_thread(write_key_file, home.key, fresh)
        await database.write(lambda c: _store_key(c, owner, fresh))
    elif known.user_id is None and known.organization_id == owner.organization_id:
        await database.write(lambda c: give_key(c, known.id, owner))


def _store_key(connection: Connection, owner: KeyScope, key: str) -> None:
    add_key(connection, owner, KEY_NAME, shown_prefix(key), hash_of(key), now_text())
