"""Replicas and the environments that they are made from: repositories, owners, what stays."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from quarterdeck.service.repositories.rows import needed_repositories
from tests.fleet.conftest import World
from tests.service.people import People, bearing, key_of, settle


async def made(client: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    (record,) = answer.json().values()
    return record


async def bound(world: World, *names: str) -> dict[str, Any]:
    """An environment with a set of repositories."""
    ids = [
        (await made(world.client, "/v1/replica/repositories", url=f"/srv/{name}"))["id"]
        for name in names
    ]
    body = {"name": "all", "repositories": ids}
    group = await made(world.client, "/v1/replica/repository-sets", **body)
    return await made(world.client, "/v1/environments", name="web", repository_set_id=group["id"])


async def test_a_replica_has_the_repositories_of_the_set_in_its_order(world: World) -> None:
    web = await bound(world, "shop", "api")
    replica = await world.get(await world.create(environment_id=web["id"]))
    assert [one["name"] for one in replica["repositories"]] == ["shop", "api"]


async def test_a_replica_keeps_what_was_disconnected(world: World) -> None:
    web = await bound(world, "shop", "api")
    of = await world.create(environment_id=web["id"])
    group = web["repository_set_id"]
    gone = (await world.get(of))["repositories"][0]["id"]
    await world.client.patch(f"/v1/environments/{web['id']}", json={"repository_set_id": None})
    for path in (f"repository-sets/{group}", f"repositories/{gone}"):
        assert (await world.client.delete(f"/v1/replica/{path}")).status_code == 200
    assert len((await world.get(of))["repositories"]) == 2
    assert await world.context.database.read(needed_repositories) == {
        one["id"] for one in (await world.get(of))["repositories"]
    }
    assert (await world.client.delete(f"/v1/replica/{of}")).status_code == 200
    assert gone not in await world.context.database.read(needed_repositories)


async def test_an_environment_stays_until_its_replicas_are_gone(world: World) -> None:
    web = await bound(world, "shop")
    of = await world.create(environment_id=web["id"], name="first")
    path = f"/v1/environments/{web['id']}"
    answer = await world.client.delete(path)
    assert (answer.status_code, answer.json()["details"]) == (409, "replicas: first")
    await world.post(of, "/sleep")
    assert (await world.client.delete(path)).status_code == 409
    assert (await world.client.delete(f"/v1/replica/{of}")).status_code == 200
    assert (await world.client.delete(path)).status_code == 200


async def test_a_personal_environment_makes_its_users_replicas(world: World) -> None:
    web = await bound(world, "shop", "api")
    people: People = await settle(world.context)
    keys = [await key_of(world.context, people.organization, u) for u in (people.member, None)]
    own, other = (bearing(key) for key in keys)
    body = {"name": "mine", "scope": "user", "source_environment_id": web["id"]}
    answer = await world.client.post("/v1/environments", json=body, headers=own)
    mine = answer.json()["environment"]["id"]

    async def create(headers: dict[str, str]) -> httpx.Response:
        wanted = {"name": "personal", "environment_id": mine}
        return await world.client.post("/v1/replica", json=wanted, headers=headers)

    assert (await create(other)).status_code == 404
    replica = (await create(own)).json()["replica"]
    assert [one["name"] for one in replica["repositories"]] == ["shop", "api"]
    await world.reach(replica["id"], "active")


@pytest.mark.long
async def test_who_may_delete_a_replica(world: World) -> None:
    """One's own, one that is nobody's, and as an admin any."""
    people = await settle(world.context)
    member = bearing(await key_of(world.context, people.organization, people.member))
    shared = bearing(await key_of(world.context, people.organization))

    async def make(headers: dict[str, str]) -> str:
        body = {"name": f"r-{uuid4()}", "environment_id": world.environment}
        answer = await world.client.post("/v1/replica", json=body, headers=headers)
        return answer.json()["replica"]["id"]

    owners, nobodys, own, other = [await make(one) for one in ({}, shared, member, member)]
    for id, status in ((owners, 403), (nobodys, 200), (own, 200)):
        answer = await world.client.delete(f"/v1/replica/{id}", headers=member)
        assert answer.status_code == status, answer.text
    for id in (owners, other):
        assert (await world.client.delete(f"/v1/workspaces/{id}")).status_code == 200
