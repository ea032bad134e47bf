"""Events of pull requests from forks: whose runs wait for approval, and what approving does."""

import json
from typing import Any

import httpx
import pytest

from tests.automations.conftest import Office
from tests.automations.host_payloads import (
    FORK,
    STRANGER,
    issue_comment,
    merge_request,
    note,
    of_stranger,
    pull_request,
)
from tests.automations.hosting import OPENED, URL_B, Hosting, trigger

pytestmark = pytest.mark.one_database

SHA_2 = "c" * 40
PUSHED = trigger("pull_request.synchronize")
COMMANDED = trigger("pull_request.command")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def hosting(office: Office) -> Hosting:
    made = Hosting(office)
    await made.connect()
    return made


async def decide(office: Office, run: dict[str, Any], verb: str = "approve") -> httpx.Response:
    path = f"/v1/automations/{run['automation_id']}/executions/{run['id']}/{verb}"
    return await office.world.client.post(path)


async def newest(office: Office, made: dict[str, Any]) -> dict[str, Any]:
    return (await office.runs(made["id"]))[0]


def config_of(office: Office, workspace_id: str) -> dict[str, Any]:
    """What the engine of a replica was started with."""
    text = (office.world.driver.place(workspace_id) / "engine.json").read_text()
    return json.loads(text)


async def test_a_strangers_fork_gets_nothing_before_it_is_approved(hosting: Hosting) -> None:
    office = hosting.office
    path = "/v1/environments/global/variables"
    answer = await office.world.client.post(path, json={"key": "TOKEN", "value": "secret"})
    assert answer.status_code == 201, answer.text
    made = await office.create(triggers=[OPENED])
    assert made["trust"] == "members"
    assert (await hosting.host_a(of_stranger())).status_code == 202
    for _ in range(3):
        office.clock.pass_by(minutes=1)
        await office.runner.turn()
    run = await newest(office, made)
    assert (run["status"], run["awaiting_approval"]) == ("pending", True)
    assert run["workspace_id"] is None and office.world.driver.calls["provision"] == 0

    answer = await decide(office, run)
    assert answer.status_code == 200, answer.text
    approved = answer.json()["execution"]
    assert not approved["awaiting_approval"] and approved["approved_at"] is not None
    assert approved["workspace_id"] is not None
    await office.reach(made["id"], run["id"], "completed")
    config = config_of(office, approved["workspace_id"])
    assert config["environment"]["TOKEN"] == "secret"
    again = await decide(office, run)
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")


@pytest.mark.long
@pytest.mark.parametrize(
    ("payload", "waits"),
    [
        (pull_request(), False),
        (pull_request(author_association=STRANGER), False),
        (pull_request(source=FORK), False),
        (pull_request(source=FORK, author_association="OWNER"), False),
        (pull_request(source=FORK, author_association="COLLABORATOR"), False),
        (pull_request(source=FORK, author_association="CONTRIBUTOR"), True),
        (pull_request(source=FORK, author_association="FIRST_TIME_CONTRIBUTOR"), True),
        (pull_request(source=FORK, author_association=None), True),
        (pull_request(source=None, author_association=STRANGER), True),
        (pull_request(head={"ref": "x", "sha": SHA_2}, author_association=STRANGER), True),
        (pull_request(head={"ref": "x", "repo": None}, author_association=STRANGER), True),
    ],
    ids=range(11),
)
async def test_who_has_a_part_in_the_repository(
    hosting: Hosting, payload: dict[str, Any], waits: bool
) -> None:
    made = await hosting.office.create(triggers=[OPENED])
    assert (await hosting.host_a(payload)).status_code == 202
    assert (await newest(hosting.office, made))["awaiting_approval"] is waits


@pytest.mark.parametrize(("author", "waits"), [("MEMBER", False), ("NONE", True)])
async def test_a_members_command_does_not_vouch_for_a_strangers_code(
    hosting: Hosting, author: str, waits: bool
) -> None:
    made = await hosting.office.create(triggers=[COMMANDED])
    await hosting.host_a(issue_comment("/qd review", author=author), "issue_comment")
    assert (await newest(hosting.office, made))["awaiting_approval"] is waits


@pytest.mark.parametrize(
    ("payload", "event", "kind", "waits"),
    [
        (merge_request(), "merge_request.opened", "Merge Request Hook", False),
        (merge_request(source=16), "merge_request.opened", "Merge Request Hook", True),
        (merge_request(source=None), "merge_request.opened", "Merge Request Hook", True),
        (
            merge_request(source=None, target_project_id=None),
            "merge_request.opened",
            "Merge Request Hook",
            True,
        ),
        (note("/qd"), "merge_request.command", "Note Hook", False),
        (note("/qd", source=16), "merge_request.command", "Note Hook", True),
    ],
    ids=range(6),
)
async def test_merge_requests_from_forks_wait(
    hosting: Hosting, payload: dict[str, Any], event: str, kind: str, waits: bool
) -> None:
    await hosting.connect(URL_B)
    made = await hosting.office.create(triggers=[trigger(event)])
    assert (await hosting.host_b(payload, kind)).status_code == 202
    assert (await newest(hosting.office, made))["awaiting_approval"] is waits


