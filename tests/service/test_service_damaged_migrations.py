"""Rows and tables that are damaged when an earlier database is migrated: nothing is lost, and the reason is said."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from quarterdeck.service.db.database import (
    HEAD,
    REVISIONS,
    Database,
    sqlite_url,
    stored_revision,
    writing_engine,
)
from quarterdeck.service.db.migrations import upgrade
from quarterdeck.service.errors import StorageError
from quarterdeck.service.vault import Vault, seal_all
from tests.security.test_at_rest import OLD, insert

COPED = {
    "a secret that is no text": "UPDATE workspaces SET engine_secret = X'61ff62'",
    "a secret that is a number": "UPDATE workspaces SET webhook_url = 47",
    "a file that is no text": "UPDATE environment_files SET content = X'00ff'",
    "a file that is not UTF-8": "UPDATE environment_files SET content = CAST(X'61ff62' AS TEXT)",
    "an address of a call that is no text": "UPDATE webhook_deliveries SET url = X'ff'",
    "JSON that is none": "UPDATE workspaces SET repositories_json = '{', repository_statuses_json = X'ff'",
    "a chat of no replica": "UPDATE chats SET workspace_id = 'gone'",
    "a call of no organization": "UPDATE webhook_deliveries SET organization_id = 'gone'",
    "a replica of no environment": "UPDATE workspaces SET environment_id = 'gone', organization_id = 'gone'",
    "a number that is text": "UPDATE workspaces SET journal_index = 'many', next_event_index = ''",
    "a state that is unknown": "UPDATE chats SET deletion = X'ff'",
    "announced models that are none": "INSERT INTO agent_models VALUES ('gone', 'x', X'ff', 'never')",
    "a mark that is there already": "INSERT INTO settings (name, value, revision) VALUES ('plain-secrets', '1', 0)",
}
REFUSED = {
    "a revision twice": "INSERT INTO alembic_version VALUES ('0002')",
    "no revision": "DELETE FROM alembic_version",
    "an unknown revision": "UPDATE alembic_version SET version_num = X'ff'",
    "a table of a later version": "CREATE TABLE search_texts (id INTEGER)",
    "a column of a later version": "ALTER TABLE workspaces ADD COLUMN driver TEXT",
    "a missing column": "ALTER TABLE environment_files DROP COLUMN content",
    "a missing table": "DROP TABLE webhook_deliveries",
    "a view of another program": "CREATE VIEW mine AS SELECT engine_secret FROM workspaces",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of the first version, with a row in each table that has secrets."""
    path = tmp_path / "old.sqlite3"
    engine = writing_engine(sqlite_url(path))
    with engine.connect() as connection, connection.begin():
        upgrade(connection, REVISIONS[0])
        for table, values in OLD.items():
            insert(connection, table, values)
    engine.dispose()
    return path


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def content(path: Path) -> list[object]:
    """Everything of a database, with its tables."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        tables = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        kinds = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        names = [name.decode() for (name,) in connection.execute(kinds)]
        return [tables, *(connection.execute(f"SELECT * FROM {name}").fetchall() for name in names)]


@pytest.mark.parametrize("statement", COPED.values(), ids=COPED)
async def test_a_damaged_row_does_not_keep_a_database_from_being_migrated(
    path: Path, tmp_path: Path, statement: str
) -> None:
    damage(path, statement)
    vault = await Vault.open(tmp_path / "master.key")
    database = await Database.open(sqlite_url(path))
    await seal_all(database, vault)
    assert await database.read(stored_revision) == HEAD
    sealed = text("SELECT content_sealed FROM environment_files")
    assert (await database.read(lambda c: c.execute(sealed).scalar_one())).startswith("v1:")
    await database.close()


@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED)
async def test_a_database_that_cannot_be_migrated_stays_as_it_was(
    path: Path, statement: str
) -> None:
    damage(path, statement)
    before = content(path)
    with pytest.raises(StorageError) as refused:
        await Database.open(sqlite_url(path))
    assert refused.value.for_operator()
    assert content(path) == before
