"""Services over one database, as far as its rows tell; see also `tests/system`."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import Connection, insert, select

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service import presence
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import services, webhook_deliveries
from quarterdeck.service.presence import Presence
from quarterdeck.service.records.organizations import only_organization
from quarterdeck.service.start import open_service
from tests.service.conftest import Mirrors


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
    signs = Presence(other)
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
    signs = Presence(other)
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
    first, second = Presence(context), Presence(other)
    await second.start()
    await second.close()

    def store(connection: Connection) -> None:
        connection.execute(
            insert(webhook_deliveries).values(
                id=str(uuid4()),
                organization_id=only_organization(connection),
                home_id=other.home_id,
                url="http://127.0.0.1:1",
                body="{}",
                attempts=0,
                next_at="2999",
                created_at="2999",
            )
        )
        if seen_at is not None:
            connection.execute(services.update().values(seen_at=seen_at))

    await context.database.write(store)
    nudged: list[int] = []
    context.webhooks_stored = lambda: nudged.append(1)
    await first.start()
    await first.close()
    homes = await context.database.read(
        lambda c: c.execute(select(webhook_deliveries.c.home_id)).scalars().all()
    )
    assert homes == [context.home_id if heir else other.home_id]
    assert bool(nudged) == heir
