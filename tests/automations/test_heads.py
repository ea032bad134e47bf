"""Runs for pull requests begin at the pull request's head, in the repository that it is of."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from quarterdeck.sandboxes.errors import CloneError
from quarterdeck.sandboxes.port import RepositorySource, StartPoint
from tests.automations.conftest import Office
from tests.automations.host_payloads import (
    SHA,
    issue_comment,
    merge_request,
    pull_request,
)
from tests.automations.hosting import OPENED, URL_B, Hosting, trigger

pytestmark = pytest.mark.one_database

PULL, MERGE = "refs/pull/7/head", "refs/merge-requests/3/head"
CHECKED_OUT = "is checked out here at its head"


@pytest.fixture
async def hosting(office: Office) -> AsyncIterator[Hosting]:
    made = Hosting(office)
    await made.connect()
    yield made


async def bound(hosting: Hosting, repository_id: str) -> str:
    """An environment of a repository."""
    body = {"name": f"of {repository_id[:8]}", "repository_id": repository_id}
    answer = await hosting.client.post("/v1/environments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["environment"]["id"]


def sources(hosting: Hosting, workspace_id: str) -> list[RepositorySource]:
    return hosting.office.world.driver.provisioned[workspace_id]


async def ran(hosting: Hosting, made: dict[str, Any]) -> tuple[StartPoint | None, str]:
    """Where the newest run of an automation began, and its message."""
    office = hosting.office
    await office.runner.turn()
    run = await office.reach(made["id"], (await office.runs(made["id"]))[0]["id"], "completed")
    [source] = sources(hosting, run["workspace_id"])
    return source.start, await office.said(run["workspace_id"])


async def test_an_event_of_host_a_begins_at_its_commit(hosting: Hosting) -> None:
    repository = await hosting.connect("https://host-a.example/harbor/pier.git")
    environment = await bound(hosting, repository)
    made = await hosting.office.create(environment_id=environment, triggers=[OPENED])
    await hosting.host_a(pull_request())
    start, said = await ran(hosting, made)
    assert start == StartPoint((PULL,), SHA)
    assert CHECKED_OUT in said


@pytest.mark.long
async def test_a_comment_of_host_a_begins_at_the_ref(hosting: Hosting) -> None:
    repository = await hosting.connect("https://host-a.example/harbor/pier.git")
    environment = await bound(hosting, repository)
    event = trigger("pull_request.command", check=False)
    made = await hosting.office.create(environment_id=environment, triggers=[event])
    await hosting.host_a(issue_comment("/qd"), "issue_comment")
    start, _ = await ran(hosting, made)
    assert start == StartPoint((PULL,))


@pytest.mark.long
async def test_an_event_of_host_b_begins_at_its_commit(hosting: Hosting) -> None:
    environment = await bound(hosting, await hosting.connect(URL_B))
    made = await hosting.office.create(
        environment_id=environment, triggers=[trigger("merge_request.opened")]
    )
    await hosting.host_b(merge_request())
    start, said = await ran(hosting, made)
    assert start == StartPoint((MERGE,), SHA)
    assert CHECKED_OUT in said


@pytest.mark.long
async def test_a_run_by_hand_looks_for_both_refs(hosting: Hosting) -> None:
    environment = await bound(hosting, await hosting.connect("https://other.example/sea/chart"))
    made = await hosting.office.create(environment_id=environment)
    await hosting.office.trigger(made["id"], pr={"repository": "sea/chart", "number": 3})
    start, said = await ran(hosting, made)
    assert start == StartPoint(("refs/pull/3/head", MERGE))
    assert CHECKED_OUT in said


@pytest.mark.long
async def test_a_repository_of_this_machine_need_have_no_pull_requests(hosting: Hosting) -> None:
    environment = await bound(hosting, await hosting.connect("/srv/chart"))
    made = await hosting.office.create(environment_id=environment)
    await hosting.office.trigger(made["id"], pr={"repository": "pier", "number": 3})
    start, said = await ran(hosting, made)
    assert start is not None and not start.required
    assert CHECKED_OUT not in said


@pytest.mark.long
async def test_another_repository_begins_at_its_default_branch(hosting: Hosting) -> None:
    other = await hosting.connect("https://host-a.example/harbor/quay")
    environment = await bound(hosting, other)
    pier = await hosting.connect("https://host-a.example/harbor/pier.git")
    event = trigger("pull_request.opened", repository_ids=[pier])
    made = await hosting.office.create(environment_id=environment, triggers=[event])
    await hosting.host_a(pull_request())
    start, said = await ran(hosting, made)
    assert start is None
    assert CHECKED_OUT not in said and "git fetch origin" in said


async def test_a_run_whose_head_cannot_be_had_has_failed(hosting: Hosting) -> None:
    office = hosting.office
    environment = await bound(
        hosting, await hosting.connect("https://host-a.example/harbor/pier.git")
    )
    made = await office.create(environment_id=environment, triggers=[OPENED])
    office.world.driver.provision_error = CloneError(f"pier: its source has no {PULL}.")
    await hosting.host_a(pull_request())
    await office.runner.turn()
    [run] = await office.runs(made["id"])
    ended = await office.reach(made["id"], run["id"], "failed")
    assert PULL in ended["error"]


@pytest.mark.long
async def test_a_run_begins_at_the_base_of_its_automation(hosting: Hosting) -> None:
    repository = await hosting.connect("https://host-a.example/harbor/pier.git")
    environment = await bound(hosting, repository)
    office = hosting.office
    config = {"base": "feature"}
    made = await office.create(environment_id=environment, triggers=[OPENED], config=config)
    assert made["config"]["base"] == "feature"
    await office.trigger(made["id"])
    start, _ = await ran(hosting, made)
    assert start == StartPoint(("refs/heads/feature",), branch="feature")
    office.clock.pass_by(seconds=1)
    await office.change(made["id"], config={"base": "main"})
    await office.trigger(made["id"])
    start, _ = await ran(hosting, made)
    assert start is None
    office.clock.pass_by(seconds=1)
    await office.change(made["id"], config={"base": "nothing"})
    await hosting.host_a(pull_request())
    start, _ = await ran(hosting, made)
    assert start == StartPoint((PULL,), SHA)
    office.clock.pass_by(seconds=1)
    answer = await hosting.client.post(f"/v1/automations/{made['id']}/trigger", json={})
    assert (answer.status_code, answer.json()["details"]) == (400, "config.base")
    run = (await office.runs(made["id"]))[0]
    ended = await office.reach(made["id"], run["id"], "failed")
    assert "pier has no branch, tag or commit nothing." in ended["error"]


async def test_a_base_of_an_automation_is_one_line(hosting: Hosting) -> None:
    answer = await hosting.office.post({"config": {"base": "two\nlines"}})
    assert (answer.status_code, answer.json()["details"][:11]) == (400, "config.base")
