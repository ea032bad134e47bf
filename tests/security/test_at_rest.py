"""What lies on the disk: secrets are sealed, also those of an earlier version; a lost key is told."""

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection, create_engine, select, text

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.source_port import LocalDriver
from quarterdeck.service.chats.rows import Deletion
from quarterdeck.service.db.database import REVISIONS, Database, sqlite_url, writing_engine
from quarterdeck.service.db.migrations import upgrade
from quarterdeck.service.db.tables import automations, chats, metadata
from quarterdeck.service.errors import ForeignDatabaseError, HomeUnusableError
from quarterdeck.service.notifications.rows import due_deliveries
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.service.start import open_service
from quarterdeck.service.vault import Vault, discard_sealed, open_vault, seal_all, webhook_place
from tests.conftest import DATABASES
from tests.fleet.conftest import World

SECRET = "hush-4711"
OLD = {
    "organizations": {"id": "o", "name": "Old", "created_at": "1"},
    "environments": {
        "id": "e",
        "organization_id": "o",
        "name": "web",
        "is_global": False,
        "created_at": "1",
        "updated_at": "1",
    },
    "workspaces": {
        "id": "w",
        "organization_id": "o",
        "environment_id": "e",
        "name": "one",
        "status": "sleeping",
        "source": "api",
        "lifecycle_policy": "default",
        "size": "small",
        "repositories_json": "[]",
        "repository_statuses_json": "[]",
        "wake_wanted": False,
        "next_event_index": 1,
        "next_history_index": 0,
        "journal_index": 0,
        "created_at": "1",
        "engine_secret": f"engine-{SECRET}",
        "webhook_url": f"https://x.example/{SECRET}",
    },
    "chats": {
        "id": "c",
        "workspace_id": "w",
        "provider": "builtin",
        "processing": False,
        "awaiting_input": False,
        "deletion": "told",
        "next_history_index": 0,
        "created_at": "1",
        "updated_at": "1",
    },
    "webhook_deliveries": {
        "id": "d",
        "organization_id": "o",
        "home_id": "h",
        "url": f"https://y.example/{SECRET}",
        "body": "{}",
        "attempts": 0,
        "next_at": "1",
        "created_at": "1",
    },
    "environment_files": {
        "id": "f",
        "organization_id": "o",
        "environment_id": "e",
        "name": "n",
        "path": "~/n",
        "content": f"v1:{SECRET}",
        "created_at": "1",
        "updated_at": "1",
    },
}
"""Rows of the first version; the content of the file looks as if it were sealed."""
GONE = {
    "webhook_deliveries": {"url": f"https://z.example/{SECRET}"},
    "environment_files": {"path": "~/gone", "content": f"{SECRET} gone " * 1_000},
}
"""Of further rows, which were deleted."""


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


def insert(connection: Connection, table: str, values: Mapping[str, Any]) -> None:
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), dict(values))


def everything(connection: Connection) -> str:
    """All values of the tables that hold secrets."""
    tables = ("workspaces", "webhook_deliveries", "environment_files", "environment_variables")
    rows = [connection.execute(text(f"SELECT * FROM {table}")).all() for table in tables]
    return repr(rows)


