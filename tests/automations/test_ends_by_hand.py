"""Runs whose turn a person ends, in real engines with an agent that follows a script."""

import pytest

from tests.automations.conftest import Office
from tests.fleet.conftest import World
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database


@pytest.fixture
def world(scripted: World) -> World:
    return scripted


async def begun(office: Office) -> tuple[str, str, str]:
    """An automation, a run of it, and its replica, whose turn goes on."""
    made = await office.create(prompt="wait")
    run = await office.trigger(made["id"])
    await eventually(
        lambda: office.world.events(run["workspace_id"], "chat.turn.started"), "a turn"
    )
    return made["id"], run["execution_id"], run["workspace_id"]


@pytest.mark.parametrize("verb", ["sleep", "archive"])
async def test_a_replica_put_to_rest_ends_its_run_without_a_failure(
    office: Office, verb: str
) -> None:
    made, run, workspace = await begun(office)
    answer = await office.world.client.post(f"/v1/workspaces/{workspace}/{verb}")
    assert answer.status_code == 200, answer.text
    ended = await office.reach(made, run, "failed")
    assert ended["reason"] == "interrupted"
    assert ended["error"] == "Its replica was put to rest before the run had ended."
    deltas = await office.world.events(workspace, "chat.turn.delta")
    [result] = [one["event"]["payload"] for one in deltas if one["event"]["type"] == "turn-result"]
    assert (result["stopReason"], result["stopped"]) == ("cancelled", True)


@pytest.mark.long
async def test_an_interrupted_turn_ends_its_run_without_a_failure(office: Office) -> None:
    made, run, workspace = await begun(office)
    [chat] = (await office.world.get(workspace))["chats"]
    await office.world.post(workspace, f"/chats/{chat['id']}/interrupt")
    ended = await office.reach(made, run, "failed")
    assert (ended["reason"], ended["error"]) == ("interrupted", "Its turn was interrupted.")


@pytest.mark.long
async def test_a_canceled_run_is_interrupted_in_its_engine(office: Office) -> None:
    made, run, workspace = await begun(office)
    path = f"/v1/automations/{made}/executions/{run}/cancel"
    assert (await office.world.client.post(path)).status_code == 200
    await office.runner.turn()
    [end] = await eventually(
        lambda: office.world.events(workspace, "chat.turn.completed"), "the end"
    )
    assert not end["isComplete"]
