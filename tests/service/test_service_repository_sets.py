"""Sets of repositories, and taking repositories away."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.service.callers import Callers, Client, environment, made, refused, repository

REPOSITORIES = "/v1/replica/repositories"
SETS = "/v1/replica/repository-sets"


async def listed(client: Client, path: str) -> list[dict[str, Any]]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    (records,) = answer.json().values()
    return records


async def test_a_set_keeps_its_order(callers: Callers) -> None:
    ids = [await repository(callers.key, name) for name in ("c", "a", "b")]
    one = await made(callers.member, SETS, name="all", repository_ids=[*ids, ids[0]])
    assert [each["id"] for each in one["repositories"]] == ids
    known = {each["id"]: each for each in await listed(callers.key, REPOSITORIES)}
    assert one["repositories"] == [known[id] for id in ids]
    assert await listed(callers.key, SETS) == [one]
    assert await listed(callers.stranger, SETS) == []


async def test_a_name_of_a_set_is_taken_once(callers: Callers) -> None:
    ids = [await repository(callers.key)]
    bodies = [{"name": "all", "repository_ids": ids}] * 4
    answers = await asyncio.gather(*(callers.key.post(SETS, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    theirs = [await repository(callers.stranger)]
    await made(callers.stranger, SETS, name="all", repository_ids=theirs)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "n" * 201),
        ("name", "a\nb"),
        ("name", None),
        ("repository_ids", []),
        ("repository_ids", ["no-id"]),
        ("repository_ids", ["11111111-1111-4111-8111-111111111111"]),
        ("repository_ids", ["11111111-1111-4111-8111-111111111111"] * 101),
        ("repository_ids", None),
    ],
)
async def test_what_is_no_set(callers: Callers, field: str, value: Any) -> None:
    body = {"name": "n" * 200, "repository_ids": [await repository(callers.key)]}
    bad = await callers.key.post(SETS, json={**body, field: value})
    refused(bad, 400, "INVALID_REQUEST", field)
    assert await listed(callers.key, SETS) == []
    await made(callers.key, SETS, **body)


async def test_a_set_of_anothers_repositories_is_refused(callers: Callers) -> None:
    body = {"name": "all", "repository_ids": [await repository(callers.key)]}
    refused(await callers.stranger.post(SETS, json=body), 400, "INVALID_REQUEST", "repository_ids")


async def test_what_is_bound_stays(callers: Callers) -> None:
    shop, other = await repository(callers.key), await repository(callers.key, "other")
    group = await made(callers.key, SETS, name="all", repository_ids=[shop, other])
    of_set = await environment(callers.key, "set", repository_set_id=group["id"])
    of_one = await environment(callers.key, "one", repository_id=shop)
    refused(await callers.key.delete(f"{SETS}/{group['id']}"), 409, "CONFLICT", "environments: 1")
    refused(await callers.key.delete(f"{REPOSITORIES}/{shop}"), 409, "CONFLICT", "environments: 1")
    assert (await callers.key.delete(of_one)).status_code == 200
    answer = await callers.key.delete(f"{REPOSITORIES}/{shop}")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    (left,) = await listed(callers.key, SETS)
    assert [one["id"] for one in left["repositories"]] == [other]
    assert (await callers.key.delete(of_set)).status_code == 200
    answer = await callers.key.delete(f"{SETS}/{group['id']}")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert [one["id"] for one in await listed(callers.key, REPOSITORIES)] == [other]


@pytest.mark.parametrize("path", [REPOSITORIES, SETS])
async def test_what_is_not_there_is_not_removed(callers: Callers, path: str) -> None:
    shop = await repository(callers.key)
    group = await made(callers.key, SETS, name="all", repository_ids=[shop])
    ours = shop if path == REPOSITORIES else group["id"]
    for client, id in ((callers.stranger, ours), (callers.key, str(uuid4()))):
        refused(await client.delete(f"{path}/{id}"), 404, "NOT_FOUND")
    refused(await callers.key.delete(f"{path}/no-id"), 400, "INVALID_REQUEST", "id")
    assert len(await listed(callers.key, path)) == 1
