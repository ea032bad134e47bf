"""Keys: made, listed, taken away; their roles; when they were used; how often they may ask."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text, update

from quarterdeck.local.home import Home
from quarterdeck.service.app import build_app
from quarterdeck.service.caches import OUTAGE_SECONDS, SECONDS, Remembered
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import api_keys
from quarterdeck.service.errors import ApiError, DatabaseLostError, StorageError
from quarterdeck.service.first_start import ensure_installation, owner_of
from quarterdeck.service.identity.authentication import KeyUse, RateLimit
from quarterdeck.service.identity.service import Caller, CallerKind
from quarterdeck.service.identity.tokens import IdentitySettings
from quarterdeck.service.start import build_service
from tests.service.people import People, bearing, key_of, settle, token_of

OWN = "/v1/user/api-keys"
SHARED = "/v1/organization/api-keys"


@pytest.fixture
async def people(context: ServiceContext) -> People:
    return await settle(context)


@pytest.fixture
async def anyone(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a key of its own."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as opened:
        yield opened


def refused(answer: httpx.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text


async def test_the_owner_is_there_once_however_often_it_starts(
    context: ServiceContext, home: Home
) -> None:
    first = await owner_of(context.database)
    await ensure_installation(context.database, home)
    assert await owner_of(context.database) == first
    count = text("SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM members)")
    assert tuple(await context.database.read(lambda c: c.execute(count).one())) == (1, 1)


async def test_an_older_database_gets_its_owner(context: ServiceContext, home: Home) -> None:
    for table in ("members", "users"):
        statement = text(f"DELETE FROM {table}")
        await context.database.write(lambda c, s=statement: c.execute(s))
    before = home.key.read_text()
    await ensure_installation(context.database, home)
    assert await owner_of(context.database)
    assert home.key.read_text() == before


async def test_the_installations_key_is_its_owners(
    anyone: httpx.AsyncClient, context: ServiceContext, home: Home
) -> None:
    headers = bearing(home.key.read_text().strip())
    profile = (await anyone.get("/v1/user/profile", headers=headers)).json()["user"]
    assert (profile["id"], profile["name"]) == (await owner_of(context.database), "Owner")
    (organization,) = (await anyone.get("/v1/organizations", headers=headers)).json()[
        "organizations"
    ]
    assert (organization["name"], organization["role"]) == ("Local", "admin")
    (key,) = (await anyone.get(OWN, headers=headers)).json()["api_keys"]
    assert key["name"] == "This installation"
    assert (await anyone.get(SHARED, headers=headers)).json()["api_keys"] == []
    refused(await anyone.post(OWN, json={"name": "x"}, headers=headers), 401, "JWT_REQUIRED")


async def test_an_older_key_of_the_installation_gets_its_owner_at_the_next_start(
    anyone: httpx.AsyncClient, context: ServiceContext, home: Home, people: People
) -> None:
    without = update(api_keys).values(user_id=None)
    await context.database.write(lambda c: c.execute(without))
    shared = bearing(await key_of(context, people.organization))
    own = bearing(home.key.read_text().strip())
    await ensure_installation(context.database, home)
    assert bearing(home.key.read_text().strip()) == own
    profile = (await anyone.get("/v1/user/profile", headers=own)).json()
    assert profile["user"]["id"] == people.owner
    refused(await anyone.get("/v1/user/profile", headers=shared), 401, "USER_REQUIRED")


async def test_a_personal_key_is_made_with_a_token_and_shown_once(
    anyone: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    headers = bearing(token_of(context, people.member))
    made = await anyone.post(OWN, json={"name": "laptop"}, headers=headers)
    assert made.status_code == 201, made.text
    key, record = made.json()["key"], made.json()["api_key"]
    assert key.startswith("sk_") and record["key_prefix"] == key[:7]
    assert record.keys() == {"id", "name", "key_prefix", "created_at", "last_used_at"}
    assert record["last_used_at"] is None
    stored = text("SELECT * FROM api_keys WHERE name = 'laptop'")
    row = await context.database.read(lambda c: c.execute(stored).one())
    assert key not in str(row) and row.organization_id == people.organization
    profile = await anyone.get("/v1/user/profile", headers=bearing(key))
    assert profile.json()["user"]["id"] == people.member
    assert profile.json()["user"]["email"] == "m@example.org"


async def test_a_user_of_two_organizations_names_the_keys(
    anyone: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    statement = text("INSERT INTO members VALUES (:o, :u, 'member', '2026')")
    both = {"o": people.other, "u": people.member}
    await context.database.write(lambda c: c.execute(statement, both))
    token = token_of(context, people.member)
    answer = await anyone.post(OWN, json={"name": "a"}, headers=bearing(token))
    refused(answer, 400, "ORG_HEADER_REQUIRED")
    named = bearing(token, people.other)
    made = await anyone.post(OWN, json={"name": "a"}, headers=named)
    assert made.status_code == 201
    listed = await anyone.get("/v1/organizations", headers=bearing(made.json()["key"]))
    assert [one["id"] for one in listed.json()["organizations"]] == [people.other]
    listed = await anyone.get("/v1/organizations", headers=bearing(token))
    roles = {one["id"]: one["role"] for one in listed.json()["organizations"]}
    assert roles == {people.organization: "member", people.other: "member"}


@pytest.mark.parametrize("name", ["", "x" * 201, None, 5])
async def test_a_keys_name_is_bounded(
    anyone: httpx.AsyncClient, context: ServiceContext, people: People, name: object
) -> None:
    headers = bearing(token_of(context, people.member))
    answer = await anyone.post(OWN, json={"name": name}, headers=headers)
    refused(answer, 400, "INVALID_REQUEST")
    assert answer.json()["details"].startswith("name:")


async def test_keys_come_in_pages_newest_first(
    client: httpx.AsyncClient, context: ServiceContext
) -> None:
    for number in range(12):
        made = await client.post(SHARED, json={"name": f"k{number}"})
        assert made.status_code == 201
    first = (await client.get(SHARED)).json()
    assert (first["total"], first["page"], first["limit"], first["total_pages"]) == (12, 1, 10, 2)
    second = (await client.get(SHARED, params={"page": 2})).json()
    ids = [one["id"] for one in first["api_keys"] + second["api_keys"]]
    assert len(set(ids)) == 12
    times = [one["created_at"] for one in first["api_keys"] + second["api_keys"]]
    assert times == sorted(times, reverse=True)
    for query in ({"limit": 0}, {"limit": 101}, {"page": 0}, {"page": "x"}):
        refused(await client.get(SHARED, params=query), 400, "INVALID_REQUEST")


async def test_a_deleted_key_is_refused_at_once(
    client: httpx.AsyncClient, anyone: httpx.AsyncClient, people: People
) -> None:
    made = (await client.post(SHARED, json={"name": "gone"})).json()
    headers = bearing(made["key"])
    assert (await anyone.get("/v1/agents", headers=headers)).status_code == 200
    path = f"{SHARED}/{made['api_key']['id']}"
    assert (await client.delete(path)).json() == {"success": True}
    refused(await anyone.get("/v1/agents", headers=headers), 401, "UNAUTHORIZED")
    refused(await client.delete(path), 404, "NOT_FOUND")
    refused(await client.delete(f"{SHARED}/x"), 400, "INVALID_REQUEST")


async def test_nobody_sees_or_deletes_keys_of_others(
    client: httpx.AsyncClient, anyone: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    member = await key_of(context, people.organization, people.member)
    owner = await key_of(context, people.organization, people.owner)
    theirs = await key_of(context, people.other, people.stranger)
    shared = (await client.post(SHARED, json={"name": "shared"})).json()["api_key"]["id"]
    own = (await anyone.get(OWN, headers=bearing(member))).json()["api_keys"]
    assert len(own) == 1
    path = f"/{own[0]['id']}"
    for key in (owner, theirs):
        refused(await anyone.delete(OWN + path, headers=bearing(key)), 404, "NOT_FOUND")
    refused(await client.delete(SHARED + path), 404, "NOT_FOUND")
    refused(await anyone.delete(f"{OWN}/{shared}", headers=bearing(owner)), 404, "NOT_FOUND")
    foreign = await key_of(context, people.other)
    refused(await anyone.delete(f"{SHARED}/{shared}", headers=bearing(foreign)), 404, "NOT_FOUND")
    gone = await anyone.delete(OWN + path, headers=bearing(member))
    assert gone.json() == {"success": True}


async def test_a_personal_key_ends_with_the_membership(
    anyone: httpx.AsyncClient, context: ServiceContext, people: People, app: FastAPI
) -> None:
    headers = bearing(await key_of(context, people.organization, people.member))
    assert (await anyone.get("/v1/agents", headers=headers)).status_code == 200
    statement = text("DELETE FROM members WHERE user_id = :u")
    await context.database.write(lambda c: c.execute(statement, {"u": people.member}))
    app.state.service.authenticator.keys.forget()
    refused(await anyone.get("/v1/agents", headers=headers), 401, "UNAUTHORIZED")


async def test_an_organizations_name_and_role_are_told(
    client: httpx.AsyncClient, people: People
) -> None:
    answer = await client.get("/v1/organizations")
    expected = {"id": people.organization, "name": "Local", "role": "admin"}
    assert answer.json() == {"organizations": [expected]}


class Writes:
    """A database that counts writes; the first ones can be made to fail."""

    def __init__(self, context: ServiceContext, failing: int = 0) -> None:
        self.context, self.count, self.failing = context, 0, failing
        self.done = asyncio.Event()

    async def write(self, fn):
        self.count += 1
        try:
            if self.count <= self.failing:
                raise StorageError("The disk failed.")
            return await self.context.database.write(fn)
        finally:
            self.done.set()


async def used_at(context: ServiceContext, key_id: str) -> str | None:
    statement = text("SELECT last_used_at FROM api_keys WHERE id = :id")
    return await context.database.read(lambda c: c.execute(statement, {"id": key_id}).scalar())


async def key_id(context: ServiceContext) -> str:
    return await context.database.read(
        lambda c: c.execute(text("SELECT id FROM api_keys")).scalar()
    )


async def test_use_is_stored_soon_and_then_once_in_a_while(context: ServiceContext) -> None:
    writes, key = Writes(context), await key_id(context)
    uses = KeyUse(writes, pause=3600)
    running = asyncio.create_task(uses.run())
    uses.note(key)
    await writes.done.wait()
    first = await used_at(context, key)
    assert first is not None
    for _ in range(100):
        uses.note(key)
        await asyncio.sleep(0)
    assert writes.count == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert writes.count == 2
    assert await used_at(context, key) >= first


async def test_uses_that_cannot_be_stored_stop_nothing(context: ServiceContext) -> None:
    writes, key = Writes(context, failing=1), await key_id(context)
    uses = KeyUse(writes, pause=0)
    running = asyncio.create_task(uses.run())
    uses.note(key)
    await writes.done.wait()
    writes.done.clear()
    uses.note(key)
    await writes.done.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await used_at(context, key) is not None


async def test_requests_note_the_use_of_their_key(
    client: httpx.AsyncClient, context: ServiceContext, app: FastAPI
) -> None:
    assert (await client.get("/v1/agents")).status_code == 200
    await app.state.service.authenticator.uses.store()
    listed = (await client.get(OWN)).json()["api_keys"]
    assert listed[0]["last_used_at"] is not None


async def test_what_is_read_before_forgetting_is_not_kept_after() -> None:
    remembered: Remembered[str, str] = Remembered()
    reading, go = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        reading.set()
        await go.wait()
        return "old"

    async def gone() -> None:
        return None

    first = asyncio.create_task(remembered.get("k", slow))
    await reading.wait()
    remembered.forget()
    go.set()
    assert await first == "old"
    assert await remembered.get("k", gone) is None


async def test_while_the_database_is_lost_a_value_is_kept_longer_but_not_for_ever() -> None:
    now, lost = [0.0], [False]
    remembered: Remembered[str, str] = Remembered(lambda: now[0], lost=lambda: lost[0])
    looks: list[float] = []

    async def look() -> str:
        looks.append(now[0])
        if now[0] > 0:
            raise DatabaseLostError("away")
        return "kept"

    assert await remembered.get("k", look) == "kept"
    now[0] = SECONDS + 1
    assert await remembered.get("k", look) == "kept"  # it was asked, in vain
    lost[0] = True
    assert await remembered.get("k", look) == "kept"  # it is not even asked
    assert looks == [0.0, SECONDS + 1]
    with pytest.raises(DatabaseLostError):
        await remembered.get("other", look)
    now[0] = SECONDS + OUTAGE_SECONDS
    with pytest.raises(DatabaseLostError):
        await remembered.get("k", look)
    now[0] = SECONDS + 1
    remembered.forget()
    with pytest.raises(DatabaseLostError):
        await remembered.get("k", look)


def caller(key: str) -> Caller:
    return Caller("o", None, CallerKind.ORGANIZATION_KEY, key_id=key)


def test_the_rate_limit_is_per_key_and_says_when() -> None:
    now = [0.0]
    limit = RateLimit(3, lambda: now[0])
    for _ in range(3):
        limit.take(caller("a"))
    with pytest.raises(ApiError) as refusal:
        limit.take(caller("a"))
    assert (refusal.value.status, refusal.value.retry_after) == (429, 20)
    limit.take(caller("b"))
    now[0] = 19.9
    with pytest.raises(ApiError):
        limit.take(caller("a"))
    now[0] = 20.1
    limit.take(caller("a"))


async def test_a_configured_rate_is_answered_with_429(context: ServiceContext, home: Home) -> None:
    limited = replace(context, identity=IdentitySettings(requests_per_minute=2))
    transport = httpx.ASGITransport(build_app(build_service(limited)))
    headers = bearing(home.key.read_text().strip())
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for _ in range(2):
            assert (await client.get("/v1/agents", headers=headers)).status_code == 200
        answer = await client.get("/v1/agents", headers=headers)
        refused(answer, 429, "RATE_LIMITED")
        assert 1 <= int(answer.headers["retry-after"]) <= 30
        assert (await client.get("/v1/health")).status_code == 200
        other = bearing(await key_of(limited, (await settle(limited)).organization))
        assert (await client.get("/v1/agents", headers=other)).status_code == 200


async def test_deleting_with_an_unknown_id_is_404(
    anyone: httpx.AsyncClient, context: ServiceContext, people: People
) -> None:
    headers = bearing(token_of(context, people.owner))
    refused(await anyone.delete(f"{OWN}/{uuid4()}", headers=headers), 404, "NOT_FOUND")
