"""The schema: made at once or by migrations, it is the same; other databases are refused."""

from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from quarterdeck.service.db.database import (
    HEAD,
    REVISIONS,
    Database,
    prepare,
    stored_revision,
    writing_engine,
)
from quarterdeck.service.db.migrations import configuration, upgrade
from quarterdeck.service.db.tables import metadata
from quarterdeck.service.errors import NewerDatabaseError, StorageError

_SQLITE = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_POSTGRESQL = """
SELECT r.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
       a.attnotnull, c.collname, pg_get_expr(d.adbin, d.adrelid))
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
  LEFT JOIN pg_collation c ON c.oid = a.attcollation
  LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
 WHERE r.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
   AND r.relnamespace = 'public'::regnamespace
UNION ALL SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'constraint ' || conname, pg_get_constraintdef(oid) FROM pg_constraint
 WHERE connamespace = 'public'::regnamespace
"""


def definitions(connection: Connection) -> dict[str, str]:
    query = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    return {name: "".join(sql.split()) for name, sql in connection.execute(text(query))}


def wiped(connection: Connection) -> None:
    """Back to an empty database."""
    metadata.drop_all(connection)
    connection.execute(text("DROP TABLE alembic_version"))


def _is_described(_: Any, name: str, kind: str, *__: Any) -> bool:
    """Tables of SQLAlchemy do not describe full-text indexes; their definitions are compared too."""
    of_search = ("search_words", "ix_search_texts_words")
    return not name.startswith(of_search) and (kind, name) != ("column", "words")


def test_migrations_and_tables_make_the_same_schema(empty_database_url: str) -> None:
    engine = writing_engine(empty_database_url)
    prepare(engine)
    with engine.connect() as connection, connection.begin():
        at_once = definitions(connection)
        wiped(connection)
        assert not definitions(connection)
        upgrade(connection)
        described = MigrationContext.configure(connection, opts={"include_object": _is_described})
        assert compare_metadata(described, metadata) == []
        by_steps = definitions(connection)
    for made in (at_once, by_steps):
        for name in [name for name in made if "alembic_version" in name]:
            del made[name]
    assert by_steps.keys() ^ at_once.keys() == set() and len(at_once) > 20
    for name in by_steps:
        assert sorted(by_steps[name]) == sorted(at_once[name]), name


async def test_the_keys_of_an_owner_are_found_by_an_index(database_url: str) -> None:
    database = await Database.open(database_url)
    indexes = await database.read(lambda c: inspect(c).get_indexes("api_keys"))
    await database.close()
    assert ["organization_id", "user_id"] in [index["column_names"] for index in indexes]


async def test_a_database_of_the_first_version_is_migrated(empty_database_url: str) -> None:
    engine = writing_engine(empty_database_url)
    statement = text("INSERT INTO organizations (id, name, created_at) VALUES ('1', 'Kept', '2')")
    with engine.connect() as connection, connection.begin():
        upgrade(connection, REVISIONS[0])
        connection.execute(statement)
    database = await Database.open(empty_database_url)
    kept = text("SELECT name FROM organizations")
    assert await database.read(lambda c: c.execute(kept).scalar()) == "Kept"
    assert await database.read(stored_revision) == HEAD
    await database.close()


def test_the_known_revisions_are_those_of_the_migrations(empty_database_url: str) -> None:
    engine = writing_engine(empty_database_url)
    with engine.connect() as connection:
        scripts = ScriptDirectory.from_config(configuration(connection))
    known = [script.revision for script in scripts.walk_revisions()]
    assert list(reversed(known)) == list(REVISIONS)
    assert scripts.get_current_head() == HEAD


async def test_a_database_of_a_newer_version_is_refused(database_url: str) -> None:
    database = await Database.open(database_url)
    await database.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num='9999'")))
    await database.close()
    with pytest.raises(NewerDatabaseError, match=r"9999.*newer version"):
        await Database.open(database_url)


async def test_tables_of_another_program_are_refused(empty_database_url: str) -> None:
    engine = writing_engine(empty_database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE something (id INTEGER)"))
    with pytest.raises(StorageError, match="another program"):
        await Database.open(empty_database_url)


async def test_opening_again_keeps_everything(database_url: str) -> None:
    database = await Database.open(database_url)
    statement = text("INSERT INTO settings (name, value, revision) VALUES ('a', 'b', 0)")
    await database.write(lambda c: c.execute(statement))
    await database.close()
    database = await Database.open(database_url)

    def look(connection: Connection) -> tuple[Any, str | None]:
        value = connection.execute(text("SELECT value FROM settings")).scalar()
        return value, stored_revision(connection)

    assert await database.read(look) == ("b", HEAD)
    await database.close()
