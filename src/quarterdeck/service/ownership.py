"""A shared database belongs to one installation.

Workspaces lie in an installation's home, and secrets are sealed with its master key. A service with
another home would take the workspaces for lost and could open no secret; so it is refused before it
changes anything. A second machine may take over when it has the same home, or a copy of it.
"""

from sqlalchemy import Connection, insert, select

from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import settings
from quarterdeck.service.errors import ForeignDatabaseError
from quarterdeck.service.vault import Vault

NAME = "installation"


async def claim(database: Database, vault: Vault) -> None:
    """Marks a new database as the installation's own.

    Raises:
        ForeignDatabaseError: it is another installation's.
        StorageError: it cannot be read or written.
    """
    own = vault.derived(NAME).hex()
    if await database.write(lambda c: _owner(c, own)) != own:
        raise ForeignDatabaseError(
            "The database belongs to another installation, whose master key this home does not "
            "have. Set QUARTERDECK_HOME to that installation's directory, or name another database."
        )


def _owner(connection: Connection, own: str) -> str:
    stored = connection.execute(select(settings.c.value).where(settings.c.name == NAME)).scalar()
    if stored is not None:
        return stored
    connection.execute(insert(settings).values(name=NAME, value=own, revision=0))
    return own