async def test_trust_in_all_asks_nobody(hosting: Hosting) -> None:
    made = await hosting.office.create(triggers=[OPENED], trust="all")
    await hosting.host_a(of_stranger())
    assert not (await newest(hosting.office, made))["awaiting_approval"]


@pytest.mark.long
async def test_trust_in_the_approved_asks_once_for_each_author(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED], trust="approved")

    async def opened(number: int, **about: Any) -> bool:
        office.clock.pass_by(seconds=1)
        await hosting.host_a(of_stranger(number=number, **about))
        return (await newest(office, made))["awaiting_approval"]

    assert await opened(1)
    assert await opened(2), "to be seen is not to be approved"
    assert (await decide(office, await newest(office, made))).status_code == 200
    assert not await opened(3)
    assert await opened(4, user={"login": "stranger", "id": 1000})
    assert await opened(5, user={"login": "stranger"}), "a name may become another's"
    await office.change(made["id"], trust="members")
    assert await opened(6)


@pytest.mark.long
async def test_a_retry_of_what_nobody_approved_waits_again(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED], prompt="wait")
    await hosting.host_a(of_stranger())
    run = await newest(office, made)
    assert (await decide(office, run, "cancel")).status_code == 200
    office.clock.pass_by(seconds=1)
    assert (await decide(office, run, "retry")).json()["workspace_id"] is None
    again = await newest(office, made)
    assert again["awaiting_approval"] and again["retry_of"] == run["id"]

    # One that was approved for a commit need not be approved for it again.
    assert (await decide(office, again)).status_code == 200
    await office.reach(made["id"], again["id"], "running")
    assert (await decide(office, again, "cancel")).status_code == 200
    office.clock.pass_by(seconds=1)
    assert (await decide(office, again, "retry")).json()["workspace_id"] is not None


@pytest.mark.long
async def test_what_waits_for_approval_holds_nothing_up(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(
        triggers=[
            {"type": "cron", "config": {"schedule": "* * * * *"}},
            trigger("pull_request.opened", group_pr_events=True),
            trigger("pull_request.command", group_pr_events=True),
        ],
        config={"skip_while_running": True},
        concurrency=1,
        trust="approved",
    )
    await hosting.host_a(of_stranger())
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    fired = await newest(office, made)
    assert fired["trigger_type"] == "cron"
    await office.reach(made["id"], fired["id"], "completed")
    office.clock.pass_by(seconds=1)
    await hosting.host_a(issue_comment("/qd look"), "issue_comment")
    await office.runner.turn()
    await office.reach(made["id"], (await newest(office, made))["id"], "completed")


async def test_a_burst_does_not_change_what_is_being_approved(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED, COMMANDED], debounce_seconds=60)
    await hosting.host_a(of_stranger())
    first = await newest(office, made)
    office.clock.pass_by(seconds=1)
    await hosting.host_a(issue_comment("/qd now", author=STRANGER), "issue_comment")
    second, kept = await office.runs(made["id"])
    assert second["awaiting_approval"] and kept == first


async def test_a_push_takes_the_place_of_what_waits_for_approval(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED, PUSHED])
    await hosting.host_a(of_stranger())
    first = await newest(office, made)
    office.clock.pass_by(seconds=1)
    await hosting.host_a(of_stranger("synchronize", sha=SHA_2))
    new, old = await office.runs(made["id"])
    assert (old["status"], old["reason"]) == ("failed", "superseded")
    assert new["awaiting_approval"]
    assert (await decide(office, first)).status_code == 409


async def test_nobody_elses_run_is_approved(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED])
    other = await office.create()
    await hosting.host_a(of_stranger())
    run = await newest(office, made)
    client = office.world.client
    for automation in (other["id"], run["id"]):
        path = f"/v1/automations/{automation}/executions/{run['id']}/approve"
        assert (await client.post(path)).status_code == 404
    begun = await office.trigger(other["id"])
    path = f"/v1/automations/{other['id']}/executions/{begun['execution_id']}/approve"
    assert (await client.post(path)).status_code == 409


async def test_what_nobody_approves_ends_after_the_retention(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED], retention_days=2)
    await hosting.host_a(of_stranger())
    office.clock.pass_by(days=2, seconds=1)
    await office.runner.turn()
    run = await newest(office, made)
    assert (run["status"], run["reason"]) == ("failed", "expired")


async def test_a_command_without_a_commit_is_not_approved(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[COMMANDED])
    await hosting.host_a(issue_comment("/qd look", author=STRANGER), "issue_comment")
    run = await newest(office, made)
    assert run["awaiting_approval"] and run["head_sha"] is None
    answer = await decide(office, run)
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert "commit" in answer.json()["error"]
    assert (await newest(office, made))["awaiting_approval"]


async def test_an_approved_run_is_for_the_commit_that_was_shown(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED])
    await hosting.host_a(of_stranger(sha=SHA_2))
    run = await newest(office, made)
    assert run["head_sha"] == SHA_2
    answer = await decide(office, run)
    assert answer.json()["execution"]["head_sha"] == SHA_2
    said = await office.said(answer.json()["execution"]["workspace_id"])
    assert "This run is for the commit `head_sha` alone" in said