def files_of(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def modes(directory: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in files_of(directory)}


@pytest.mark.parametrize("database_kind", ["sqlite"])
async def test_plain_values_of_an_earlier_version_are_nowhere_in_the_files(
    empty_database_url: str, tmp_path: Path
) -> None:
    """Neither in rows that were deleted, nor in the log of a service that was killed."""
    engine = writing_engine(empty_database_url)
    # The log is kept, as by a service that was killed, while another connection is open.
    with engine.connect() as open_meanwhile, engine.connect() as connection:
        open_meanwhile.execute(text("SELECT 1"))
        open_meanwhile.rollback()
        with connection.begin():
            upgrade(connection, REVISIONS[0])
            for table, values in OLD.items():
                insert(connection, table, values)
        for table in ("webhook_deliveries", "environment_files"):
            with connection.begin():
                insert(connection, table, OLD[table] | {"id": "gone"} | GONE[table])
            with connection.begin():
                connection.execute(text(f"DELETE FROM {table} WHERE id = 'gone'"))
        vault = await Vault.open(tmp_path / "master.key")
        database = await Database.open(empty_database_url)
        await seal_all(database, vault)
        stored = {file.name: file.read_bytes() for file in files_of(tmp_path)}
        await database.close()
    engine.dispose()
    assert len(stored) > 2
    assert [name for name, data in stored.items() if SECRET.encode() in data] == []


async def test_what_an_earlier_version_stored_is_sealed_once(
    empty_database_url: str, tmp_path: Path, database_kind: str
) -> None:
    engine = writing_engine(empty_database_url)
    with engine.connect() as connection, connection.begin():
        upgrade(connection, REVISIONS[0])
        for table, values in OLD.items():
            insert(connection, table, values)
    engine.dispose()
    vault = await Vault.open(tmp_path / "master.key")
    query = text("SELECT content_sealed FROM environment_files")
    for _ in range(2):  # the second start changes nothing
        database = await Database.open(empty_database_url)
        await seal_all(database, vault)
        row = await database.read(lambda c: find_workspace(c, "w"))
        (call,) = await database.read(lambda c: due_deliveries(c, "h", "2", 5))
        content = await database.read(lambda c: c.execute(query).scalar_one())
        deletion = await database.read(lambda c: c.execute(select(chats.c.deletion)).scalar_one())
        stored = await database.read(everything)
        await database.close()
        assert row is not None and row.webhook_url_sealed is not None
        place = webhook_place("o")
        assert vault.unseal("w", row.engine_secret_sealed) == f"engine-{SECRET}"
        assert vault.unseal(place, row.webhook_url_sealed) == f"https://x.example/{SECRET}"
        assert vault.unseal(place, call.url_sealed) == f"https://y.example/{SECRET}"
        assert vault.unseal("f", content) == f"v1:{SECRET}"
        assert Deletion(deletion) is Deletion.LOGGED
        assert SECRET not in stored
    if database_kind == "sqlite":
        assert "empty.sqlite3" in modes(tmp_path)
        assert SECRET.encode() not in b"".join(map(Path.read_bytes, files_of(tmp_path)))


async def test_nothing_that_is_secret_is_stored_in_plain_text(world: World) -> None:
    files = f"/v1/environments/{world.environment}/files"
    body = {"path": "~/.token", "content": SECRET}
    made = await world.client.post(files, json=body)
    assert made.status_code == 201 and SECRET in made.text
    (listed,) = (await world.client.get(files)).json()["environment_files"]
    assert listed["content"] == SECRET
    changed = await world.client.patch(f"{files}/{listed['id']}", json={"content": SECRET * 2})
    assert SECRET * 2 in changed.text
    replica = await world.create(webhook_url=f"http://127.0.0.1:1/{SECRET}", message="hello")
    database, vault = world.context.database, world.context.vault
    row = await database.read(lambda c: find_workspace(c, replica))
    assert row is not None
    assert len(vault.unseal(row.id, row.engine_secret_sealed)) == 64
    assert SECRET not in await database.read(everything)


@pytest.mark.one_database
async def test_the_files_of_the_database_are_the_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "d.sqlite3"
        database = await Database.open(sqlite_url(path))
        await database.write(lambda c: insert(c, "organizations", OLD["organizations"]))
        assert len(modes(tmp_path)) > 1 and set(modes(tmp_path).values()) == {0o600}
        await database.close()
        path.chmod(0o644)  # as an earlier version left it
        database = await Database.open(sqlite_url(path))
        await database.write(
            lambda c: insert(c, "organizations", OLD["organizations"] | {"id": "p"})
        )
        assert set(modes(tmp_path).values()) == {0o600}
        await database.close()
    finally:
        os.umask(before)


async def test_a_key_that_is_missing_is_not_replaced(world: World, home: Home) -> None:
    database, vault = world.context.database, world.context.vault
    variables = f"/v1/environments/{world.environment}/variables"
    await world.client.post(variables, json={"key": "TOKEN", "value": SECRET})
    replica = await world.create(webhook_url=f"http://127.0.0.1:1/{SECRET}")
    key = home.master_key
    with pytest.raises(HomeUnusableError, match="There is a master key"):
        await open_vault(database, key, new_key=True)
    kept = key.read_text()
    key.unlink()
    with pytest.raises(HomeUnusableError, match=r"(?s)master\.key is missing.*Restore.*--new-key"):
        await open_vault(database, key, new_key=False)
    assert not key.exists()
    key.write_text("damaged")
    with pytest.raises(HomeUnusableError, match=r"holds no key.*--new-key"):
        await open_vault(database, key, new_key=False)
    fresh = await open_vault(database, key, new_key=True)
    assert key.read_text() not in ("damaged", kept)
    await seal_all(database, fresh)
    row = await database.read(lambda c: find_workspace(c, replica))
    assert row is not None and row.webhook_url_sealed is None
    secret = fresh.unseal(replica, row.engine_secret_sealed)
    assert secret and secret != vault.derived("x").hex()
    assert json.loads((await world.client.get(variables)).text)["environment_variables"] == []
    again = await open_vault(database, key, new_key=False)
    assert again.unseal(replica, row.engine_secret_sealed) == secret


@pytest.mark.one_database
async def test_a_replica_whose_secret_is_damaged_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    replica = await world.create()
    await world.post(replica, "/sleep")
    await world.reach(replica, "sleeping")
    damage = text("UPDATE workspaces SET engine_secret_sealed = 'v1:AAAA'")
    await world.context.database.write(lambda c: c.execute(damage))
    await world.post(replica, "/wake")
    assert "cannot be opened with" in (await world.reach(replica, "error"))["error"]
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.one_database
async def test_another_key_is_refused_as_long_as_something_is_sealed(tmp_path: Path) -> None:
    """It has the form of one, so it is only found by comparing."""
    home = Home(tmp_path)

    async def start(seals: bool = False, new_key: bool = False) -> None:
        driver = cast("LocalDriver", None)
        async with open_service(home, driver, list, new_key=new_key) as context:
            if seals:
                sealed = text(
                    "INSERT INTO environment_variables SELECT 'v', organization_id, id, 'KEY', :value,"
                    " false, created_at, created_at FROM environments"
                )
                values = {"value": context.vault.seal("v", SECRET)}
                await context.database.write(lambda c: c.execute(sealed, values))

    await start()
    home.master_key.unlink()
    await start()  # nothing was sealed with the first one
    await start(seals=True)
    right = home.master_key.read_text()
    home.master_key.write_text(f"{'A' if right[0] != 'A' else 'B'}{right[1:]}")
    with pytest.raises(ForeignDatabaseError, match=r"(?s)is not the one.*backup.*--new-key"):
        await start()
    # An earlier version did not store whose the values are.
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("DELETE FROM settings WHERE name = 'installation'")
    with pytest.raises(ForeignDatabaseError, match=r"is not the one"):
        await start()
    home.master_key.write_text(right)
    await start()
    await start()
    home.master_key.unlink()
    await start(new_key=True)
    await start()


@pytest.mark.one_database
async def test_a_database_without_sealed_values_gets_a_key(tmp_path: Path) -> None:
    database = await Database.open(sqlite_url(tmp_path / "d.sqlite3"))
    vault = await open_vault(database, tmp_path / "master.key", new_key=False)
    assert vault.derived("x")
    await database.close()


def test_webhooks_whose_secret_is_lost_take_no_calls() -> None:
    """Without it a call could not be told from one that somebody else makes."""
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.connect() as connection:
        row: dict[str, Any] = {
            column.name: "1" if column.type.python_type is str else 1
            for column in automations.columns
        }
        connection.execute(automations.insert().values(**row))
        discard_sealed(connection)
        kept = connection.execute(select(automations)).mappings().one()
        assert kept["webhook_token_hash"] is None
        assert not any(kept[name] for name in row if name.endswith("_sealed"))
