"""Checks as host A's check runs: opened, reported, superseded, closed; a host that cannot be reached."""

import asyncio
from typing import Any

from tests.checks.desk import SHA, SHA_2, SHOP, Begun, Desk
from tests.support.waiting import eventually


def verdict(run: dict[str, Any]) -> tuple[str, str | None, str | None]:
    return run["status"], run.get("conclusion"), run.get("output", {}).get("title")


async def test_a_run_opens_a_check_run_whose_id_the_agent_gets(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    run = desk.source_host.only_run()
    assert (run["repo"], run["head_sha"], run["name"]) == (SHOP, SHA, "nightly")
    assert verdict(run) == ("in_progress", None, None)
    assert run["started_at"] == "2040-01-02T08:00:00.000Z"
    assert (await desk.ticket(begun))[0] == str(run["id"])
    check = await desk.check_of(begun)
    assert (check["id"], check["status"], check["head_sha"]) == (str(run["id"]), "open", SHA)
    text = await desk.prompt(begun)
    assert text.index("## Pull Request") < text.index("## Check")


async def test_a_verdict_reaches_the_host_and_the_next_replaces_it(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    assert await desk.report(begun, conclusion="failure", title="Torn", summary="The main sail.")
    await desk.told()
    run = desk.source_host.only_run()
    assert verdict(run) == ("completed", "failure", "Torn")
    assert run["output"]["summary"] == "The main sail."
    assert await desk.report(begun, conclusion="success", title="Mended")
    await desk.told()
    assert verdict(run) == ("completed", "success", "Mended")
    assert run["output"]["summary"] == "Mended"
    await desk.let_go(begun)
    await desk.told()
    check = await desk.check_of(begun)
    assert (check["status"], check["conclusion"], check["title"]) == (
        "reported",
        "success",
        "Mended",
    )
    assert verdict(run) == ("completed", "success", "Mended")


async def test_the_same_verdict_again_is_not_told_again(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    for _ in range(3):
        assert await desk.report(begun)
        await desk.told()
    assert [one.method for one in desk.source_host.asked] == ["POST", "PATCH"]


async def test_a_later_run_for_the_pull_request_takes_the_check_over(desk: Desk) -> None:
    automation = await desk.waiting()
    first = await desk.trigger(automation)
    second = await desk.trigger(automation, sha=SHA_2)
    other = await desk.trigger(automation, number=8, sha=SHA_2)
    await desk.told()
    runs = list(desk.source_host.runs.values())
    assert [verdict(run)[:2] for run in runs] == [
        ("completed", "cancelled"),
        ("in_progress", None),
        ("in_progress", None),
    ]
    assert "later run" in runs[0]["output"]["summary"]
    assert not await desk.report(first)
    assert (await desk.check_of(first))["status"] == "superseded"
    assert await desk.report(second) and await desk.report(other)
    await desk.let_go(first)
    await desk.told()
    assert [run["conclusion"] for run in runs] == ["cancelled", "success", "success"]


async def test_a_verdict_that_was_given_stays_when_a_later_run_begins(desk: Desk) -> None:
    automation = await desk.waiting()
    first = await desk.trigger(automation)
    assert await desk.report(first, conclusion="failure", title="Torn")
    await desk.trigger(automation)
    assert not await desk.report(first)
    await desk.told()
    runs = list(desk.source_host.runs.values())
    assert [verdict(run)[:2] for run in runs] == [("completed", "failure"), ("in_progress", None)]
    assert (await desk.check_of(first))["conclusion"] == "failure"


async def test_a_run_that_ends_without_a_verdict_closes_its_check(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    await desk.let_go(begun)
    await desk.told()
    run = desk.source_host.only_run()
    assert verdict(run) == ("completed", "neutral", "No verdict was reported.")
    assert (await desk.check_of(begun))["status"] == "abandoned"


async def test_a_run_may_still_report_after_its_turn(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    await desk.let_go(begun)
    assert await desk.report(begun, title="After all")
    await desk.told()
    assert verdict(desk.source_host.only_run()) == ("completed", "success", "After all")


async def test_a_failed_run_fails_its_check_with_the_reason(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    await desk.ended(begun, "running")
    await delete_workspace(desk, begun)
    await desk.ended(begun, "failed")
    await desk.told()
    run = desk.source_host.only_run()
    assert verdict(run)[:2] == ("completed", "failure")
    assert run["output"]["summary"] == "Its replica was deleted before the run had ended."


async def test_the_host_hears_of_the_end_of_an_automation_that_is_deleted(desk: Desk) -> None:
    automation = await desk.waiting()
    begun = await desk.trigger(automation)
    await desk.ended(begun, "running")
    desk.source_host.down = True
    answer = await desk.world.client.delete(f"/v1/automations/{automation}")
    assert answer.status_code == 200
    await desk.told()
    assert verdict(desk.source_host.only_run())[0] == "in_progress"
    desk.source_host.down = False
    await desk.told(seconds=6)
    assert verdict(desk.source_host.only_run())[:2] == ("completed", "cancelled")
    assert "deleted" in desk.source_host.only_run()["output"]["summary"]
    assert await kept(desk) == 0


async def test_a_host_that_is_down_holds_no_run_up_and_hears_of_it_later(desk: Desk) -> None:
    desk.source_host.down = True
    begun = await desk.trigger(await desk.waiting())
    check_run_id, _ = await desk.ticket(begun)
    assert not desk.source_host.runs
    assert await desk.report(begun, title="Fine anyway")
    await desk.told()
    desk.source_host.down = False
    await desk.told(seconds=6)
    run = desk.source_host.only_run()
    assert verdict(run) == ("completed", "success", "Fine anyway")
    assert run["external_id"] == check_run_id != str(run["id"])
    assert (await desk.ticket(begun))[0] == (await desk.check_of(begun))["id"]


async def test_a_host_that_never_answers_is_given_up_and_the_check_is_kept_here(
    desk: Desk,
) -> None:
    desk.source_host.down = True
    begun = await desk.trigger(await desk.waiting())
    for _ in range(10):
        await desk.told(hours=2)
    tries = len(desk.source_host.asked)
    assert tries == 6
    assert (await desk.check_of(begun))["status"] == "open"
    assert await desk.report(begun)
    desk.source_host.down = False
    await desk.told()
    assert verdict(desk.source_host.only_run())[:2] == ("completed", "success")


async def test_an_answer_that_was_lost_makes_no_second_check_run(desk: Desk) -> None:
    desk.source_host.lost = True
    begun = await desk.trigger(await desk.waiting())
    desk.source_host.lost = False
    await desk.told(seconds=6)
    assert await desk.report(begun)
    await desk.told()
    assert verdict(desk.source_host.only_run())[:2] == ("completed", "success")


async def test_a_slow_host_is_told_the_newest_and_never_an_older_state_after_it(
    desk: Desk,
) -> None:
    desk.set_limits(opening=0.05)
    desk.source_host.gate.clear()
    begun = await desk.trigger(await desk.waiting())
    assert await desk.report(begun, conclusion="failure", title="Torn")
    assert await desk.report(begun, title="Mended")
    assert [one.method for one in desk.source_host.asked] == ["POST"]
    desk.source_host.gate.set()
    await desk.told()
    assert [one.method for one in desk.source_host.asked] == ["POST", "PATCH"]
    assert verdict(desk.source_host.only_run()) == ("completed", "success", "Mended")


async def test_a_report_during_a_call_is_told_after_it(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    desk.source_host.gate.clear()
    assert await desk.report(begun, conclusion="failure", title="Torn")
    telling = asyncio.create_task(desk.told())

    async def under_way() -> bool:
        return len(desk.source_host.asked) == 2

    await eventually(under_way, "the call")
    assert await desk.report(begun, title="Mended")
    desk.source_host.gate.set()
    await telling
    said = [one.body["output"]["title"] for one in desk.source_host.asked[1:]]
    assert said == ["Torn", "Mended"]


async def test_the_wrong_token_of_a_host_stops_nothing(desk: Desk) -> None:
    desk.source_host.token_a = "another"
    begun = await desk.trigger(await desk.waiting())
    assert await desk.report(begun)
    await desk.told()
    assert not desk.source_host.runs


async def delete_workspace(desk: Desk, begun: Begun) -> None:
    answer = await desk.world.client.delete(f"/v1/replica/{begun['workspace_id']}")
    assert answer.status_code == 200


async def kept(desk: Desk) -> int:
    """How many checks there are."""
    from sqlalchemy import func, select

    from quarterdeck.service.db.tables import automation_checks

    statement = select(func.count()).select_from(automation_checks)
    return await desk.world.context.database.read(lambda c: c.execute(statement).scalar_one())
