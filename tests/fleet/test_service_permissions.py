"""The permission policy of replicas: read, changed, inherited, and given to running engines."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import Connection

from quarterdeck.client import Client, HttpConnection
from quarterdeck.service.app import build_app
from quarterdeck.service.environments.rows import change_environment_row
from quarterdeck.service.fleet.permissions import keep_permissions
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.wire.permissions import MOST_RULES, ChangePermissions, Permissions
from tests.fleet.conftest import SETTINGS, World
from tests.fleet.test_service_questions import awaits, history, said
from tests.support.waiting import eventually

STATUS = {"action": "allow", "pattern": "git status *"}
PUSH = {"action": "reject", "pattern": "git push"}
MAKE = {"action": "allow", "pattern": "make"}


async def change(world: World, made: str, **body: Any) -> dict[str, Any]:
    answer = await world.client.patch(f"/v1/replica/{made}/permissions", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == (await world.client.get(f"/v1/replica/{made}/permissions")).json()
    return answer.json()


async def environment(world: World, **body: Any) -> str:
    answer = await world.client.post("/v1/environments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["environment"]["id"]


async def test_a_policy_is_read_and_changed_in_parts(world: World) -> None:
    made = await world.create(wait=False)
    nothing = {"policy": "ask", "rules": []}
    empty = {"policy": None, "rules": [], "environment": nothing, "effective": nothing}
    assert await change(world, made) == empty
    changed = await change(world, made, policy="edits", add_rules=[STATUS, PUSH, STATUS])
    own = {"policy": "edits", "rules": [STATUS, PUSH]}
    assert changed == {**own, "environment": nothing, "effective": own}
    assert (await change(world, made, add_rules=[MAKE, PUSH]))["rules"] == [STATUS, PUSH, MAKE]
    changed = await change(world, made, policy=None, remove_rules=[STATUS, PUSH, STATUS])
    assert (changed["policy"], changed["rules"]) == (None, [MAKE])
    assert await change(world, made, remove_rules=[MAKE]) == empty


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("body", "details"),
    [
        ({"policy": "some"}, "policy"),
        ({"cost_limit": -1}, "cost_limit"),
        ({"cost_limit": 1e9}, "cost_limit"),
        ({"cost_limit": "much"}, "cost_limit"),
        ({"add_rules": [{"action": "ask", "pattern": "ls"}]}, "add_rules.0.action"),
        ({"add_rules": [{"action": "allow", "pattern": "ls; rm"}]}, "add_rules: A pattern is"),
        ({"add_rules": [{"action": "allow", "pattern": "* x"}]}, "add_rules: A pattern begins"),
        ({"add_rules": [{"action": "allow", "pattern": ""}]}, "add_rules.0.pattern"),
        ({"add_rules": [STATUS] * (MOST_RULES + 1)}, "add_rules"),
    ],
)
async def test_what_is_no_rule_is_refused(world: World, body: Any, details: str) -> None:
    made = await world.create(wait=False)
    answer = await world.client.patch(f"/v1/replica/{made}/permissions", json=body)
    assert answer.status_code == 400 and details in answer.json()["details"], answer.text


@pytest.mark.one_database
async def test_there_is_a_most_of_rules(world: World) -> None:
    made = await world.create(wait=False)
    rules = [{"action": "allow", "pattern": f"make {number}"} for number in range(MOST_RULES)]
    await change(world, made, add_rules=rules)
    answer = await world.client.patch(f"/v1/replica/{made}/permissions", json={"add_rules": [MAKE]})
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    changed = await change(world, made, add_rules=[MAKE], remove_rules=rules[:1])
    assert len(changed["rules"]) == MOST_RULES


async def test_what_comes_from_the_environment(world: World) -> None:
    source = await environment(world, name="s", permission_rules=[PUSH], permission_policy="edits")
    got = (await world.client.get(f"/v1/environments/{source}")).json()["environment"]
    assert (got["permission_policy"], got["permission_rules"]) == ("edits", [PUSH])
    body = {"scope": "user", "source_environment_id": source, "permission_policy": "all"}
    personal = await environment(world, name="p", permission_rules=[STATUS, PUSH], **body)
    made = await world.create(wait=False, environment_id=personal)
    changed = await change(world, made, add_rules=[MAKE, STATUS])
    # The source's policy comes before that of the personal environment; rules add up.
    assert changed["environment"] == {"policy": "edits", "rules": [PUSH, STATUS]}
    assert changed["effective"] == {"policy": "edits", "rules": [PUSH, STATUS, MAKE]}
    assert (await change(world, made, policy="ask"))["effective"]["policy"] == "ask"
    nothing = {"permission_rules": None, "permission_policy": None}
    answer = await world.client.patch(f"/v1/environments/{source}", json=nothing)
    assert answer.json()["environment"]["permission_rules"] == []
    changed = await change(world, made, policy=None)
    assert changed["effective"] == {"policy": "all", "rules": [STATUS, PUSH, MAKE]}


async def test_a_cost_limit_is_that_of_the_replica_or_of_its_environment(world: World) -> None:
    source = await environment(world, name="s", cost_limit=5)
    got = (await world.client.get(f"/v1/environments/{source}")).json()["environment"]
    assert got["cost_limit"] == 5
    body = {"scope": "user", "source_environment_id": source, "cost_limit": 7}
    personal = await environment(world, name="p", **body)
    made = await world.create(wait=False, environment_id=personal)
    changed = await change(world, made)
    assert changed["environment"]["cost_limit"] == changed["effective"]["cost_limit"] == 5
    assert "cost_limit" not in changed
    changed = await change(world, made, cost_limit=2.5)
    assert (changed["cost_limit"], changed["effective"]["cost_limit"]) == (2.5, 2.5)
    changed = await change(world, made, cost_limit=0, policy="edits")
    assert changed["cost_limit"] == 0 and "cost_limit" not in changed["effective"]
    await world.client.patch(f"/v1/environments/{source}", json={"cost_limit": None})
    assert (await change(world, made, cost_limit=None))["effective"]["cost_limit"] == 7
    await world.client.patch(f"/v1/environments/{source}", json={"cost_limit": 0})
    assert "cost_limit" not in (await change(world, made))["effective"]


async def test_a_turn_over_the_cost_limit_is_stopped_and_goes_on_when_it_is_raised(
    scripted: World,
) -> None:
    world, made = scripted, await scripted.create()

    async def ended() -> list[str]:
        return [
            one["error"] or one["stopReason"] for one in await history(world, made, "turn-result")
        ]

    async def failed() -> bool:
        got = (await world.client.get(f"/v1/replica/{made}")).json()["replica"]
        return got["turn_failed"] and not got["working"]

    await change(world, made, cost_limit=1)
    await world.send(made, "cost 1.5 wait")
    await world.send(made, "cost 0.25")
    await eventually(failed, "the limit")
    stopped = "The cost limit of $1.00 is reached: $1.50 so far. Raise or remove it in the permissions of the replica to go on."
    assert await ended() == [stopped]
    await change(world, made, cost_limit=2)

    async def went_on() -> bool:
        return await ended() == [stopped, "end_turn"]

    await eventually(went_on, "the message that waited")


async def asks(world: World, made: str, command: str) -> None:
    await world.send(made, f"run {command}")
    await eventually(lambda: awaits(world, made, True), "the question")


async def answered(world: World, made: str, count: int) -> None:
    """Wait until so many turns have ended, each by an answer of the policy."""

    async def ended() -> bool:
        return len(await history(world, made, "turn-result")) == count

    await eventually(ended, f"{count} turns")
    assert len(await history(world, made, "policy-answer")) == count
    assert all('"yes"' in text for text in await said(world, made))


async def test_a_change_reaches_a_running_engine_at_once(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    await asks(world, made, "git status -s")
    await change(world, made, add_rules=[PUSH])
    assert await awaits(world, made, True)
    await change(world, made, add_rules=[STATUS])
    await answered(world, made, 1)
    (told,) = await history(world, made, "policy-answer")
    assert told["rules"] == ["git status *"] and told["allowed"]
    await world.send(made, "run git status")
    await answered(world, made, 2)
    await change(world, made, remove_rules=[STATUS])
    await asks(world, made, "git status")


@pytest.mark.long
async def test_a_change_of_the_environment_reaches_all_its_replicas(scripted: World) -> None:
    world = scripted
    of = await environment(world, name="e")
    made = [await world.create(environment_id=of) for _ in range(2)]
    for one in made:
        await asks(world, one, "make")
    await world.client.patch(f"/v1/environments/{of}", json={"permission_policy": "all"})
    for one in made:
        await answered(world, one, 1)


async def slept(world: World, made: str) -> None:
    await world.post(made, "/sleep")


async def restarted(world: World, made: str) -> None:
    await world.stop()
    await world.start()


async def engine_killed(world: World, made: str) -> None:
    world.driver.signal(made, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.one_database
@pytest.mark.parametrize("happens", [slept, restarted, engine_killed])
async def test_a_policy_survives(
    scripted: World, happens: Callable[[World, str], Awaitable[None]]
) -> None:
    world, made = scripted, await scripted.create()
    await change(world, made, add_rules=[STATUS])
    await happens(world, made)
    await world.send(made, "run git status")
    await answered(world, made, 1)


@pytest.mark.long
@pytest.mark.one_database
async def test_a_change_while_it_sleeps_is_there_when_it_wakes(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    await slept(world, made)
    await change(world, made, policy="all")
    await world.send(made, "run make")
    await answered(world, made, 1)


@pytest.mark.one_database
class TestAnotherService:
    """Which shares the database, and changes an environment."""

    @pytest.fixture
    def settings(self) -> FleetSettings:
        return replace(SETTINGS, heartbeat=0.02)

    async def test_its_change_is_found_at_the_next_look(self, world: World) -> None:
        of = await environment(world, name="e")
        made = await world.create(environment_id=of)
        await world.context.database.write(
            lambda connection: change_environment_row(connection, of, permission_policy="all")
        )

        async def given() -> bool:
            return (await engine_policy(world, made))["policy"] == "all"

        await eventually(given)


async def engine_policy(world: World, made: str) -> dict[str, Any]:
    """What a double of an engine was given last."""
    path = world.driver.place(made) / "permissions.json"
    await eventually(path.exists)
    return json.loads(path.read_text())


@pytest.mark.one_database
async def test_an_engine_of_an_earlier_version_goes_on(world: World) -> None:
    made = await world.create()
    await engine_policy(world, made)
    world.driver.fault(made, "old")
    assert (await change(world, made, policy="all"))["effective"]["policy"] == "all"
    assert (await world.get(made))["status"] == "active"
    assert (await engine_policy(world, made))["policy"] == "ask"
    world.driver.fault(made, "old", on=False)
    await change(world, made)
    assert (await engine_policy(world, made))["policy"] == "all"


@pytest.mark.one_database
async def test_the_client_reads_and_changes_it(world: World) -> None:
    made = UUID(await world.create(wait=False))
    key = world.home.key.read_text().strip()
    transport = httpx.ASGITransport(build_app(world.service))
    async with Client(HttpConnection("http://test", key, transport=transport)) as client:
        added = ChangePermissions.model_validate({"policy": "edits", "add_rules": [MAKE]})
        await client.permissions.change(made, added)
        removed = ChangePermissions.model_validate({"remove_rules": [MAKE]})
        changed = await client.permissions.change(made, removed)
        assert (changed.policy, changed.rules) == ("edits", [])
        assert await client.permissions.get(made) == changed


@pytest.mark.one_database
async def test_an_engine_is_not_given_up_because_of_a_slow_database(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await world.create()
    site = world.fleet.of(made).site
    limit = 0.01
    quick = replace(site, tools=replace(site.tools, settings=replace(SETTINGS, call_limit=limit)))
    read = world.context.database.read

    async def slow(fn: Callable[[Connection], Any]) -> Any:
        await asyncio.sleep(2 * limit)
        return await read(fn)

    given: list[Permissions] = []

    class Calls:
        async def permissions_set(self, permissions: Permissions) -> None:
            given.append(permissions)

    monkeypatch.setattr(world.context.database, "read", slow)
    keeping = asyncio.create_task(keep_permissions(quick, Calls()))  # type: ignore[arg-type]
    await eventually(lambda: given or keeping.done(), "the policy")
    assert given == [Permissions()]
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
