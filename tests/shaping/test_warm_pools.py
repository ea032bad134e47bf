"""Pools hold prepared workspaces, hand each out once, and replace what is stale or failed."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from quarterdeck.service.environments.warm_pool_rows import (
    FIRST_PAUSE,
    all_pools,
    mark_ready,
    note_failure,
)
from quarterdeck.wire.base import utc_now
from tests.shaping.conftest import Shop
from tests.support.git import git
from tests.support.waiting import eventually


async def switch(shop: Shop, environment: str, enabled: bool = True) -> dict:
    path = f"/v1/environments/{environment}/warm-pools"
    return (await shop.call("PUT", path, {"enabled": enabled}))["warm_pool"]


async def waiting(shop: Shop, pool: dict) -> list[dict]:
    return (await shop.call("GET", f"/v1/warm-pools/{pool['id']}/workspaces"))["workspaces"]


async def deck(shop: Shop) -> str:
    """An environment with a repository."""
    root = shop.home.root / "source" / "deck"
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    (root / "README").write_text("hello\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    answer = await shop.call("POST", "/v1/replica/repositories", {"url": str(root)}, 201)
    return await shop.environment(repository_id=answer["repository"]["id"])


async def test_a_prepared_workspace_is_claimed_and_soon_active(shop: Shop) -> None:
    environment = await deck(shop)
    await shop.hook(environment, "warm", "echo warm >> ~/ran")
    await shop.hook(environment, "start", "echo start >> ~/ran")
    pool = await switch(shop, environment)
    assert (pool["enabled"], pool["generation"], pool["target_size"]) == (True, 1, 2)
    pool = await shop.pool_until(environment, ready_count=2, warming_count=0, stale_count=0)
    held = await waiting(shop, pool)
    assert [one["state"] for one in held] == ["ready", "ready"]
    assert (await shop.call("GET", "/v1/replica"))["total"] == 0
    assert await shop.context.changes.newest() == 0  # nobody is told
    for one in held:
        await shop.call("GET", f"/v1/replica/{one['id']}", status=404)
        ran = shop.home.workspaces / one["id"] / "home/ran"
        assert ran.read_text() == "warm\n"

    text = "```sh\ngit -C /workspace/deck branch --show-current > ~/branch\n```"
    made = await shop.begin(environment, message=text)
    await shop.reach(made, "active")
    assert made == held[0]["id"]
    assert await shop.context.changes.newest() == 1
    assert await shop.run(made, "cat ~/ran") == "warm\nstart\n"

    async def ran_on_its_branch() -> bool:
        return await shop.run(made, "cat ~/branch 2>/dev/null") == "qd/r2\n"

    await eventually(ran_on_its_branch, "the message")
    page = await shop.call("GET", "/v1/replica")
    assert [(one["id"], one["name"]) for one in page["replicas"]] == [(made, "r2")]
    await shop.pool_until(environment, ready_count=2)
    assert made not in [one["id"] for one in await waiting(shop, pool)]

    await shop.run(made, "git -C /workspace/deck checkout -q -b mine")
    await shop.call("POST", f"/v1/workspaces/{made}/sleep")
    await shop.call("POST", f"/v1/workspaces/{made}/wake", status=202)
    await shop.reach(made, "active")
    assert await shop.run(made, "cat ~/ran") == "warm\nstart\nstart\n"
    assert await shop.run(made, "git -C /workspace/deck branch --show-current") == "mine\n"


@pytest.mark.long
async def test_a_workspace_is_claimed_once_whatever_its_engine_forgets(shop: Shop) -> None:
    environment = await deck(shop)
    await switch(shop, environment)
    await shop.pool_until(environment, ready_count=2)
    made = await shop.make(environment)
    assert await shop.run(made, "git -C /workspace/deck branch --show-current") == "qd/r2\n"
    await shop.run(made, "git -C /workspace/deck checkout -q -b mine")
    await shop.call("POST", f"/v1/workspaces/{made}/sleep")
    (shop.home.workspaces / made / "state/journal.jsonl").unlink()
    await shop.call("POST", f"/v1/workspaces/{made}/wake", status=202)
    await shop.reach(made, "active")
    assert await shop.run(made, "git -C /workspace/deck branch --show-current") == "mine\n"


@pytest.mark.long
async def test_a_saved_hook_is_taken_up_at_once(shop: Shop) -> None:
    await shop.stop()
    shop.settings = replace(shop.settings, pool_interval=3600)
    await shop.start()
    environment = await shop.environment()
    pool = await switch(shop, environment)  # this too
    await shop.pool_until(environment, ready_count=2)
    for generation, kind in enumerate(("warm", "start"), 2):
        await shop.hook(environment, kind, "echo new > ~/version")
        await shop.pool_until(environment, generation=generation, ready_count=2, stale_count=0)
        assert len(await waiting(shop, pool)) == 2


@pytest.mark.long
async def test_each_is_claimed_once_and_a_pool_that_is_switched_off_empties(shop: Shop) -> None:
    environment = await shop.environment()
    pool = await switch(shop, environment)
    await shop.pool_until(environment, ready_count=2)
    held = {one["id"] for one in await waiting(shop, pool)}
    made = await asyncio.gather(*(shop.begin(environment) for _ in range(4)))
    assert len(set(made)) == 4
    assert held <= set(made)
    for one in made:
        await shop.reach(one, "active")
    await shop.pool_until(environment, ready_count=2)
    assert not (await switch(shop, environment, False))["enabled"]
    await shop.pool_until(environment, ready_count=0, warming_count=0, stale_count=0)

    async def empty() -> bool:
        return set(shop.workspaces()) == set(made)

    await eventually(empty, "the end of the pool")


@pytest.mark.long
async def test_a_changed_environment_replaces_what_was_prepared(shop: Shop) -> None:
    environment = await shop.environment()
    pool = await switch(shop, environment)
    await shop.pool_until(environment, ready_count=2)
    old = {one["id"] for one in await waiting(shop, pool)}
    await shop.hook(environment, "warm", "echo new > ~/version")
    assert (await shop.pool(environment))["generation"] == 2
    made = await shop.make(environment)  # at once: what is stale is never handed out
    assert made not in old
    assert await shop.run(made, "cat ~/version") == "new\n"
    await shop.pool_until(environment, ready_count=2, stale_count=0)
    assert not old & {one["id"] for one in await waiting(shop, pool)}
    await shop.add("global", "variables", key="A", value="b")
    assert (await shop.pool(environment))["generation"] == 3

    async def old_gone() -> bool:
        return not old & set(shop.workspaces())

    await eventually(old_gone, "the end of the stale ones")


@pytest.mark.long
async def test_a_failing_pool_rests_until_its_hook_is_saved_and_tells_why(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook(environment, "warm", "echo broken; exit 7")
    pool = await switch(shop, environment)

    async def failed() -> dict | None:
        now = await shop.pool(environment)
        return now if now["last_failure_at"] else None

    told = await eventually(failed, "a failure")
    assert "ended with code 7" in told["last_failure_reason"]

    async def removed() -> bool:
        return not await waiting(shop, pool)

    await eventually(removed, "the end of the failed ones")
    for _ in range(3):  # it rests: looking again makes none
        shop.fleet.pools.nudge()
        await shop.call("GET", f"/v1/environments/{environment}/warm-hooks")
    assert await waiting(shop, pool) == []
    (row,) = await shop.context.database.read(all_pools)
    assert row["failures"] > 0
    await shop.hook(environment, "warm", "true")
    told = await shop.pool_until(environment, ready_count=2)
    assert (told["last_failure_at"], told["last_failure_reason"]) == (None, None)


@pytest.mark.long
async def test_only_the_present_generation_speaks_for_a_pool_and_its_rest_grows(shop: Shop) -> None:
    environment = await shop.environment()
    pool = await switch(shop, environment)
    await shop.pool_until(environment, ready_count=2)
    now, write = utc_now(), shop.context.database.write
    await write(lambda c: note_failure(c, pool["id"], 0, "late", now))
    assert (await shop.pool(environment))["last_failure_reason"] is None
    await write(lambda c: note_failure(c, pool["id"], 1, "why", now))
    assert (await shop.pool(environment))["last_failure_reason"] == "why"
    ready = (await waiting(shop, pool))[0]["id"]
    await write(lambda c: mark_ready(c, ready))
    assert (await shop.pool(environment))["last_failure_reason"] is None
    # The rest after failures grows.
    pauses: list[timedelta] = []
    for _ in range(3):
        await write(lambda c: note_failure(c, pool["id"], 1, "why", now))
        (row,) = await shop.context.database.read(all_pools)
        pauses.append(datetime.fromisoformat(row["retry_at"]) - now)
    assert [round(pause / FIRST_PAUSE, 2) for pause in pauses] == [1, 2, 4]


@pytest.mark.long
async def test_a_pool_outlives_its_service(shop: Shop) -> None:
    environment = await shop.environment()
    await shop.hook(environment, "warm", "echo warm >> ~/ran")
    pool = await switch(shop, environment)
    await shop.pool_until(environment, ready_count=2)
    held = {one["id"] for one in await waiting(shop, pool)}
    await shop.stop()
    await shop.start()
    await shop.pool_until(environment, ready_count=2)
    assert {one["id"] for one in await waiting(shop, pool)} == held
    made = await shop.make(environment)
    assert made in held
    assert await shop.run(made, "cat ~/ran") == "warm\n"
    # It stops before the engine knows of a claim.
    await shop.pool_until(environment, ready_count=2)
    shop.fleet.of = _deaf(shop.fleet.of)
    made = await shop.begin(environment)
    await shop.stop()
    await shop.start()
    await shop.reach(made, "active")


def _deaf(of):
    class Deaf:
        def claimed(self) -> None:
            """As if the service were killed here."""

        def begin(self) -> None: ...

    return lambda _: Deaf()


async def test_bad_switches_and_unknown_pools_are_refused(shop: Shop) -> None:
    environment = await shop.environment()
    path = f"/v1/environments/{environment}/warm-pools"
    for body in ({}, {"enabled": "true"}, {"enabled": 1}):
        answer = await shop.call("PUT", path, body, 400)
        assert "enabled" in answer["details"]
    path = "/v1/warm-pools/00000000-0000-4000-8000-000000000000/workspaces"
    assert (await shop.call("GET", path, status=404))["code"] == "NOT_FOUND"
    await shop.call("GET", "/v1/warm-pools/no-id/workspaces", status=400)
