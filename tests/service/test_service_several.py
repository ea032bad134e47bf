"""Services over one database, as far as its rows tell; see also `tests/system`."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import Connection, insert, select

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service import forwarding as upstream
from quarterdeck.service import ownership as presence
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import services, webhook_deliveries
from quarterdeck.service.fleet.transitions import finish_removals
from quarterdeck.service.identity.rows import only_organization
from quarterdeck.service.ownership import ServiceHeartbeat
from quarterdeck.service.replicas.rows import removals_left
from quarterdeck.service.start import open_service
from tests.service.callers import Callers, refused
from tests.service.conftest import Mirrors, NewWorkspace

LONG_AGO = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def database_kind() -> str:
    return "postgresql"  # a file has one service


@pytest.fixture
async def other(
    context: ServiceContext, database_url: str, tmp_path: Path
) -> AsyncIterator[ServiceContext]:
    """A second service over the database, with a home of its own."""
    home = Home(tmp_path / "other")
    home.service.mkdir(parents=True)
    shutil.copy(context.home.master_key, home.master_key)
    driver = cast("SandboxDriver", Mirrors())
    async with open_service(home, driver, list, database_url) as opened:
        yield opened


async def test_the_services_of_a_database_are_told(
    client: httpx.AsyncClient, context: ServiceContext, other: ServiceContext
) -> None:
    assert other.home_id != context.home_id
    other.address = "http://elsewhere:1"
    signs = ServiceHeartbeat(other)
    await signs.start()
    own, told = (await client.get("/v1/services")).json()["services"]
    assert own["home_id"] == context.home_id
    assert (told["home_id"], told["url"], told["own"]) == (other.home_id, other.address, False)
    assert told["alive"]
    await signs.close()
    long_ago = services.update().values(seen_at="2020-01-01T00:00:00Z")
    await context.database.write(lambda c: c.execute(long_ago) and None)
    _, told = (await client.get("/v1/services")).json()["services"]
    assert not told["alive"]


async def test_a_sign_of_life_is_repeated(
    context: ServiceContext, other: ServiceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.01)
    other.address = "http://elsewhere:1"
    signs = ServiceHeartbeat(other)
    await signs.start()
    gone = services.delete()
    await context.database.write(lambda c: c.execute(gone) and None)
    async with asyncio.timeout(60):
        while not await context.database.read(lambda c: c.execute(select(services)).all()):
            pass
    await signs.close()


@pytest.mark.parametrize(("seen_at", "heir"), [("2020-01-01T00:00:00Z", True), (None, False)])
async def test_calls_are_inherited_of_services_that_are_long_gone_alone(
    context: ServiceContext, other: ServiceContext, seen_at: str | None, heir: bool
) -> None:
    context.address, other.address = "http://here:1", "http://elsewhere:1"
    first, second = ServiceHeartbeat(context), ServiceHeartbeat(other)
    await second.start()
    await second.close()

    def store(connection: Connection) -> None:
        connection.execute(
            insert(webhook_deliveries).values(
                id=str(uuid4()),
                organization_id=only_organization(connection),
                home_id=other.home_id,
                url_sealed="nothing",
                body="{}",
                attempts=0,
                next_at="2999",
                created_at="2999",
            )
        )
        if seen_at is not None:
            connection.execute(services.update().values(seen_at=seen_at))

    await context.database.write(store)
    await first.start()
    await first.close()
    homes = await context.database.read(
        lambda c: c.execute(select(webhook_deliveries.c.home_id)).scalars().all()
    )
    assert homes == [context.home_id if heir else other.home_id]
    assert context.webhooks_stored.is_set() == heir


# A home that is lost


async def away(context: ServiceContext, home_id: str) -> None:
    """The service of a home has not been seen for long."""
    long_ago = insert(services).values(home_id=home_id, url="http://127.0.0.1:1", seen_at=LONG_AGO)
    await context.database.write(lambda c: c.execute(long_ago) and None)


async def told(client: httpx.AsyncClient, made: str) -> list[str | None]:
    """Since when a replica is unreachable, as the list, the record and the status tell it."""
    (listed,) = [
        one for one in (await client.get("/v1/replica")).json()["replicas"] if one["id"] == made
    ]
    record = (await client.get(f"/v1/replica/{made}")).json()["replica"]
    status = (await client.get(f"/v1/workspaces/{made}/status")).json()
    assert listed["status"] == record["status"] == status["status"] == "active"
    return [
        listed["unreachable_since"],
        record["unreachable_since"],
        status.get("unreachableSince"),
    ]


async def test_a_replica_of_a_lost_home_is_forgotten_and_its_name_is_free(
    callers: Callers, context: ServiceContext, new_workspace: NewWorkspace
) -> None:
    lost = str(uuid4())
    await away(context, lost)
    made = await new_workspace(context.database, home_id=lost, name="taken", status="active")
    path = f"/v1/workspaces/{made}"
    assert await told(callers.member, made) == [LONG_AGO] * 3
    for method, rest in (("POST", "/wake"), ("POST", "/archive"), ("DELETE", "")):
        answer = await callers.owner.request(method, path + rest)
        refused(answer, 502, "ENGINE_UNREACHABLE")
    refused(await callers.member.post(f"{path}/forget"), 403, "FORBIDDEN")
    refused(await callers.stranger.post(f"{path}/forget"), 404, "NOT_FOUND")
    answer = await callers.owner.post(f"{path}/forget")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    for method, rest in (
        ("GET", ""),
        ("GET", "/events"),
        ("POST", "/wake"),
        ("POST", "/forget"),
        ("DELETE", ""),
    ):
        refused(await callers.owner.request(method, path + rest), 404, "NOT_FOUND")
    listed = (await callers.owner.get("/v1/replica")).json()["replicas"]
    assert made not in [one["id"] for one in listed]
    await new_workspace(context.database, name="taken")
    # Should the home come back, it removes what it has of it.
    assert await context.database.read(lambda c: removals_left(c, lost)) == [(made, "process")]


async def test_a_lost_home_is_named_as_long_as_it_has_a_replica(
    callers: Callers, context: ServiceContext, new_workspace: NewWorkspace
) -> None:
    lost = str(uuid4())
    await away(context, lost)
    for is_last in (False, True):
        await new_workspace(context.database, home_id=lost, name=f"one-{is_last}")
    for is_named in (True, False):
        made = (await callers.owner.get("/v1/replica")).json()["replicas"][0]["id"]
        assert (await callers.owner.post(f"/v1/workspaces/{made}/forget")).status_code == 200
        known = (await callers.owner.get("/v1/services")).json()["services"]
        assert (lost in [one["home_id"] for one in known]) is is_named


async def test_a_home_that_never_told_where_it_is_is_lost_since_then(
    callers: Callers, context: ServiceContext, new_workspace: NewWorkspace
) -> None:
    since = "2020-02-02T00:00:00.000Z"
    made = await new_workspace(
        context.database, home_id=str(uuid4()), status="active", created_at=since
    )
    assert await told(callers.owner, made) == [since] * 3
    assert (await callers.owner.post(f"/v1/replica/{made}/forget")).status_code == 200


async def test_a_replica_whose_home_answers_is_not_forgotten(
    callers: Callers, context: ServiceContext, other: ServiceContext, new_workspace: NewWorkspace
) -> None:
    other.address = "http://127.0.0.1:1"
    signs = ServiceHeartbeat(other)
    await signs.start()
    try:
        for home in (context.home_id, other.home_id):
            made = await new_workspace(context.database, home_id=home, status="active")
            assert await told(callers.owner, made) == [None] * 3
            answer = await callers.owner.post(f"/v1/workspaces/{made}/forget")
            refused(answer, 409, "CONFLICT")
            assert (await callers.owner.get(f"/v1/replica/{made}")).status_code == 200
    finally:
        await signs.close()


async def test_a_home_that_comes_back_removes_what_was_forgotten(
    callers: Callers,
    context: ServiceContext,
    database_url: str,
    new_workspace: NewWorkspace,
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "other")
    home.service.mkdir(parents=True)
    shutil.copy(context.home.master_key, home.master_key)
    removed: list[str] = []

    class Driver(Mirrors):
        async def tidy(self, needed: object) -> None:
            pass

        async def destroy(self, workspace_id: str) -> None:
            removed.append(workspace_id)

    def opening() -> AbstractAsyncContextManager[ServiceContext]:
        return open_service(home, cast("SandboxDriver", Driver()), list, database_url)

    async with opening() as opened:
        lost = opened.home_id
    await away(context, lost)
    made = await new_workspace(context.database, home_id=lost)
    assert (await callers.owner.post(f"/v1/replica/{made}/forget")).status_code == 200
    async with opening() as opened:
        await finish_removals(opened, without=())
    assert removed == [made]


# An owner that is cut off


async def test_a_stream_whose_owner_falls_silent_is_ended(
    context: ServiceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "SILENCE_SECONDS", 0.1)
    left = asyncio.Event()

    async def owner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        writer.write(f"{head}\r\n\r\n8\r\n: ping\n\n\r\n".encode())
        await reader.read()  # and not a word more
        left.set()
        writer.close()

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    server = await asyncio.start_server(owner, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    upstreams = upstream.Upstreams(context.home_id, asyncio.Event())
    scope = {"method": "GET", "path": "/v1/replica/x/events", "query_string": b"", "headers": []}
    async with asyncio.timeout(60), server:
        await upstreams.pass_on(url, scope, receive, send)
        await left.wait()
    await upstreams.close()
    assert [one.get("body") for one in sent[1:]] == [b": ping\n\n", b""]
    assert sent[-1]["more_body"] is False
