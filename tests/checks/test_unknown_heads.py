"""Runs that are begun without a commit: their host is asked where the pull request's head stands."""

import json
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from quarterdeck.service.hosts.settings import HostsSettings
from tests.automations.host_payloads import STRANGER, issue_comment
from tests.automations.hosting import SECRET_A, A, signed, trigger
from tests.checks.desk import SHA, SHA_2, SHOP, Begun, Desk


async def told(desk: Desk, begun: Begun) -> dict[str, Any]:
    """What the prompt says of the pull request."""
    found = re.search(r"## Pull Request.*?```json\n(.*?)\n```", await desk.prompt(begun), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


async def test_host_a_is_asked_and_keeps_the_check(desk: Desk) -> None:
    desk.source_host.heads[7] = SHA_2
    begun = await desk.trigger(await desk.waiting(), sha=None)
    run = desk.source_host.only_run()
    assert (run["repo"], run["head_sha"]) == (SHOP, SHA_2)
    assert (await desk.check_of(begun))["head_sha"] == SHA_2
    assert (await desk.ticket(begun))[0] == str(run["id"])
    about = await told(desk, begun)
    assert (about["head_sha"], about["fetch_ref"]) == (SHA_2, "refs/pull/7/head")
    assert (about["head_ref"], about["base_ref"], about["title"]) == ("sails", "main", "Sails")


async def test_host_b_is_asked_and_keeps_the_check(desk: Desk) -> None:
    desk.use("host_b")
    desk.source_host.heads[7] = SHA_2
    begun = await desk.trigger(await desk.waiting(), sha=None)
    assert list(desk.source_host.statuses) == [(SHOP, SHA_2, "nightly")]
    about = await told(desk, begun)
    assert (about["head_sha"], about["fetch_ref"]) == (SHA_2, "refs/merge-requests/7/head")


async def test_the_later_run_takes_the_check_over_at_the_host(desk: Desk) -> None:
    desk.source_host.heads[7] = SHA
    automation = await desk.waiting()
    await desk.trigger(automation)
    second = await desk.trigger(automation, sha=None)
    assert await desk.report(second)
    await desk.told()
    ends = [run["conclusion"] for run in desk.source_host.runs.values()]
    assert ends == ["cancelled", "success"]


async def test_a_commit_that_is_given_is_not_asked_for(desk: Desk) -> None:
    await desk.trigger(await desk.waiting())
    assert [one.method for one in desk.source_host.asked] == ["POST"]


@pytest.mark.long
@pytest.mark.parametrize(("down", "why"), [(True, "it answered 503."), (False, "it answered 404.")])
async def test_a_host_that_cannot_be_asked_leaves_the_check_here_and_says_why(
    desk: Desk, down: bool, why: str
) -> None:
    automation = await desk.waiting()
    first = await desk.trigger(automation)
    desk.source_host.down = down
    second = await desk.trigger(automation, sha=None)
    check = await desk.check_of(second)
    assert (check["status"], check["head_sha"], check["repository"]) == ("open", None, SHOP)
    assert (
        check["title"] == "The check is kept here: the host did not report the pull request's head."
    )
    assert check["summary"] == f"host-a was asked for the head of {SHOP}#7: {why}"
    assert (await told(desk, second))["fetch_ref"] == "refs/pull/7/head"
    desk.source_host.down = False
    # Nothing at the host would take the place of the check before.
    assert await desk.report(first) and await desk.report(second, conclusion="failure")
    await desk.told()
    assert desk.source_host.only_run()["conclusion"] == "success"
    assert (await desk.check_of(second))["conclusion"] == "failure"
    third = await desk.trigger(automation)
    assert not await desk.report(first) and not await desk.report(second)
    assert await desk.report(third)


async def test_a_host_that_says_nothing_holds_no_run_up(desk: Desk) -> None:
    desk.set_limits(opening=0.05)
    desk.source_host.gate.clear()
    begun = await desk.trigger(await desk.waiting(), sha=None)
    assert begun["workspace_id"] is not None
    assert "did not answer in time" in (await desk.check_of(begun))["summary"]


async def deliver(desk: Desk) -> httpx.Response:
    """A member's command in a comment on a stranger's pull request, as host A sends it."""
    comment = issue_comment("/qd look", author=STRANGER)
    repository = {"full_name": SHOP, "clone_url": f"{desk.source_host.url}/{SHOP}.git"}
    body = json.dumps({**comment, "repository": repository}).encode()
    headers = {"Authorization": "", **signed(body, event="issue_comment")}
    return await desk.world.client.post(A, content=body, headers=headers)


async def command(desk: Desk) -> dict[str, Any]:
    """A run that a member commands in a comment on a stranger's pull request."""
    settings = replace(desk.world.context.hosts.host_a, webhook_secret=SECRET_A)
    desk.world.context.hosts = HostsSettings(host_a=settings)
    made = await desk.create(triggers=[trigger("pull_request.command")])
    answer = await deliver(desk)
    assert answer.status_code == 202, answer.text
    [run] = await desk.runs(made["id"])
    assert run["awaiting_approval"]
    return run


async def test_a_push_after_the_command_is_not_what_is_approved(desk: Desk) -> None:
    desk.source_host.heads[7] = SHA
    run = await command(desk)
    assert run["head_sha"] == SHA
    desk.source_host.heads[7] = SHA_2
    path = f"/v1/automations/{run['automation_id']}/executions/{run['id']}/approve"
    answer = await desk.world.client.post(path)
    assert answer.status_code == 200, answer.text
    begun = {"automation": run["automation_id"], "execution_id": run["id"]}
    assert (await told(desk, begun))["head_sha"] == SHA


async def test_a_command_whose_host_is_down_is_accepted(desk: Desk) -> None:
    desk.source_host.down = True
    assert (await command(desk))["head_sha"] is None


async def test_a_repeated_webhook_asks_the_host_nothing(desk: Desk) -> None:
    desk.source_host.heads[7] = SHA
    await command(desk)
    asked = len(desk.source_host.asked)
    assert asked
    answer = await deliver(desk)
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert len(desk.source_host.asked) == asked
