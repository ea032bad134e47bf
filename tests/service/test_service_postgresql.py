"""What only a database server can do: be shared, go away, come back."""

import asyncio
import threading

import psycopg
import pytest
from sqlalchemy import Connection, text

from quarterdeck.service.db import database as engines
from quarterdeck.service.db import postgresql
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.faults import Outage
from quarterdeck.service.errors import (
    DatabaseLockedError,
    DatabaseLostError,
    DatabaseReadOnlyError,
    StorageError,
)
from tests.support.postgresql import OWNER, Server, running

WAIT_SECONDS = 60.0
HERE, ELSEWHERE = "home-1", "home-2"
WRITES = 200


@pytest.fixture
def database_kind() -> str:
    return "postgresql"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [one.replace("'5s'", "'100ms'") for one in postgresql._SERVER_SIDE]
    assert quick != list(postgresql._SERVER_SIDE)
    monkeypatch.setattr(postgresql, "_SERVER_SIDE", quick)


def name_of(url: str) -> str:
    return engines.parse_url(url).database or ""


def put(name: str, value: str = "x"):
    statement = text("INSERT INTO settings (name, value, revision) VALUES (:name, :value, 0)")

    def run(connection: Connection) -> str:
        connection.execute(statement, {"name": name, "value": value})
        return name

    return run


async def names(database: Database) -> list[str]:
    statement = text("SELECT name FROM settings ORDER BY name")
    return await database.read(lambda c: list(c.execute(statement).scalars()))


async def test_a_home_and_its_copy_are_never_served_both(
    impatient: None, database_url: str
) -> None:
    first = await Database.open(database_url, HERE)
    with pytest.raises(DatabaseLockedError, match="a copy of it"):
        await Database.open(database_url, HERE)
    elsewhere = await Database.open(database_url, ELSEWHERE)
    assert await first.write(put("a")) == "a"
    assert await elsewhere.write(put("b")) == "b"
    await first.close()
    second = await Database.open(database_url, HERE)
    assert await names(second) == ["a", "b"]
    await second.close()
    await elsewhere.close()


async def test_a_service_that_lost_its_place_writes_no_more(
    impatient: None, database_url: str, postgresql: Server
) -> None:
    first = await Database.open(database_url, HERE)
    assert postgresql.cut(name_of(database_url)) == 1
    second = await Database.open(database_url, HERE)
    with pytest.raises(DatabaseLockedError):
        await first.write(put("a"))
    assert await names(first) == []
    await second.close()
    assert await first.write(put("a")) == "a"
    await first.close()


async def test_a_write_waits_for_those_of_other_services_and_is_told_when_it_cannot(
    impatient: None, database_url: str
) -> None:
    first = await Database.open(database_url, HERE)
    second = await Database.open(database_url, ELSEWHERE)
    entered, release = threading.Event(), threading.Event()

    def held(connection: Connection) -> str:
        entered.set()
        assert release.wait(WAIT_SECONDS)
        return put("a")(connection)

    writing = asyncio.create_task(first.write(held))
    await asyncio.to_thread(entered.wait, WAIT_SECONDS)
    with pytest.raises(DatabaseLockedError, match="nothing was changed"):
        await second.write(put("b"))
    beside = await asyncio.gather(
        *(second.write(put(name)) for name in "cd"), return_exceptions=True
    )
    assert [type(one) for one in beside] == [DatabaseLockedError] * 2
    assert await names(second) == []
    release.set()
    assert await writing == "a"
    assert await second.write(put("b")) == "b"
    assert await names(first) == ["a", "b"]
    await first.close()
    await second.close()


async def test_a_read_of_a_table_that_another_program_holds_is_told(
    impatient: None, database: Database, database_url: str
) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE settings IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseLockedError, match="held by another program"):
            await names(database)
    assert await names(database) == []


