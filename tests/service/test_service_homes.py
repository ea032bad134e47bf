"""Homes: their ids, what is theirs, and which requests are for another one."""

import fcntl
import os
import subprocess
import threading
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import Connection, insert, select

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.source_port import LocalDriver
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import Database, sqlite_url
from quarterdeck.service.db.tables import settings, workspaces
from quarterdeck.service.errors import HomeInUseError, HomeUnusableError
from quarterdeck.service.forwarding import workspace_named
from quarterdeck.service.http_protocol import MARK, for_caller, for_owner
from quarterdeck.service.identity.service import Caller, CallerKind
from quarterdeck.service.ownership import address_of, adopt, home_id
from quarterdeck.service.previews.rows import kept_port
from quarterdeck.service.replicas.rows import removals_left
from quarterdeck.service.start import open_service, take_home

SOME = "3f0c0f0e-2b9b-4f0e-9a51-4f8d8c1c1d11"


def test_a_home_keeps_its_id(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.service.mkdir()
    made = home_id(home)
    assert home_id(home) == made
    assert home_id(home) == home.id.read_text().strip()
    home.id.write_text("nothing\n")
    with pytest.raises(HomeUnusableError, match="holds no id"):
        home_id(home)


def test_a_child_of_a_killed_service_that_still_holds_the_lock_is_waited_for(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    take_home(home).release()
    holder = subprocess.Popen(["true"])
    holder.wait()
    with home.lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"{holder.pid}\n")
        held.flush()
        threading.Timer(0.2, lambda: fcntl.flock(held, fcntl.LOCK_UN)).start()
        take_home(home).release()
        fcntl.flock(held, fcntl.LOCK_EX)
        home.lock.write_text(f"{os.getpid()}\n")
        with pytest.raises(HomeInUseError):
            take_home(home)


@pytest.mark.one_database
@pytest.mark.parametrize("link", [False, True])
async def test_the_file_of_a_database_has_one_service(tmp_path: Path, link: bool) -> None:
    """Only one could claim it for its master key, and neither passes requests on to the other."""
    first, second, driver = Home(tmp_path / "first"), Home(tmp_path / "second"), cast("Any", None)
    named = first.database
    if link:
        named = tmp_path / "link.sqlite3"
        named.symlink_to(first.database)
    query = select(settings.c.value).where(settings.c.name == "installation")
    async with open_service(first, driver, list) as opened:
        owner = await opened.database.read(lambda c: c.execute(query).scalar_one())
        with pytest.raises(
            HomeInUseError, match=f"(?s){first.database}.*database of its own"
        ) as refused:
            async with open_service(second, driver, list, sqlite_url(named)):
                pass
        assert refused.value.pid == os.getpid()
        assert await opened.database.read(lambda c: c.execute(query).scalar_one()) == owner
    async with open_service(first, driver, list, sqlite_url(named)) as again:
        assert again.home_id == opened.home_id


async def test_what_has_no_owner_becomes_the_homes(database: Database, new_workspace: Any) -> None:
    mine = await new_workspace(database)
    theirs = await new_workspace(database, home_id="theirs")

    def run(connection: Connection) -> None:
        for name, value in (("remove/a", ""), ("remove/b", "theirs"), ("previews/port", "4711")):
            connection.execute(insert(settings).values(name=name, value=value, revision=0))
        adopt(connection, "mine")
        adopt(connection, "late")
        homes = dict(connection.execute(select(workspaces.c.id, workspaces.c.home_id)).all())
        assert homes == {mine: "mine", theirs: "theirs"}
        assert removals_left(connection, "mine") == [("a", "process")]
        assert removals_left(connection, "theirs") == [("b", "process")]
        assert removals_left(connection, "late") == []
        assert (kept_port(connection, "mine"), kept_port(connection, "late")) == (4711, None)

    await database.write(run)


def store_setting(connection: Connection, name: str, value: str) -> None:
    connection.execute(insert(settings).values(name=name, value=value, revision=0))


@pytest.mark.one_database
async def test_a_home_that_has_lost_its_id_keeps_what_is_its_own(
    tmp_path: Path, new_workspace: Any
) -> None:
    home, driver = Home(tmp_path), cast("LocalDriver", None)
    async with open_service(home, driver, list) as first:
        old = first.home_id
        await new_workspace(first.database, home_id=old)

        def store(connection: Connection) -> None:
            for name, value in (("remove/a", old), (f"previews/port/{old}", "4711")):
                store_setting(connection, name, value)

        await first.database.write(store)
        stale = f"previews/port/{uuid4()}", "4712"  # of an id that was lost before
        await first.database.write(lambda c: store_setting(c, *stale))
    home.id.unlink()

    def kept(connection: Connection) -> Any:
        own = home.id.read_text().strip()
        homes = connection.execute(select(workspaces.c.home_id)).scalars().all()
        return homes == [own], removals_left(connection, own), kept_port(connection, own)

    for _ in range(2):
        async with open_service(home, driver, list) as again:
            assert again.home_id != old
            is_own, removals, port = await again.database.read(kept)
            assert (is_own, removals) == (True, [("a", "process")]) and port in (4711, 4712)


async def test_the_service_that_answers_is_told(
    client: httpx.AsyncClient, context: ServiceContext
) -> None:
    (told,) = (await client.get("/v1/services")).json()["services"]
    assert (told["home_id"], told["own"], told["alive"]) == (context.home_id, True, True)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (f"/v1/replica/{SOME}", (SOME, "")),
        (f"/v1/workspaces/{SOME}/", (SOME, "")),
        (f"/v1/workspaces/{SOME.upper()}/chats/x/queue", (SOME, "chats/x/queue")),
        (f"/v1/replica/{SOME.replace('-', '')}/events", (SOME, "events")),
        ("/v1/replica/repositories", None),
        ("/v1/replica", None),
        ("/v1/replica/", None),
        (f"/v1/environments/{SOME}", None),
        (f"/v2/replica/{SOME}", None),
        ("/", None),
        ("", None),
    ],
)
def test_the_workspace_that_a_path_names(path: str, named: tuple[str, str] | None) -> None:
    caller = Caller("o", None, CallerKind.ORGANIZATION_KEY)
    assert workspace_named({"path": path}, caller) == named


