"""Who may report a check: the run's own workspace, with the token of its prompt."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.checks.desk import Desk


async def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_a_check_that_is_not_there_is_not_found(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    _, token = await desk.ticket(begun)
    for id in (str(uuid4()), "1", "nothing"):
        answer = await desk.say(begun["workspace_id"], id, token)
        assert await refusal(answer) == (404, "NOT_FOUND")


async def test_another_token_is_refused_and_changes_nothing(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    id, token = await desk.ticket(begun)
    for wrong in ("x", token[:-1], f"{token}x", token.swapcase()):
        answer = await desk.say(begun["workspace_id"], id, wrong)
        assert await refusal(answer) == (403, "FORBIDDEN")
    assert (await desk.check_of(begun))["status"] == "open"


async def test_the_token_of_another_run_and_another_workspace_are_refused(desk: Desk) -> None:
    automation = await desk.waiting()
    one, two = await desk.trigger(automation), await desk.trigger(automation, number=8)
    id, token = await desk.ticket(one)
    other_id, other_token = await desk.ticket(two)
    for place, check, shown in (
        (one["workspace_id"], id, other_token),
        (two["workspace_id"], id, token),
        (two["workspace_id"], id, other_token),
        (one["workspace_id"], other_id, other_token),
    ):
        assert await refusal(await desk.say(place, check, shown)) == (403, "FORBIDDEN")
    bystander = await desk.world.create()
    assert await refusal(await desk.say(bystander, id, token)) == (403, "FORBIDDEN")


async def test_keys_and_strangers_do_not_open_it(desk: Desk) -> None:
    begun = await desk.trigger(await desk.waiting())
    id, token = await desk.ticket(begun)
    body = {"token": token, "conclusion": "success", "title": "Fine"}
    path = f"/v1/automations/checks/{id}"
    own = await desk.headers(begun["workspace_id"])
    for headers in (
        desk.world.headers,
        {**desk.world.headers, "X-Workspace-Id": begun["workspace_id"]},
        {**own, "X-Workspace-Id": str(uuid4())},
        {**own, "Authorization": "Bearer forged"},
    ):
        answer = await desk.world.client.post(path, json=body, headers=headers)
        assert await refusal(answer) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize(
    "wrong",
    [
        {"conclusion": "neutral"},
        {"title": ""},
        {"title": "two\nlines"},
        {"title": "x" * 256},
        {"token": ""},
        {"summary": "x" * 65_536},
    ],
)
async def test_what_is_not_a_verdict_is_refused(desk: Desk, wrong: dict[str, str]) -> None:
    begun = await desk.trigger(await desk.waiting())
    id, token = await desk.ticket(begun)
    answer = await desk.say(begun["workspace_id"], id, **{"token": token, **wrong})
    assert await refusal(answer) == (400, "INVALID_REQUEST")


async def test_a_run_without_a_pull_request_has_no_check(desk: Desk) -> None:
    made = await desk.waiting()
    answer = await desk.world.client.post(f"/v1/automations/{made}/trigger", json={"payload": 1})
    begun = {"automation": made, **answer.json()}
    assert await desk.check_of(begun) is None
    assert "## Check" not in await desk.prompt(begun)


async def test_an_automation_may_ask_each_run_for_a_report(desk: Desk) -> None:
    made = await desk.waiting()
    await desk.change(made, config={"report": True})
    runs: list[Any] = []
    for _ in range(2):
        answer = await desk.world.client.post(f"/v1/automations/{made}/trigger", json={})
        runs.append({"automation": made, **answer.json()})
    for begun in runs:  # neither takes the other's place
        assert await desk.report(begun, title="Seen")
        assert "of the pull request" not in await desk.prompt(begun)
        check = await desk.check_of(begun)
        assert (check["status"], check["conclusion"]) == ("reported", "success")
    await desk.told()
    assert not desk.source_host.asked


async def test_a_check_of_a_local_repository_is_kept_here(desk: Desk) -> None:
    await desk.connect("/srv/harbour")
    begun = await desk.trigger(await desk.waiting(), repository="harbour", sha=None)
    id, _ = await desk.ticket(begun)
    assert await desk.report(begun, title="Seen")
    await desk.told()
    assert not desk.source_host.asked
    check = await desk.check_of(begun)
    assert (check["id"], check["repository"]) == (id, "harbour")
    assert (check["status"], check["conclusion"], check["title"]) == ("reported", "success", "Seen")


async def test_a_retried_run_takes_the_check_over(desk: Desk) -> None:
    automation = await desk.waiting()
    begun = await desk.trigger(automation)
    await desk.ended(begun, "running")
    await desk.world.client.delete(f"/v1/replica/{begun['workspace_id']}")
    await desk.ended(begun, "failed")
    path = f"/v1/automations/{automation}/executions/{begun['execution_id']}/retry"
    again = {"automation": automation, **(await desk.world.client.post(path)).json()}
    assert (await desk.run_of(again))["trigger_event"] == "pull_request"
    assert await desk.report(again)
    await desk.told()
    ends = [run["conclusion"] for run in desk.source_host.runs.values()]
    assert ends == ["failure", "success"]
