"""Runs whose agent asks something, and nobody answers."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import update

from quarterdeck.service.db.tables import chats
from tests.checks.desk import Begun, Desk
from tests.support.waiting import eventually


async def asks(desk: Desk, begun: Begun) -> None:
    """Its agent waits for an answer from now on."""
    await desk.ended(begun, "running")

    async def works() -> bool:
        """It has begun, and told what an engine tells of a chat as it begins."""
        told = await desk.world.events(begun["workspace_id"], "chat.updated")
        return any(one["chat"]["processing"] for one in told)

    await eventually(works, "the turn")
    mine = chats.c.workspace_id == begun["workspace_id"]
    statement = update(chats).where(mine).values(awaiting_input=True)
    await desk.world.context.database.write(lambda c: c.execute(statement))


@pytest.mark.parametrize(("given", "minutes"), [({"workspace_auto_stop_minutes": 5}, 5), ({}, 60)])
async def test_the_stop_time_ends_a_run_that_waits_for_an_answer(
    desk: Desk, given: dict[str, Any], minutes: int
) -> None:
    desk.clock.now = datetime.now(UTC)
    automation = await desk.waiting(**given)
    begun, working = await desk.trigger(automation), await desk.trigger(automation, number=8)
    await asks(desk, begun)
    await desk.ended(working, "running")
    desk.clock.pass_by(minutes=minutes - 1)
    await desk.runner.turn()
    assert (await desk.run_of(begun))["status"] == "running"
    desk.clock.pass_by(minutes=2)
    await desk.runner.turn()
    run = await desk.run_of(begun)
    assert run["status"] == "failed"
    assert run["error"] == f"Its agent's question was not answered for {minutes} minutes."
    assert (run["check"]["status"], run["check"]["conclusion"]) == ("abandoned", "failure")
    assert (await desk.run_of(working))["status"] == "running"
    # Somebody answers after all.
    assert await desk.report(begun)
