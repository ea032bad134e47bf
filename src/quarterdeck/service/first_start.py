"""What a new installation begins with: an organization, its key, its global environment."""

import asyncio

from sqlalchemy import Connection

from quarterdeck.local.home import Home
from quarterdeck.service.auth import hash_of, new_key, shown_prefix
from quarterdeck.service.db.database import Database
from quarterdeck.service.key_file import read_key_file, write_key_file
from quarterdeck.service.moments import now_text
from quarterdeck.service.records.environments import add_global_environment
from quarterdeck.service.records.organizations import (
    add_key,
    add_organization,
    has_key,
    only_organization,
)

ORGANIZATION_NAME = "Local"
KEY_NAME = "This installation"


async def ensure_installation(database: Database, home: Home) -> None:
    """Makes what is missing; a key file that was lost or belongs elsewhere is made anew.

    The key's text is on disk before its digest is stored, so no crash leaves an installation that
    nobody can open.

    Raises:
        HomeUnusableError: the key file cannot be read or written.
        StorageError: the database cannot be written.
    """
    key = await asyncio.to_thread(read_key_file, home.key)
    if key is not None and await database.read(lambda c: has_key(c, hash_of(key))):
        return
    fresh = new_key()
    await asyncio.to_thread(write_key_file, home.key, fresh)
    await database.write(lambda c: _store(c, fresh))


def _store(connection: Connection, key: str) -> None:
    now = now_text()
    organization = only_organization(connection)
    if organization is None:
        organization = add_organization(connection, ORGANIZATION_NAME, now)
        add_global_environment(connection, organization, now)
    add_key(connection, organization, KEY_NAME, shown_prefix(key), hash_of(key), now)