async def test_a_service_that_is_stopped_in_the_middle_of_a_write_holds_up_nobody_for_long(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    quick = [one.replace("'30s'", "'200ms'") for one in postgresql._SERVER_SIDE]
    assert quick != list(postgresql._SERVER_SIDE)
    monkeypatch.setattr(postgresql, "_SERVER_SIDE", quick)
    first = await Database.open(database_url, HERE)
    second = await Database.open(database_url, ELSEWHERE)
    entered, release = threading.Event(), threading.Event()

    def held(connection: Connection) -> str:
        put("a")(connection)
        entered.set()
        assert release.wait(WAIT_SECONDS)
        return put("b")(connection)

    writing = asyncio.create_task(first.write(held))
    await asyncio.to_thread(entered.wait, WAIT_SECONDS)
    assert await second.write(put("c")) == "c"
    assert await names(second) == ["c"]
    release.set()
    assert await writing == "b"
    assert await names(first) == ["a", "b", "c"]
    await first.close()
    await second.close()


@pytest.mark.long
async def test_two_services_write_at_once_and_what_is_read_never_has_a_gap(
    database_url: str,
) -> None:
    both = [await Database.open(database_url, home) for home in (HERE, ELSEWHERE)]
    await both[0].write(put("count", "0"))

    def next_one(connection: Connection) -> None:
        last = connection.execute(text("SELECT value FROM settings WHERE name = 'count'")).scalar()
        number = int(last) + 1
        put(f"n{number:04}")(connection)
        change = text("UPDATE settings SET value = :value WHERE name = 'count'")
        connection.execute(change, {"value": str(number)})

    async def watch(database: Database) -> None:
        seen: list[str] = []
        while len(seen) < 2 * WRITES:
            seen = [name for name in await names(database) if name != "count"]
            assert seen == [f"n{number:04}" for number in range(1, len(seen) + 1)]

    writes = [one.write(next_one) for one in both for _ in range(WRITES)]
    await asyncio.gather(*writes, *(watch(one) for one in both))
    for one in both:
        await one.close()


async def test_two_services_make_the_tables_of_an_empty_database_at_once(
    empty_database_url: str,
) -> None:
    both = await asyncio.gather(
        *(Database.open(empty_database_url, home) for home in (HERE, ELSEWHERE))
    )
    await both[0].write(put("a"))
    assert await names(both[1]) == ["a"]
    for one in both:
        await one.close()


async def test_killed_connections_are_opened_anew(
    database: Database, database_url: str, postgresql: Server
) -> None:
    await database.write(put("a"))
    assert await names(database) == ["a"]
    assert postgresql.cut(name_of(database_url)) >= 2
    assert await names(database) == ["a"]
    assert await database.write(put("b")) == "b"
    assert await names(database) == ["a", "b"]


async def test_a_connection_killed_during_a_write_loses_and_doubles_nothing(
    database: Database, database_url: str, postgresql: Server
) -> None:
    entered, release = threading.Event(), threading.Event()
    runs: list[int] = []

    def held(connection: Connection) -> str:
        runs.append(1)
        put("held")(connection)
        entered.set()
        assert release.wait(WAIT_SECONDS)
        return put("held too")(connection)

    writing = asyncio.create_task(database.write(held))
    await asyncio.to_thread(entered.wait, WAIT_SECONDS)
    beside = [asyncio.create_task(database.write(put(name))) for name in "ab"]
    await asyncio.to_thread(postgresql.cut, name_of(database_url))
    release.set()
    assert await asyncio.gather(writing, *beside) == ["held too", "a", "b"]
    assert len(runs) == 2
    assert await names(database) == ["a", "b", "held", "held too"]


async def test_a_connection_killed_during_the_commit_is_told_and_not_repeated(
    database: Database, database_url: str, postgresql: Server
) -> None:
    entered, release = threading.Event(), threading.Event()
    runs: list[int] = []

    def held(connection: Connection) -> None:
        runs.append(1)
        put("a")(connection)
        entered.set()
        assert release.wait(WAIT_SECONDS)

    writing = asyncio.create_task(database.write(held))
    await asyncio.to_thread(entered.wait, WAIT_SECONDS)
    await asyncio.to_thread(postgresql.cut, name_of(database_url))
    release.set()
    with pytest.raises(DatabaseLostError):
        await writing
    assert len(runs) == 1
    assert await names(database) == []


async def test_a_server_that_stops_and_starts_again() -> None:
    from tests.support.postgresql import find_programs

    with running(find_programs()) as server:
        database = await Database.open(server.url(server.create()))
        await database.write(put("a"))
        server.stop()
        results = await asyncio.gather(
            database.write(put("b")),
            database.write(put("c")),
            names(database),
            return_exceptions=True,
        )
        assert all(isinstance(one, StorageError) for one in results), results
        server.start()
        assert await database.write(put("d")) == "d"
        assert await names(database) == ["a", "d"]
        await database.close()


def test_a_lost_server_is_asked_seldom_and_told_twice(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    outage = Outage(lambda: now[0])
    fault = DatabaseLostError("away", "at host:5432")
    assert not outage.admit() and not outage.lost
    for _ in range(3):  # which were under way
        outage.ended(False, fault)
    outage.ended(False, None)  # so was this one, which the server had answered
    assert outage.lost and outage.admit()
    with pytest.raises(DatabaseLostError):
        outage.admit()  # the first has not ended
    outage.ended(True, fault)
    now[0] = 0.9
    with pytest.raises(DatabaseLostError):
        outage.admit()
    now[0] = 1.0
    assert outage.admit()
    outage.ended(True, ValueError("of who asked"))
    assert not outage.lost and not outage.admit()
    assert [one.getMessage() for one in caplog.records] == [
        "The database cannot be reached",
        "The database is reached again",
    ]


async def test_a_database_that_takes_no_writes(
    database: Database, database_url: str, postgresql: Server
) -> None:
    name = name_of(database_url)
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    postgresql.cut(name)
    with pytest.raises(DatabaseReadOnlyError):
        await database.write(put("a"))
    assert await names(database) == []


async def test_a_statement_that_the_server_stops_is_tried_again_by_the_caller(
    database: Database, database_url: str, postgresql: Server
) -> None:
    """At a time limit of the server, or when its administrator ends a statement."""
    name = name_of(database_url)
    postgresql.execute(f"ALTER DATABASE {name} SET statement_timeout = '200ms'")
    postgresql.cut(name)
    slow = text("SELECT pg_sleep(60)")
    for use in (database.read, database.write):
        with pytest.raises(DatabaseLockedError, match="Try again"):
            await use(lambda c: c.execute(slow))
    assert await database.write(put("a")) == "a"


async def test_what_was_answered_is_durable_whatever_the_servers_default(
    database_url: str, postgresql: Server
) -> None:
    postgresql.execute(f"ALTER DATABASE {name_of(database_url)} SET synchronous_commit = off")
    database = await Database.open(database_url)

    def look(connection: Connection) -> object:
        return connection.execute(text("SHOW synchronous_commit")).scalar()

    assert await database.write(look) == "on"
    await database.close()


async def test_a_violated_bound_of_a_column_is_none(database: Database) -> None:
    # The schema's lengths are for the reader: SQLite keeps none, so neither does the server.
    await database.write(put("n" * 500))
    assert await names(database) == ["n" * 500]


async def test_texts_are_ordered_by_their_characters(database: Database) -> None:
    for name in ("b", "B", "a", "\u00e9", "_", "Z"):
        await database.write(put(name))
    assert await names(database) == sorted(["b", "B", "a", "\u00e9", "_", "Z"])


async def test_a_server_that_is_not_there() -> None:
    with pytest.raises(StorageError) as caught:
        await Database.open("postgresql://someone:hidden@127.0.0.1:1/deck")
    assert "hidden" not in caught.value.for_operator()


async def test_a_database_that_does_not_exist(database_url: str, postgresql: Server) -> None:
    with pytest.raises(StorageError) as caught:
        await Database.open(postgresql.url("nowhere"))
    assert "does not exist" in (caught.value.reason or "")


async def test_the_server_runs_as_an_unprivileged_user(postgresql: Server) -> None:
    with psycopg.connect(postgresql.url("postgres")) as connection:
        assert connection.info.user == OWNER
    assert postgresql.base.stat().st_uid != 0


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_the_urls_that_are_read(scheme: str) -> None:
    url = engines.parse_url(f"{scheme}://me:s%40crt@host:5433/deck?sslmode=require")
    assert url.drivername == "postgresql+psycopg"
    assert (url.host, url.port, url.database, url.password) == ("host", 5433, "deck", "s@crt")
    assert "s@crt" not in str(url) and "s%40crt" not in repr(url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "deck",
        "mysql://me:secret@host/deck",
        "postgresql://me:secret@host",
        "postgresql://me:sec/ret@host:port/deck",
        "postgresql+asyncpg://me:secret@host/deck",
        "sqlite://",
    ],
)
def test_other_urls_are_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(StorageError) as caught:
        engines.parse_url(text)
    assert "secret" not in str(caught.value) and "sec/ret" not in str(caught.value)
    assert "postgresql://USER@HOST/NAME" in str(caught.value)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(StorageError, match=r"pip install 'quarterdeck\[postgresql\]'"):
        engines.writing_engine("postgresql://me@host/deck")
