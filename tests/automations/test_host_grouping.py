"""Events of one pull request: grouped into one workspace, or debounced into one run."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.automations.conftest import Office
from tests.automations.host_payloads import issue_comment, pull_request
from tests.automations.hosting import Hosting, trigger
from tests.fleet.conftest import World
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

GROUPED = [
    trigger("pull_request.opened", group_pr_events=True),
    trigger("pull_request.synchronize", group_pr_events=True),
]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def hosting(office: Office) -> Hosting:
    made = Hosting(office)
    await made.connect()
    return made


async def automation(hosting: Hosting, **settings: Any) -> dict[str, Any]:
    """One that groups, and whose turns go on until the workspace is let go."""
    body: dict[str, Any] = {"prompt": "wait here", "triggers": GROUPED, **settings}
    return await hosting.office.create(**body)


async def first(hosting: Hosting, made: dict[str, Any], status: str = "running") -> dict[str, Any]:
    """The run of the opened pull request, once it has come so far."""
    await hosting.host_a(pull_request())
    await hosting.office.runner.turn()
    [run] = await hosting.office.runs(made["id"])
    return await hosting.office.reach(made["id"], run["id"], status)


async def later(hosting: Hosting, made: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The run of a push to it, once it has a workspace."""
    hosting.office.clock.pass_by(seconds=1)
    known = {one["id"] for one in await hosting.office.runs(made["id"])}
    await hosting.host_a(pull_request("synchronize", **changes))
    [new] = [one for one in await hosting.office.runs(made["id"]) if one["id"] not in known]
    return await placed(hosting, made, new["id"])


async def placed(
    hosting: Hosting, made: dict[str, Any], execution_id: str, seconds: float = 0
) -> dict[str, Any]:
    """Waits for a run's workspace; so much time passes between two looks."""

    async def there() -> dict[str, Any] | None:
        hosting.office.clock.pass_by(seconds=seconds)
        await hosting.office.runner.turn()
        path = f"{made['id']}/executions/{execution_id}"
        run = (await hosting.office.get(path))["execution"]
        return run if run["workspace_id"] else None

    return await eventually(there, "a workspace")


async def test_a_later_event_is_the_next_message_of_the_running_workspace(
    hosting: Hosting,
) -> None:
    made = await automation(hosting)
    one = await first(hosting, made)
    two = await later(hosting, made, title="Second push")
    assert two["workspace_id"] == one["workspace_id"] and two["status"] == "running"
    world = hosting.office.world
    await eventually(lambda: accepted(world, one["workspace_id"], 2), "two messages")
    assert (await hosting.office.runs(made["id"]))[1]["status"] == "running"
    world.driver.let_go(one["workspace_id"])
    for run in (one, two):
        ended = await hosting.office.reach(made["id"], run["id"], "completed")
        assert ended["error"] is None
    said = await user_messages(world, one["workspace_id"])
    assert len(said) == 2 and "Second push" in said[1]
    assert len((await world.get(one["workspace_id"]))["chats"]) == 1


async def accepted(world: World, workspace_id: str, count: int) -> bool:
    return len(await world.events(workspace_id, "chat.turn.accepted")) >= count


async def user_messages(world: World, workspace_id: str) -> list[str]:
    deltas = await world.events(workspace_id, "chat.turn.delta")
    events = [one["event"] for one in deltas]
    return [one["payload"]["text"] for one in events if one["type"] == "user-message"]


@pytest.mark.long
async def test_another_pull_request_has_a_workspace_of_its_own(hosting: Hosting) -> None:
    made = await automation(hosting)
    one = await first(hosting, made)
    two = await later(hosting, made, number=8)
    assert two["workspace_id"] != one["workspace_id"]


@pytest.mark.long
async def test_without_grouping_each_event_has_its_own(hosting: Hosting) -> None:
    triggers = [trigger("pull_request.opened"), trigger("pull_request.synchronize")]
    made = await automation(hosting, triggers=triggers)
    one = await first(hosting, made)
    assert (await later(hosting, made))["workspace_id"] != one["workspace_id"]


@pytest.mark.long
async def test_an_event_that_groups_joins_one_that_does_not(hosting: Hosting) -> None:
    made = await automation(hosting, triggers=[trigger("pull_request.opened"), GROUPED[1]])
    one = await first(hosting, made)
    assert (await later(hosting, made))["workspace_id"] == one["workspace_id"]


@pytest.mark.long
async def test_events_at_once_are_one_workspace(hosting: Hosting) -> None:
    made = await automation(hosting)
    pushes = [pull_request("synchronize", title=f"Push {n}") for n in range(4)]
    await asyncio.gather(*(hosting.host_a(one) for one in (pull_request(), *pushes)))

    async def all_placed() -> set[str] | None:
        hosting.office.clock.pass_by(seconds=2)
        await hosting.office.runner.turn()
        places = [one["workspace_id"] for one in await hosting.office.runs(made["id"])]
        return set(places) if all(places) else None

    assert len(await eventually(all_placed, "five places")) == 1
    assert await hosting.begun(made) == 5