def test_the_workspace_whose_engine_asks() -> None:
    caller = Caller("o", None, CallerKind.ENGINE, workspace_id=SOME)
    assert workspace_named({"path": "/v1/previews"}, caller) == (SOME, "")


def test_headers_of_a_connection_stay_with_it() -> None:
    came = [
        (b"Host", b"here"),
        (b"Authorization", b"Bearer k"),
        (b"Connection", b"keep-alive, X-Mine"),
        (b"X-Mine", b"1"),
        (b"TE", b"trailers"),
        (b"Expect", b"100-continue"),
        (b"Content-Length", b"3"),
        (b"Last-Event-ID", b"7"),
    ]
    passed = for_owner(came, "me")
    assert passed == [
        (b"authorization", b"Bearer k"),
        (b"content-length", b"3"),
        (b"last-event-id", b"7"),
        (b"via", b"1.1 quarterdeck"),
        (MARK, b"me"),
    ]
    back = [(b"Transfer-Encoding", b"chunked"), (b"X-A", b"1"), (b"X-A", b"2")]
    assert for_caller(back) == [(b"x-a", b"1"), (b"x-a", b"2")]


def test_the_address_that_others_are_told() -> None:
    socket = Path("/home/service/qd.sock")
    assert address_of([socket]) == "unix:/home/service/qd.sock"
    assert address_of([socket, ("10.0.0.1", 80), ("10.0.0.2", 81)]) == "http://10.0.0.1:80"
    assert address_of([socket, ("::1", 80)]) == "http://[::1]:80"
    assert address_of([socket, ("deck", 80)]) == "http://deck:80"
    everywhere = address_of([socket, ("0.0.0.0", 80)])
    assert everywhere.startswith("http://") and "0.0.0.0" not in everywhere
