"""Which environment a fork is started with: one that the user who makes it may use."""

from typing import Any

import pytest

from tests.conftest import DATABASES
from tests.fleet.conftest import World
from tests.service.people import People, bearing, key_of, settle

pytestmark = pytest.mark.one_database


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def people(world: World) -> People:
    return await settle(world.context)


async def environment(world: World, **body: Any) -> str:
    answer = await world.client.post("/v1/environments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["environment"]["id"]


async def forked(world: World, replica: str, key: str | None = None) -> str:
    """The environment of a new fork, by default made by the owner."""
    headers = {} if key is None else bearing(key)
    answer = await world.client.post(f"/v1/replica/{replica}/fork", json={}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["replica"]["environment_id"]


async def test_a_fork_keeps_no_personal_environment_of_another_user(
    world: World, people: People
) -> None:
    shared = await environment(world, name="shared")
    backed = {"scope": "user", "source_environment_id": shared}
    personal, with_source = (
        await environment(world, name="mine", scope="user"),
        await environment(world, name="backed", **backed),
    )
    replicas = [await world.create(environment_id=of) for of in (shared, personal, with_source)]
    member = await key_of(world.context, people.organization, people.member)
    organization = await key_of(world.context, people.organization)
    for key in (member, organization):
        assert [await forked(world, replica, key) for replica in replicas] == [
            shared,
            world.environment,
            shared,
        ]
    own = [await forked(world, replica) for replica in replicas]
    assert own == [shared, personal, with_source]
