"""The schema: made at once or by migrations, it is the same; other databases are refused."""

from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

from quarterdeck.service.db.database import Database
from quarterdeck.service.db.engines import sqlite_url, writing_engine
from quarterdeck.service.db.migrations import configuration, upgrade
from quarterdeck.service.db.schema import HEAD, REVISIONS, prepare, stored_revision
from quarterdeck.service.db.tables import metadata
from quarterdeck.service.errors import NewerDatabaseError, StorageError


def definitions(connection: Connection) -> dict[str, str]:
    rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {name: "".join(sql.split()) for name, sql in rows}


def test_migrations_and_tables_make_the_same_schema(tmp_path: Path) -> None:
    migrated = create_engine(sqlite_url(tmp_path / "migrated"))
    made = writing_engine(sqlite_url(tmp_path / "made"))
    prepare(made)
    with migrated.begin() as connection:
        upgrade(connection)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        by_steps = definitions(connection)
    with made.connect() as connection, connection.begin():
        at_once = definitions(connection)
    assert by_steps.keys() == at_once.keys()
    for name in by_steps.keys() - {"alembic_version"}:
        assert sorted(by_steps[name]) == sorted(at_once[name]), name
    migrated.dispose()


def test_the_known_revisions_are_those_of_the_migrations(tmp_path: Path) -> None:
    engine = create_engine(sqlite_url(tmp_path / "any"))
    with engine.connect() as connection:
        scripts = ScriptDirectory.from_config(configuration(connection))
    engine.dispose()
    known = [script.revision for script in scripts.walk_revisions()]
    assert list(reversed(known)) == list(REVISIONS)
    assert scripts.get_current_head() == HEAD


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "newer")
    database = await Database.open(url)
    await database.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num='9999'")))
    await database.close()
    with pytest.raises(NewerDatabaseError, match=r"9999.*newer version"):
        await Database.open(url)


async def test_tables_of_another_program_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other"
    engine = create_engine(sqlite_url(path))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE something (id INTEGER)"))
    engine.dispose()
    with pytest.raises(StorageError, match="another program"):
        await Database.open(sqlite_url(path))


@pytest.mark.parametrize("content", [b"this is no database" * 100])
async def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="not a database"):
        await Database.open(sqlite_url(path))
    assert path.read_bytes() == content


async def test_opening_again_keeps_everything(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "kept")
    database = await Database.open(url)
    statement = text("INSERT INTO settings (name, value, revision) VALUES ('a', 'b', 0)")
    await database.write(lambda c: c.execute(statement))
    await database.close()
    database = await Database.open(url)

    def look(connection: Connection) -> tuple[Any, str | None]:
        value = connection.execute(text("SELECT value FROM settings")).scalar()
        return value, stored_revision(connection)

    assert await database.read(look) == ("b", HEAD)
    await database.close()
