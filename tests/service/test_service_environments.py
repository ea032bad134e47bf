"""Environments: made, changed, removed, in whose scope, and backed by a source."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, update

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import warm_pools, workspaces
from quarterdeck.service.formats import now_text
from tests.service.callers import Callers, Client, environment, made, refused, repository

ALL = "/v1/environments"
GLOBAL = "/v1/environments/global"


async def record(client: Client, path: str) -> dict[str, Any]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()["environment"]


async def names(client: Client, scope: str) -> list[str]:
    answer = await client.get(ALL, params={"scope": scope})
    return [one["name"] for one in answer.json()["environments"]]


# Changing


async def test_only_what_is_given_changes(callers: Callers) -> None:
    shop = await repository(callers.key)
    path = await environment(callers.key, description="d", repository_id=shop, system_prompt="p")
    before = await record(callers.key, path)
    answer = await callers.owner.patch(path, json={"description": "other"})
    assert answer.status_code == 200
    after = answer.json()["environment"]
    assert after == {**before, "description": "other", "updated_at": after["updated_at"]}
    assert after == await record(callers.key, path)


async def test_null_clears_what_may_be_empty(callers: Callers) -> None:
    shop = await repository(callers.key)
    given = {"description": "d", "system_prompt": "p", "personal_preferences": "q"}
    path = await environment(callers.key, repository_id=shop, **given)
    nulls = dict.fromkeys(("repository_id", *given))
    after = (await callers.key.patch(path, json=nulls)).json()["environment"]
    assert {name: after[name] for name in nulls} == nulls
    refused(await callers.key.patch(path, json={"name": None}), 400, "INVALID_REQUEST", "name")


async def test_a_name_is_taken_in_its_scope_only(callers: Callers) -> None:
    await environment(callers.key, "web")
    other = await environment(callers.key, "api")
    refused(await callers.key.patch(other, json={"name": "web"}), 409, "CONFLICT", "name: web")
    refused(await callers.key.post(ALL, json={"name": "web"}), 409, "CONFLICT", "name: web")
    mine = await environment(callers.owner, "web", scope="user")
    await environment(callers.member, "web", scope="user")
    await environment(callers.stranger, "web")
    again = await callers.owner.post(ALL, json={"name": "web", "scope": "user"})
    refused(again, 409, "CONFLICT")
    assert (await callers.owner.patch(mine, json={"name": "web"})).status_code == 200


@pytest.mark.parametrize(("length", "status"), [(0, 400), (1, 200), (200, 200), (201, 400)])
async def test_the_length_of_a_name(callers: Callers, length: int, status: int) -> None:
    path = await environment(callers.key)
    answer = await callers.key.patch(path, json={"name": "n" * length})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "two\nlines"),
        ("name", 7),
        ("description", "nul\0"),
        ("system_prompt", "nul\0"),
        ("repository_id", "no-id"),
        ("repository_id", "11111111-1111-4111-8111-111111111111"),
        ("repository_set_id", "11111111-1111-4111-8111-111111111111"),
    ],
)
async def test_what_cannot_be_stored_is_refused(callers: Callers, field: str, value: Any) -> None:
    path = await environment(callers.key)
    refused(await callers.key.patch(path, json={field: value}), 400, "INVALID_REQUEST", field)
    body = {"name": "other", field: value}
    refused(await callers.key.post(ALL, json=body), 400, "INVALID_REQUEST", field)


async def test_a_repository_or_a_set_but_not_both(callers: Callers) -> None:
    shop = await repository(callers.key)
    group = await made(
        callers.key, "/v1/replica/repository-sets", name="all", repository_ids=[shop]
    )
    both = {"repository_id": shop, "repository_set_id": group["id"]}
    refused(await callers.key.post(ALL, json={"name": "x", **both}), 400, "INVALID_REQUEST")
    path = await environment(callers.key, repository_id=shop)
    one = {"repository_set_id": group["id"]}
    refused(await callers.key.patch(path, json=one), 400, "INVALID_REQUEST", "repository_set_id")
    answer = await callers.key.patch(path, json={**one, "repository_id": None})
    assert answer.json()["environment"]["repository_set_id"] == group["id"]


async def test_the_global_environment_stays_as_it_is(callers: Callers) -> None:
    by_id = f"{ALL}/{(await record(callers.key, GLOBAL))['id']}"
    for path in (GLOBAL, by_id):
        refused(await callers.key.patch(path, json={"name": "x"}), 400, "INVALID_REQUEST")
        refused(await callers.key.patch(path, json={}), 400, "INVALID_REQUEST")
        refused(await callers.key.delete(path), 409, "CONFLICT")
    assert (await record(callers.key, GLOBAL))["name"] == "global"


# Counts


async def test_the_record_counts_its_own_parts(callers: Callers) -> None:
    path = await environment(callers.key)
    await made(callers.key, f"{GLOBAL}/variables", key="BELOW", value="x")
    for key in ("A", "B"):
        await made(callers.key, f"{path}/variables", key=key, value="x")
    for file in ("a", "b", "c"):
        await made(callers.key, f"{path}/files", path=f"~/{file}", content="x")
    await made(callers.key, f"{path}/skills", name="s", slug="s", source="/s")
    config = {"command": "x"}
    await made(callers.key, f"{path}/mcps", name="m", transport="stdio", config=config)
    one = await record(callers.key, path)
    kinds = ("variable", "file", "skill", "mcp")
    assert [one[f"{kind}_count"] for kind in kinds] == [2, 3, 1, 1]
    assert one in (await callers.key.get(ALL)).json()["environments"]
    below = await record(callers.key, GLOBAL)
    assert [below[f"{kind}_count"] for kind in kinds] == [1, 0, 0, 0]


# Entity tags (docs/interface.md 11)


async def test_a_change_of_an_older_state_is_refused(callers: Callers) -> None:
    answer = await callers.key.post("/v1/environments", json={"name": "web"})
    path = f"/v1/environments/{answer.json()['environment']['id']}"
    first = answer.headers["etag"]
    assert (await callers.member.get(path)).headers["etag"] == first
    changed = await callers.key.patch(
        path, json={"description": "one"}, headers={"If-Match": f'"x", {first}'}
    )
    assert changed.status_code == 200
    second = changed.headers["etag"]
    assert second != first and (await callers.key.get(path)).headers["etag"] == second
    for tag in (first, f"W/{second}", second.strip('"'), '""', "x"):
        body = {"description": "two"}
        late = await callers.key.patch(path, json=body, headers={"If-Match": tag})
        refused(late, 412, "PRECONDITION_FAILED", "If-Match")
    assert (await record(callers.key, path))["description"] == "one"
    await made(callers.key, f"{path}/variables", key="A", value="x")
    for tag in (second, "*"):
        body = {"description": f"by {tag}"}
        answer = await callers.key.patch(path, json=body, headers={"If-Match": tag})
        assert answer.status_code == 200, answer.text
    gone = await callers.key.patch(
        f"/v1/environments/{uuid4()}", json={}, headers={"If-Match": "*"}
    )
    refused(gone, 404, "NOT_FOUND")


async def test_of_two_changes_of_one_state_one_is_made(callers: Callers) -> None:
    path = await environment(callers.key)
    tag = {"If-Match": (await callers.key.get(path)).headers["etag"]}
    changes = [callers.key.patch(path, json={"description": str(n)}, headers=tag) for n in range(4)]
    answers = await asyncio.gather(*changes)
    assert sorted(one.status_code for one in answers) == [200, 412, 412, 412]


# Removing


async def test_a_removed_environment_is_gone_with_its_parts(callers: Callers) -> None:
    path = await environment(callers.key)
    await made(callers.key, f"{path}/variables", key="A", value="x")
    await callers.key.post(f"{path}/warm-hooks/save", json={"content": "true"})
    answer = await callers.owner.delete(path)
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    for gone in (path, f"{path}/variables", f"{path}/warm-hooks"):
        refused(await callers.key.get(gone), 404, "NOT_FOUND")
    refused(await callers.key.delete(path), 404, "NOT_FOUND")
    again = await environment(callers.key)
    assert (await callers.key.get(f"{again}/variables")).json() == {"environment_variables": []}


async def test_one_that_replicas_are_made_from_stays(
    callers: Callers, context: ServiceContext, new_workspace: Any
) -> None:
    path = await environment(callers.key)
    of = path.rsplit("/", 1)[-1]
    ids = [await new_workspace(context.database, name=f"r{n}") for n in range(5)]
    move = update(workspaces).where(workspaces.c.id.in_(ids)).values(environment_id=of)
    await context.database.write(lambda c: c.execute(move) and None)
    answer = await callers.key.delete(path)
    refused(answer, 409, "CONFLICT", "r0, r1, r2 and others")
    warm = update(workspaces).values(warm_state="ready")
    await context.database.write(lambda c: c.execute(warm) and None)
    answer = await callers.key.delete(path)
    refused(answer, 409, "CONFLICT")
    assert "warm pool" in answer.json()["error"]
    assert (await record(callers.key, path))["name"] == "web"


async def test_a_source_stays_while_others_have_it(callers: Callers) -> None:
    source = await environment(callers.key)
    of = source.rsplit("/", 1)[-1]
    mine = await environment(callers.owner, "mine", scope="user", source_environment_id=of)
    refused(await callers.key.delete(source), 409, "CONFLICT", "personal environments: 1")
    assert (await callers.owner.delete(mine)).status_code == 200
    assert (await callers.key.delete(source)).status_code == 200


# Scopes


async def test_a_personal_environment_is_its_users_alone(callers: Callers) -> None:
    mine = await environment(callers.owner, "mine", scope="user")
    assert (await record(callers.owner, mine))["user_id"] == callers.people.owner
    part = f"{mine}/variables"
    for client in (callers.member, callers.key, callers.stranger):
        refused(await client.get(mine), 404, "NOT_FOUND")
        refused(await client.patch(mine, json={"name": "x"}), 404, "NOT_FOUND")
        refused(await client.delete(mine), 404, "NOT_FOUND")
        refused(await client.get(part), 404, "NOT_FOUND")
        refused(await client.post(part, json={"key": "A", "value": "x"}), 404, "NOT_FOUND")
    assert (await record(callers.owner, mine))["name"] == "mine"


async def test_lists_by_scope(callers: Callers) -> None:
    await environment(callers.key, "web")
    await environment(callers.owner, "mine", scope="user")
    await environment(callers.member, "theirs", scope="user")
    assert await names(callers.owner, "org") == ["global", "web"]
    assert await names(callers.owner, "user") == ["mine"]
    assert await names(callers.owner, "all") == ["global", "mine", "web"]
    assert await names(callers.key, "user") == []
    assert await names(callers.stranger, "all") == ["global"]


async def test_another_organization_sees_and_changes_nothing(callers: Callers) -> None:
    path = await environment(callers.key)
    refused(await callers.stranger.get(path), 404, "NOT_FOUND")
    refused(await callers.stranger.patch(path, json={"name": "x"}), 404, "NOT_FOUND")
    refused(await callers.stranger.delete(path), 404, "NOT_FOUND")
    body = {"name": "x", "repository_id": await repository(callers.key)}
    refused(await callers.stranger.post(ALL, json=body), 400, "INVALID_REQUEST", "repository_id")
    ours, theirs = await record(callers.key, GLOBAL), await record(callers.stranger, GLOBAL)
    assert ours["id"] != theirs["id"]


# Sources


async def test_binding_and_prompt_are_the_sources(callers: Callers) -> None:
    shop = await repository(callers.key)
    source = await environment(callers.key, repository_id=shop, system_prompt="Be brief.")
    of = source.rsplit("/", 1)[-1]
    mine = await environment(callers.owner, "mine", scope="user", source_environment_id=of)
    one = await record(callers.owner, mine)
    assert (one["repository_id"], one["system_prompt"]) == (shop, "Be brief.")
    await callers.key.patch(source, json={"repository_id": None, "system_prompt": "Be long."})
    one = await record(callers.owner, mine)
    assert (one["repository_id"], one["system_prompt"]) == (None, "Be long.")


@pytest.mark.parametrize("field", ["repository_id", "repository_set_id", "system_prompt"])
async def test_what_comes_from_the_source_is_locked(callers: Callers, field: str) -> None:
    source = await environment(callers.key)
    of = source.rsplit("/", 1)[-1]
    value = "p" if field == "system_prompt" else await repository(callers.key)
    body = {"name": "mine", "scope": "user", "source_environment_id": of}
    if field != "repository_set_id":
        bad = await callers.owner.post(ALL, json={**body, field: value})
        refused(bad, 400, "INVALID_REQUEST", field)
    mine = f"{ALL}/{(await made(callers.owner, ALL, **body))['id']}"
    for given in (value, None):
        bad = await callers.owner.patch(mine, json={field: given})
        refused(bad, 400, "INVALID_REQUEST", field)
    free = {"name": "own", "description": "d", "personal_preferences": "p"}
    after = (await callers.owner.patch(mine, json=free)).json()["environment"]
    assert {name: after[name] for name in free} == free


async def test_a_source_is_never_another(callers: Callers) -> None:
    shared, other = await environment(callers.key), await environment(callers.key, "other")
    ids = [path.rsplit("/", 1)[-1] for path in (shared, other)]
    mine = await environment(callers.owner, "mine", scope="user", source_environment_id=ids[0])
    for path, source in ((mine, ids[0]), (shared, None)):
        body = {"source_environment_id": source, "description": "the same"}
        answer = await callers.owner.patch(path, json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["environment"]["source_environment_id"] == source
    for path, source in ((mine, ids[1]), (mine, None), (shared, ids[1]), (shared, ids[0])):
        body = {"source_environment_id": source, "description": "other"}
        answer = await callers.owner.patch(path, json=body)
        refused(answer, 400, "INVALID_REQUEST", "source_environment_id")
        assert "cannot be changed" in answer.json()["error"]
        assert (await record(callers.owner, path))["description"] == "the same"


async def test_what_can_be_a_source(callers: Callers) -> None:
    async def ask(client: Client, **body: Any) -> Any:
        return await client.post(ALL, json={"name": f"n{uuid4()}", **body})

    shared = (await environment(callers.key)).rsplit("/", 1)[-1]
    mine = (await environment(callers.owner, "mine", scope="user")).rsplit("/", 1)[-1]
    field = "source_environment_id"
    for body in (
        {"source_environment_id": shared},
        {"source_environment_id": mine, "scope": "user"},
        {"source_environment_id": str(uuid4()), "scope": "user"},
    ):
        refused(await ask(callers.owner, **body), 400, "INVALID_REQUEST", field)
    refused(
        await ask(callers.stranger, source_environment_id=shared, scope="user"),
        400,
        "INVALID_REQUEST",
        field,
    )
    backed = await ask(callers.member, source_environment_id=shared, scope="user")
    assert backed.status_code == 201


# At once


async def test_one_of_several_changes_to_one_name_is_taken(callers: Callers) -> None:
    paths = [await environment(callers.key, f"e{n}") for n in range(4)]
    answers = await asyncio.gather(
        *(callers.key.patch(path, json={"name": "same"}) for path in paths)
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]


async def test_paths_that_name_no_environment(callers: Callers) -> None:
    for path in (f"{ALL}/nothing", f"{ALL}/nothing/variables"):
        refused(await callers.key.get(path), 400, "INVALID_REQUEST", "environment_id")
    for method in ("GET", "PATCH", "DELETE"):
        answer = await callers.key.request(method, f"{ALL}/{uuid4()}", json={"name": "x"})
        refused(answer, 404, "NOT_FOUND")


async def test_a_pool_of_its_own_does_not_keep_an_environment(
    callers: Callers, context: ServiceContext
) -> None:
    path = await environment(callers.key)
    values = {
        "organization_id": callers.people.organization,
        "environment_id": path.rsplit("/", 1)[-1],
        "enabled": False,
        "target_size": 1,
        "generation": 1,
        "failures": 0,
        "updated_at": now_text(),
    }
    pool = insert(warm_pools).values(id=str(uuid4()), **values)
    await context.database.write(lambda c: c.execute(pool) and None)
    assert (await callers.key.delete(path)).status_code == 200


@pytest.mark.parametrize("part", ["", "/variables", "/warm-hooks"])
async def test_an_id_that_is_none_is_told_in_one_sentence(callers: Callers, part: str) -> None:
    answer = await callers.key.get(f"{ALL}/nothing{part}")
    refused(answer, 400, "INVALID_REQUEST", "environment_id")
    told = answer.json()["details"]
    assert "`global`, or a UUID" in told
    assert "[" not in told and ";" not in told
