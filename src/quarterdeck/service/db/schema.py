"""Update a database's schema.

An empty database is created from `tables` directly and marked with the newest revision; migrations
(and Alembic, which takes 0.3 s to import) are needed only for one that an older version wrote. A
test checks that both give the same schema.
"""

from collections.abc import Sequence

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, insert, inspect, select
from sqlalchemy.exc import DBAPIError

from quarterdeck.service.db.faults import as_storage_error
from quarterdeck.service.db.tables import metadata
from quarterdeck.service.errors import NewerDatabaseError, StorageError

REVISIONS: Sequence[str] = ("0.1.0",)
"""All revisions, oldest first."""

HEAD = REVISIONS[-1]

_marks = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def prepare(engine: Engine) -> None:
    """Create the tables, or migrate those of an older version; one process at a time.

    Raises:
        NewerDatabaseError: a newer version of the program wrote the database.
        StorageError: it cannot be opened, is not a database, or belongs to another program.
    """
    try:
        with engine.connect() as connection, connection.begin():
            bring_up_to_date(connection)
    except DBAPIError as e:
        raise as_storage_error(e) from e


def bring_up_to_date(connection: Connection) -> None:
    """Prepare within a running transaction of a writing connection."""
    match stored_revision(connection):
        case None:
            _create(connection)
        case revision if revision == HEAD:
            return
        case revision if revision in REVISIONS:
            from quarterdeck.service.db.migrations import upgrade  # slow to import, rarely needed

            upgrade(connection)
        case revision:
            raise NewerDatabaseError(
                f"The database has revision {revision}, and this version of quarterdeck knows revisions "
                f"up to {HEAD}: a newer version wrote it, or one from before the first release. Install "
                "the version that wrote it, or choose another database."
            )


def stored_revision(connection: Connection) -> str | None:
    """Return the revision that a database has, None when it has none."""
    if not inspect(connection).has_table(_marks.name):
        return None
    return connection.execute(select(_marks.c.version_num)).scalar_one_or_none()


def _create(connection: Connection) -> None:
    if inspect(connection).get_table_names():
        raise StorageError("The database holds tables of another program; choose another one.")
    metadata.create_all(connection, checkfirst=False)
    _marks.create(connection)
    connection.execute(insert(_marks).values(version_num=HEAD))
