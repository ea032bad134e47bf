"""A shared database belongs to one master key.

Secrets are sealed with it: a service with another key could open none of them. So it is refused
before it changes anything. Services that share a database each have a home of their own, and a copy
of the one key.
"""

from pathlib import Path

from sqlalchemy import Connection, insert, select

from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import settings
from quarterdeck.service.errors import ForeignDatabaseError
from quarterdeck.service.vault import Vault

NAME = "installation"


async def claim(database: Database, vault: Vault, key_file: Path) -> None:
    """Marks a new database as that of a master key.

    Raises:
        ForeignDatabaseError: it is another key's.
        StorageError: it cannot be read or written.
    """
    own = vault.derived(NAME).hex()
    if await database.write(lambda c: _owner(c, own)) != own:
        raise ForeignDatabaseError(
            "The database belongs to another installation, whose master key this home does not "
            f"have. To share the database, copy service/master.key of a home that uses it to "
            f"{key_file} (mode 0600) and start again; or name another database."
        )


def _owner(connection: Connection, own: str) -> str:
    stored = connection.execute(select(settings.c.value).where(settings.c.name == NAME)).scalar()
    if stored is not None:
        return stored
    connection.execute(insert(settings).values(name=NAME, value=own, revision=0))
    return own
