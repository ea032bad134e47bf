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
    one = await made(callers.owner, SETS, name="all", repositories=[*ids, ids[0]])
    assert one.keys() == {"id", "name", "repositories", "created_at"}
    assert (one["name"], one["repositories"]) == ("all", ids)
    read = await callers.member.get(f"{SETS}/{one['id']}")
    assert (read.status_code, read.json()) == (200, {"repository_set": one})
    refused(await callers.stranger.get(f"{SETS}/{one['id']}"), 404, "NOT_FOUND")
    assert await listed(callers.key, SETS) == [one]
    assert await listed(callers.stranger, SETS) == []


async def test_a_name_of_a_set_is_taken_once(callers: Callers) -> None:
    ids = [await repository(callers.key)]
    bodies = [{"name": "all", "repositories": ids}] * 4
    answers = await asyncio.gather(*(callers.key.post(SETS, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    theirs = [await repository(callers.stranger)]
    await made(callers.stranger, SETS, name="all", repositories=theirs)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "n" * 101),
        ("name", "a\nb"),
        ("name", None),
        ("repositories", []),
        ("repositories", ["no-id"]),
        ("repositories", ["11111111-1111-4111-8111-111111111111"]),
        ("repositories", ["11111111-1111-4111-8111-111111111111"] * 101),
        ("repositories", None),
    ],
)
async def test_what_is_no_set(callers: Callers, field: str, value: Any) -> None:
    body = {"name": "n" * 100, "repositories": [await repository(callers.key)]}
    bad = await callers.key.post(SETS, json={**body, field: value})
    refused(bad, 400, "INVALID_REQUEST", field)
    assert await listed(callers.key, SETS) == []
    await made(callers.key, SETS, **body)


async def test_a_set_of_anothers_repositories_is_refused(callers: Callers) -> None:
    body = {"name": "all", "repositories": [await repository(callers.key)]}
    refused(await callers.stranger.post(SETS, json=body), 400, "INVALID_REQUEST", "repositories")


async def test_what_is_bound_stays(callers: Callers) -> None:
    shop, other = await repository(callers.key), await repository(callers.key, "other")
    group = await made(callers.key, SETS, name="all", repositories=[shop, other])
    of_set = await environment(callers.key, "set", repository_set_id=group["id"])
    of_one = await environment(callers.key, "one", repository_id=shop)
    mine = await callers.member.post(
        "/v1/environments", json={"name": "mine", "scope": "user", "repository_id": shop}
    )
    refused(await callers.key.delete(f"{SETS}/{group['id']}"), 409, "CONFLICT", "environments: set")
    told = "environments: one, 1 of other users; repository sets: all"
    refused(await callers.key.delete(f"{REPOSITORIES}/{shop}"), 409, "CONFLICT", told)
    assert (await callers.key.delete(of_one)).status_code == 200
    own = f"/v1/environments/{mine.json()['environment']['id']}"
    assert (await callers.member.delete(own)).status_code == 200
    gone = await callers.key.delete(f"{REPOSITORIES}/{shop}")
    refused(gone, 409, "CONFLICT", "repository sets: all")
    changed = await callers.key.patch(f"{SETS}/{group['id']}", json={"repositories": [other]})
    assert changed.json()["repository_set"] == {**group, "repositories": [other]}
    answer = await callers.key.delete(f"{REPOSITORIES}/{shop}")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert (await callers.key.delete(of_set)).status_code == 200
    answer = await callers.key.delete(f"{SETS}/{group['id']}")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert [one["id"] for one in await listed(callers.key, REPOSITORIES)] == [other]


async def test_a_set_is_changed(callers: Callers) -> None:
    ids = [await repository(callers.key, name) for name in ("a", "b")]
    one = await made(callers.key, SETS, name="one", repositories=ids)
    two = await made(callers.key, SETS, name="two", repository_ids=ids)  # an earlier client's
    path = f"{SETS}/{one['id']}"
    for body in ({"name": "first"}, {"repositories": ids[::-1]}, {"repositories": ids[:1] * 2}, {}):
        changed = await callers.key.patch(path, json=body)
        assert changed.status_code == 200, changed.text
        one |= body
        one["repositories"] = list(dict.fromkeys(one["repositories"]))
        assert changed.json() == {"repository_set": one}
    refused(await callers.key.patch(path, json={"name": "two"}), 409, "CONFLICT", "name: two")
    for wrong in ({"name": ""}, {"repositories": []}, {"repositories": [str(uuid4())]}):
        (field,) = wrong
        refused(await callers.key.patch(path, json=wrong), 400, "INVALID_REQUEST", field)
    refused(await callers.stranger.patch(path, json={}), 404, "NOT_FOUND")
    assert await listed(callers.key, SETS) == [one, two]


@pytest.mark.parametrize("path", [REPOSITORIES, SETS])
async def test_what_is_not_there_is_not_removed(callers: Callers, path: str) -> None:
    shop = await repository(callers.key)
    group = await made(callers.key, SETS, name="all", repositories=[shop])
    ours = shop if path == REPOSITORIES else group["id"]
    for client, id in ((callers.stranger, ours), (callers.key, str(uuid4()))):
        refused(await client.delete(f"{path}/{id}"), 404, "NOT_FOUND")
    refused(await callers.key.delete(f"{path}/no-id"), 400, "INVALID_REQUEST", "id")
    assert len(await listed(callers.key, path)) == 1
