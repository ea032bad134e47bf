"""One writer with group commit, readers beside it, and what goes wrong below them."""

import asyncio
import secrets
import threading
import traceback

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.db.database import Database
from quarterdeck.service.errors import (
    DatabaseClosedError,
    DatabaseFullError,
    DatabaseReadOnlyError,
    StorageError,
)
from tests.support.disks import limited_files

WAIT_SECONDS = 60.0


def put(name: str, value: str = "x"):
    statement = text("INSERT INTO settings (name, value, revision) VALUES (:name, :value, 0)")

    def run(connection: Connection) -> str:
        connection.execute(statement, {"name": name, "value": value})
        return name

    return run


async def names(database: Database) -> list[str]:
    statement = text("SELECT name FROM settings ORDER BY name")
    return await database.read(lambda c: list(c.execute(statement).scalars()))


class Gate:
    """Holds the writer thread, so that what is asked meanwhile becomes one group."""

    def __init__(self) -> None:
        self.entered, self.release = threading.Event(), threading.Event()

    def __call__(self, connection: Connection) -> None:
        self.entered.set()
        assert self.release.wait(WAIT_SECONDS)


async def grouped(database: Database, *writes: asyncio.Future | object) -> list[object]:
    gate = Gate()
    first = asyncio.create_task(database.write(gate))
    await asyncio.to_thread(gate.entered.wait, WAIT_SECONDS)
    tasks = [asyncio.ensure_future(write) for write in writes]  # type: ignore[arg-type]
    await asyncio.sleep(0)  # each has put its job into the queue once it ran to its first await
    gate.release.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_was_written_is_read_back(database: Database) -> None:
    assert await database.write(put("a")) == "a"
    assert await names(database) == ["a"]


async def test_a_failing_write_of_a_group_spoils_no_other(database: Database) -> None:
    def fail(connection: Connection) -> None:
        put("undone")(connection)
        raise ValueError("no")

    first, failed, last = await grouped(
        database, database.write(put("a")), database.write(fail), database.write(put("b"))
    )
    assert (first, last) == ("a", "b")
    assert isinstance(failed, ValueError)
    assert await names(database) == ["a", "b"]


async def test_a_violated_constraint_is_the_callers(database: Database) -> None:
    first, second, third = await grouped(
        database, database.write(put("a")), database.write(put("a")), database.write(put("b"))
    )
    assert (first, third) == ("a", "b")
    assert isinstance(second, IntegrityError)
    with pytest.raises(IntegrityError):
        await database.write(put("b"))


async def test_what_is_stored_is_in_no_error(database: Database) -> None:
    statement = text("INSERT INTO nowhere VALUES (:value)")
    value = secrets.token_hex(8)  # a traceback has lines of the code, too
    for call in (database.write, database.read):
        with pytest.raises(StorageError) as failed:
            await call(lambda c: c.execute(statement, {"value": value}))
        told = "".join(traceback.format_exception(failed.value))
        assert "nowhere" in told and value not in told


async def test_a_group_is_one_commit(database: Database) -> None:
    seen: list[int] = []
    count = text("SELECT count(*) FROM settings")

    def after(_: str) -> None:
        seen.append(1)

    def watch(connection: Connection) -> int:
        return connection.execute(count).scalar_one()

    # The last of the group sees the others' rows although nobody was answered yet.
    results = await grouped(
        database,
        database.write(put("a"), after),
        database.write(put("b"), after),
        database.write(watch),
    )
    assert results == ["a", "b", 2]
    assert seen == [1, 1]


async def test_after_is_called_in_order_and_for_a_canceled_caller(database: Database) -> None:
    done: list[str] = []
    gate = Gate()
    first = asyncio.create_task(database.write(gate))
    await asyncio.to_thread(gate.entered.wait, WAIT_SECONDS)
    tasks = [asyncio.create_task(database.write(put(n), done.append)) for n in "abc"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    gate.release.set()
    await asyncio.gather(first, *tasks, return_exceptions=True)
    assert done == ["a", "b", "c"]
    assert await names(database) == ["a", "b", "c"]


async def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(DatabaseReadOnlyError, match="only be read"):
        await database.read(put("a"))
    assert await names(database) == []


async def test_a_read_sees_one_moment(database: Database) -> None:
    entered, release = threading.Event(), threading.Event()
    count = text("SELECT count(*) FROM settings")

    def twice(connection: Connection) -> tuple[int, int]:
        first = connection.execute(count).scalar_one()
        entered.set()
        assert release.wait(WAIT_SECONDS)
        return first, connection.execute(count).scalar_one()

    reading = asyncio.create_task(database.read(twice))
    await asyncio.to_thread(entered.wait, WAIT_SECONDS)
    await database.write(put("a"))
    release.set()
    assert await reading == (0, 0)


async def test_durability_and_constraints_are_on(database: Database, database_kind: str) -> None:
    def sqlite_says(connection: Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

    def postgresql_says(connection: Connection) -> object:
        return connection.exec_driver_sql("SHOW synchronous_commit").scalar()

    if database_kind == "sqlite":
        assert await database.write(sqlite_says) == ["wal", 2, 1]
    else:
        assert await database.write(postgresql_says) == "on"
    statement = text(
        "INSERT INTO members (organization_id, user_id, role, created_at) VALUES ('a', 'b', '', '')"
    )
    with pytest.raises(IntegrityError):
        await database.write(lambda c: c.execute(statement))


_FULL = """
CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF length(NEW.value) > 50000 THEN
    RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER disk BEFORE INSERT ON settings FOR EACH ROW EXECUTE FUNCTION disk_is_full();
"""


def limit_size(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # A server's disk cannot be filled from here; this fails where and as it would.
        connection.exec_driver_sql(_FULL)
        return
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 4}")


def lift_limit(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("DROP TRIGGER disk ON settings")
        return
    connection.exec_driver_sql("PRAGMA max_page_count=1000000")


async def test_a_full_disk_is_told_and_recovered_from(database: Database) -> None:
    await database.write(limit_size)
    with pytest.raises(DatabaseFullError, match="disk"):
        await database.write(put("big", "x" * 100_000))
    await database.write(lift_limit)
    await database.write(put("big", "x" * 100_000))
    assert await names(database) == ["big"]


async def test_a_full_disk_fails_only_the_writes_that_need_room(database: Database) -> None:
    await database.write(limit_size)
    small, big, other = await grouped(
        database,
        database.write(put("small")),
        database.write(put("big", "x" * 100_000)),
        database.write(put("other")),
    )
    assert (small, other) == ("small", "other")
    assert isinstance(big, DatabaseFullError)
    assert await names(database) == ["other", "small"]


@pytest.mark.one_database
async def test_a_quota_that_is_used_up_is_told_and_recovered_from(database: Database) -> None:
    with limited_files(200_000), pytest.raises(DatabaseFullError, match="quota"):
        await database.write(put("big", "x" * 1_000_000))
    await database.write(put("big", "x" * 1_000_000))
    assert await names(database) == ["big"]


async def test_a_closed_database_answers_what_was_asked_and_no_more(database_url: str) -> None:
    database = await Database.open(database_url)
    writes = [asyncio.create_task(database.write(put(n))) for n in "abc"]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*writes) == ["a", "b", "c"]
    with pytest.raises(DatabaseClosedError):
        await database.write(put("d"))
    with pytest.raises(DatabaseClosedError):
        await database.read(put("d"))
    await database.close()
