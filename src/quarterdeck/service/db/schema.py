"""Brings a database's schema up to date.

An empty database is made from `tables` directly and marked with the newest revision; migrations
(and Alembic, which takes 0.3 s to import) are needed only for one that an older version wrote. A
test holds the two ways equal.
"""

from collections.abc import Sequence

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, insert, inspect, select
from sqlalchemy.exc import DBAPIError

from quarterdeck.service.db.faults import as_storage_error
from quarterdeck.service.db.tables import metadata
from quarterdeck.service.errors import NewerDatabaseError, StorageError

REVISIONS: Sequence[str] = ("0001", "0002", "0003", "0004", "0005", "0006")
"""Every revision there is, oldest first."""

HEAD = REVISIONS[-1]

_marks = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def prepare(engine: Engine) -> None:
    """Makes the tables, or migrates those of an older version; one process at a time.

    Raises:
        NewerDatabaseError: a newer version of the program wrote the database.
        StorageError: it cannot be opened, is no database, or belongs to another program.
    """
    try:
        with engine.connect() as connection, connection.begin():
            bring_up_to_date(connection)
    except DBAPIError as e:
        raise as_storage_error(e) from e


def bring_up_to_date(connection: Connection) -> None:
    """As `prepare`, within a running transaction of a writing connection."""
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
                f"The database has revision {revision} and was written by a newer version of "
                f"quarterdeck; this one knows revisions up to {HEAD}. Install the newer version."
            )


def stored_revision(connection: Connection) -> str | None:
    """The revision that a database has, None when it has none."""
    if not inspect(connection).has_table(_marks.name):
        return None
    return connection.execute(select(_marks.c.version_num)).scalar_one_or_none()


def _create(connection: Connection) -> None:
    if inspect(connection).get_table_names():
        raise StorageError("The database holds tables of another program; choose another one.")
    metadata.create_all(connection, checkfirst=False)
    _marks.create(connection)
    connection.execute(insert(_marks).values(version_num=HEAD))