@pytest.mark.long
async def test_one_that_came_first_and_is_not_started_yet_is_waited_for(hosting: Hosting) -> None:
    made = await automation(hosting)
    office = hosting.office
    office.world.fleet.settings = replace(office.world.settings, active_limit=0)
    await hosting.host_a(pull_request())
    await office.runner.turn()
    [one] = await office.runs(made["id"])
    office.clock.pass_by(seconds=1)
    await hosting.host_a(pull_request("synchronize"))
    two = (await office.runs(made["id"]))[0]
    await office.runner.turn()
    assert {run["status"] for run in await office.runs(made["id"])} == {"pending"}
    office.world.fleet.settings = office.world.settings
    # Either may be put off once more by a try that is still under way.
    one = await placed(hosting, made, one["id"], seconds=5)
    two = await placed(hosting, made, two["id"], seconds=5)
    assert two["workspace_id"] == one["workspace_id"]


@pytest.mark.long
async def test_one_that_is_still_being_made_is_joined(hosting: Hosting) -> None:
    made = await automation(hosting)
    world = hosting.office.world
    await hosting.host_a(pull_request())
    await hosting.office.runner.turn()
    [run] = await hosting.office.runs(made["id"])
    one = await placed(hosting, made, run["id"])
    two = await later(hosting, made)
    assert two["workspace_id"] == one["workspace_id"]
    world.driver.let_go(one["workspace_id"])
    await hosting.office.reach(made["id"], two["id"], "completed")


@pytest.mark.long
async def test_one_that_ended_well_is_joined_while_its_workspace_is_active(
    hosting: Hosting,
) -> None:
    made = await automation(hosting, prompt="Look.")
    one = await first(hosting, made, "completed")
    two = await later(hosting, made)
    assert two["workspace_id"] == one["workspace_id"]
    await hosting.office.reach(made["id"], two["id"], "completed")


@pytest.mark.long
@pytest.mark.parametrize("step", ["sleep", "archive", "delete", "delete its chat"])
async def test_a_workspace_that_rests_or_is_gone_is_not_joined(hosting: Hosting, step: str) -> None:
    made = await automation(hosting, prompt="Look.")
    one = await first(hosting, made, "completed")
    world, id = hosting.office.world, one["workspace_id"]
    if step == "delete":
        answer = await world.client.delete(f"/v1/replica/{id}")
    elif step == "delete its chat":
        [chat] = (await world.get(id))["chats"]
        answer = await world.client.delete(f"/v1/replica/{id}/chats/{chat['id']}")
    else:
        answer = await world.post(id, f"/{step}")
        await world.reach(id, "sleeping" if step == "sleep" else "archived")
    assert answer.status_code == 200, answer.text
    two = await later(hosting, made)
    assert two["workspace_id"] != id
    await hosting.office.reach(made["id"], two["id"], "completed")


@pytest.mark.long
async def test_a_workspace_that_fails_in_its_run_is_not_joined(hosting: Hosting) -> None:
    made = await automation(hosting)
    one = await first(hosting, made)
    world, id = hosting.office.world, one["workspace_id"]
    world.driver.fault(id, "die")
    world.driver.signal(id, 9)
    await world.reach(id, "error")
    failed = await hosting.office.reach(made["id"], one["id"], "failed")
    assert failed["error"]
    assert (await later(hosting, made))["workspace_id"] != id


@pytest.mark.long
@pytest.mark.parametrize("change", [{"agent_provider": "gemini"}, {"workspace_size": "large"}])
async def test_an_automation_that_was_changed_has_a_new_workspace(
    hosting: Hosting, change: dict[str, Any]
) -> None:
    made = await automation(hosting)
    one = await first(hosting, made)
    answer = await hosting.client.patch(f"/v1/automations/{made['id']}", json=change)
    assert answer.status_code == 200, answer.text
    two = await later(hosting, made)
    assert two["workspace_id"] != one["workspace_id"]
    # Later ones go to the newest.
    three = await later(hosting, made, title="Third")
    assert three["workspace_id"] == two["workspace_id"]


@pytest.mark.long
async def test_a_retry_has_a_workspace_of_its_own(hosting: Hosting) -> None:
    made = await automation(hosting)
    one = await first(hosting, made)
    world = hosting.office.world
    await world.client.delete(f"/v1/replica/{one['workspace_id']}")
    await hosting.office.reach(made["id"], one["id"], "failed")
    two = await later(hosting, made)
    path = f"/v1/automations/{made['id']}/executions/{one['id']}/retry"
    answer = await hosting.client.post(path)
    assert answer.status_code == 200, answer.text
    assert answer.json()["workspace_id"] not in (one["workspace_id"], two["workspace_id"])


async def test_a_burst_is_one_run_of_each_pull_request(hosting: Hosting) -> None:
    triggers = [trigger("pull_request.synchronize"), trigger("pull_request.command")]
    made = await hosting.office.create(triggers=triggers, debounce_seconds=30)
    for count in range(3):
        for number in (1, 2):
            await hosting.host_a(pull_request("synchronize", number, title=f"Push {count}"))
    await hosting.host_a(issue_comment("/qd", 2), "issue_comment")
    runs = await hosting.office.runs(made["id"])
    told = {run["trigger_payload"]["repository"]["name"]: run for run in runs}
    assert told.keys() == {"pier"} and len(runs) == 2
    events = sorted(run["trigger_event"] for run in runs)
    assert events == ["pull_request.command", "pull_request.synchronize"]
