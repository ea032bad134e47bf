"""What only SQLite's files can do wrong."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from quarterdeck.service.db.database import Database, _sqlite_reading, sqlite_url
from quarterdeck.service.errors import DatabaseLockedError, StorageError


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


def put(name: str):
    statement = text("INSERT INTO settings (name, value, revision) VALUES (:name, '', 0)")

    def run(connection: Connection) -> None:
        connection.execute(statement, {"name": name})

    return run


async def test_a_database_held_by_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.service.db.database.BUSY_SECONDS", 0.1)
    path = tmp_path / "held"
    database = await Database.open(sqlite_url(path))
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseLockedError):
        await database.write(put("a"))
    other.rollback()
    other.close()
    await database.write(put("a"))
    await database.close()


async def test_reading_waits_for_no_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread opens a connection of its own, which must not write."""
    monkeypatch.setattr("quarterdeck.service.db.database.BUSY_SECONDS", 0.1)
    path = tmp_path / "held"
    database = await Database.open(sqlite_url(path))
    await database.close()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        other.execute("BEGIN IMMEDIATE")
        with _sqlite_reading(sqlite_url(path)).connect() as connection:
            assert not connection.execute(text("SELECT count(*) FROM workspaces")).scalar_one()


async def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        await Database.open(sqlite_url(tmp_path / "missing" / "db"))
    assert "unable to open" in caught.value.for_operator()


@pytest.mark.parametrize("content", [b"this is no database" * 100])
async def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        await Database.open(sqlite_url(path))
    assert "not a database" in caught.value.for_operator()
    assert path.read_bytes() == content
