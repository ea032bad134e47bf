"""Checks as host B's statuses of commits; there a commit has one for each name."""

from collections.abc import AsyncIterator

import pytest

from tests.checks.desk import SHA, SHA_2, SHOP, Desk


@pytest.fixture(autouse=True)
async def _other_host(desk: Desk) -> AsyncIterator[None]:
    desk.use("host_b")
    yield


def states(desk: Desk) -> dict[str, str]:
    return {sha: one["status"] for (_, sha, _), one in desk.source_host.statuses.items()}


async def test_a_status_follows_the_check(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    [(place, status)] = desk.source_host.statuses.items()
    assert (place, status["status"]) == ((SHOP, SHA, "nightly"), "running")
    assert (await desk.ticket(begun))[0] == str(status["id"])
    assert await desk.report(begun, conclusion="failure", title="Torn " + "x" * 250)
    await desk.told()
    [status] = desk.source_host.statuses.values()
    assert (status["status"], status["description"][:5]) == ("failed", "Torn ")
    assert len(status["description"]) == 255


async def test_a_superseded_check_leaves_the_later_ones_status_alone(desk: Desk) -> None:
    automation = await desk.waiting()
    first = await desk.trigger(automation)
    second = await desk.trigger(automation)
    await desk.told()
    assert states(desk) == {SHA: "running"}
    assert not await desk.report(first)
    assert await desk.report(second)
    await desk.let_go(first)
    await desk.told()
    assert states(desk) == {SHA: "success"}
    assert [one.body["state"] for one in desk.source_host.asked] == [
        "running",
        "running",
        "success",
    ]


async def test_a_superseded_check_of_an_earlier_commit_is_canceled(desk: Desk) -> None:
    automation = await desk.waiting()
    await desk.trigger(automation)
    await desk.trigger(automation, sha=SHA_2)
    await desk.told()
    assert states(desk) == {SHA: "canceled", SHA_2: "running"}


async def test_a_status_whose_answer_was_lost_is_not_taken_for_a_refusal(desk: Desk) -> None:
    desk.source_host.lost = True
    begun = await desk.trigger(await desk.waiting())
    desk.source_host.lost = False
    await desk.told(seconds=6)
    asked = len(desk.source_host.asked)
    await desk.told(hours=1)
    assert len(desk.source_host.asked) == asked == 2
    assert await desk.report(begun)
    await desk.told()
    assert states(desk) == {SHA: "success"}


async def test_a_run_without_a_verdict_is_canceled(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    await desk.let_go(begun)
    await desk.told()
    assert states(desk) == {SHA: "canceled"}
