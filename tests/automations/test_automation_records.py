"""Automations as records: made, listed, changed, refused, and who sees them."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.service.identity.rows import only_organization
from tests.automations.conftest import SCHEDULE, Office
from tests.service.people import key_of, settle, token_of

PULL: dict[str, Any] = {"type": "host-a", "config": {"event": "pull_request.opened"}}
MERGE: dict[str, Any] = {"type": "host-b", "config": {"event": "merge_request.opened"}}


async def test_a_record_has_what_it_was_given(office: Office) -> None:
    body: dict[str, Any] = {
        "description": "Looks after the night.",
        "triggers": [
            SCHEDULE,
            PULL,
            MERGE,
            {"type": "custom"},
            {"type": "errmon", "config": {"a": 1}},
        ],
        "debounce_seconds": 0,
        "workspace_lifecycle_policy": "archive_when_done",
        "workspace_auto_stop_minutes": 1440,
        "workspace_size": "small",
        "agent_provider": "gemini",
        "model": "fast",
        "thinking_level": "high",
        "plan_mode": True,
        "goal_mode": True,
        "fast_mode": False,
    }
    made = await office.create(**body)
    triggers = body.pop("triggers")
    assert {name: made[name] for name in body} == body
    assert [one["type"] for one in made["triggers"]] == [one["type"] for one in triggers]
    assert made["cron_expression"] == "0 9 * * *" and made["cron_timezone"] == "UTC"
    assert made["triggers"][4]["config"] == {"a": 1}
    assert made["user_id"] is None and made["enabled"]
    assert (await office.get(made["id"]))["automation"] == made


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"triggers": [SCHEDULE, SCHEDULE]}, "triggers.1"),
        ({"triggers": [PULL, PULL]}, "triggers.1"),
        ({"triggers": [{"type": "custom"}, {"type": "custom"}]}, "triggers.1"),
        (
            {"triggers": [{"type": "cron", "config": {"schedule": "x"}}]},
            "triggers.0.config.schedule",
        ),
        (
            {
                "triggers": [
                    {"type": "cron", "config": {"schedule": "* * * * *", "timezone": "No/w"}}
                ]
            },
            "triggers.0.config.timezone",
        ),
        ({"triggers": [{"type": "host-a", "config": {"event": "push"}}]}, "triggers"),
        (
            {"triggers": [{"type": "host-a", "config": {"event": "merge_request.opened"}}]},
            "triggers",
        ),
        ({"triggers": [{"type": "pigeon"}]}, "triggers"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": " \n\t "}, "prompt"),
        ({"name": "  "}, "name"),
        ({"prompt": None}, "prompt"),
        ({"debounce_seconds": -1}, "debounce_seconds"),
        ({"debounce_seconds": 86_401}, "debounce_seconds"),
        ({"debounce_seconds": "60"}, "debounce_seconds"),
        ({"workspace_auto_stop_minutes": 2}, "workspace_auto_stop_minutes"),
        ({"workspace_auto_stop_minutes": 1441}, "workspace_auto_stop_minutes"),
        ({"workspace_size": "huge"}, "workspace_size"),
        ({"workspace_lifecycle_policy": "never"}, "workspace_lifecycle_policy"),
        ({"thinking_level": "deep"}, "thinking_level"),
        ({"agent_provider": "nobody"}, "agent_provider"),
        ({"agent_provider": "codex"}, "agent_provider"),
        ({"scope": "all"}, "scope"),
        ({"enabled": "yes"}, "enabled"),
        ({"config": []}, "config"),
    ],
)
async def test_what_is_wrong_is_refused_by_name(
    office: Office, body: dict[str, Any], names: str
) -> None:
    answer = await office.post(body)
    assert answer.status_code == 400, answer.text
    refused = answer.json()
    assert refused["code"] == "INVALID_REQUEST"
    assert names in (refused["details"] or ""), refused


async def test_an_environment_that_is_not_there_is_404(office: Office) -> None:
    """As for replicas."""
    unknown = {"environment_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"}
    made = await office.create()
    for answer in (
        await office.post(unknown),
        await office.world.client.patch(f"/v1/automations/{made['id']}", json=unknown),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), answer.text
        assert answer.json()["details"].startswith("environment_id")


async def test_the_bounds_themselves_are_taken(office: Office) -> None:
    bounds: tuple[dict[str, Any], ...] = (
        {"debounce_seconds": 86_400, "workspace_auto_stop_minutes": 3},
        {"debounce_seconds": 0, "workspace_auto_stop_minutes": 1440},
        {"name": "n" * 200},
        {"triggers": [PULL, MERGE, {"type": "host-a", "config": {"event": "pull_request.closed"}}]},
    )
    for body in bounds:
        await office.create(**body)


async def test_a_list_is_newest_first_and_filtered(office: Office) -> None:
    made = []
    for name, triggers, enabled in (
        ("Nightly 100%", [SCHEDULE], True),
        ("review", [PULL], True),
        ("off", [PULL, SCHEDULE], False),
    ):
        made.append(await office.create(name=name, triggers=triggers, enabled=enabled))
        office.clock.pass_by(seconds=1)

    async def names(query: str) -> list[str]:
        answer = await office.world.client.get(f"/v1/automations?{query}")
        assert answer.status_code == 200, answer.text
        return [one["name"] for one in answer.json()["automations"]]

    assert await names("") == ["off", "review", "Nightly 100%"]
    assert await names("trigger_type=cron") == ["off", "Nightly 100%"]
    assert await names("trigger_type=host-a&enabled=true") == ["review"]
    assert await names("enabled=false") == ["off"]
    assert await names("search=NIGHT") == ["Nightly 100%"]
    assert await names("search=0%25") == ["Nightly 100%"]
    assert await names("search=%25") == ["Nightly 100%"]
    assert await names("scope=user") == []
    page = (await office.world.client.get("/v1/automations?page=2&limit=2")).json()
    assert [one["name"] for one in page["automations"]] == ["Nightly 100%"]
    assert (page["total"], page["page"], page["limit"], page["totalPages"]) == (3, 2, 2, 2)
    for query in ("page=0", "limit=0", "limit=101", "trigger_type=x", "enabled=perhaps", "scope=x"):
        assert (await office.world.client.get(f"/v1/automations?{query}")).status_code == 400


async def test_a_change_leaves_what_it_does_not_name(office: Office) -> None:
    made = await office.create(
        triggers=[SCHEDULE], description="d", model="m", agent_provider="gemini"
    )
    changed = await office.change(made["id"], description=None, name="new")
    assert changed == {
        **made,
        "description": None,
        "name": "new",
        "updated_at": changed["updated_at"],
    }
    moved = await office.change(
        made["id"], triggers=[{"type": "cron", "config": {"schedule": "30 9 * * *"}}]
    )
    assert moved["cron_next_fire_at"] == "2026-11-20T09:30:00.000Z"
    for body in (
        {"name": None},
        {"name": " "},
        {"prompt": ""},
        {"enabled": None},
        {"triggers": None},
    ):
        path = f"/v1/automations/{made['id']}"
        assert (await office.world.client.patch(path, json=body)).status_code == 400


async def test_an_environment_in_use_is_not_deleted(office: Office) -> None:
    client = office.world.client
    own = (await client.post("/v1/environments", json={"name": "e"})).json()["environment"]["id"]
    made = await office.create(environment_id=own)
    refused = await client.delete(f"/v1/environments/{own}")
    assert refused.status_code == 409 and "nightly" in refused.json()["details"]
    await client.delete(f"/v1/automations/{made['id']}")
    assert (await client.delete(f"/v1/environments/{own}")).status_code == 200


async def test_a_personal_automation_is_its_users_alone(office: Office) -> None:
    context, client = office.world.context, office.world.client
    people = await settle(context)
    owner = {"Authorization": f"Bearer {await key_of(context, people.organization, people.owner)}"}
    member = {
        "Authorization": f"Bearer {await key_of(context, people.organization, people.member)}"
    }
    other = {"Authorization": f"Bearer {await key_of(context, people.other)}"}
    shared = {"Authorization": f"Bearer {await key_of(context, people.organization)}"}
    body = {
        "name": "mine",
        "prompt": "p",
        "environment_id": office.world.environment,
        "scope": "user",
    }
    answer = await client.post("/v1/automations", json=body, headers=shared)
    assert answer.status_code == 401 and answer.json()["code"] == "USER_REQUIRED"
    answer = await client.post("/v1/automations", json=body, headers=owner)
    made = answer.json()["automation"]
    assert made["user_id"] == made["created_by"] == people.owner
    path = f"/v1/automations/{made['id']}"
    assert (await client.get(path, headers=owner)).status_code == 200
    for stranger in (member, other, shared):
        assert (await client.get(path, headers=stranger)).status_code == 404
        assert (await client.delete(path, headers=stranger)).status_code == 404
        assert (await client.post(f"{path}/trigger", headers=stranger)).status_code == 404
        seen = (await client.get("/v1/automations", headers=stranger)).json()
        assert seen["total"] == 0
    token = {
        "Authorization": f"Bearer {token_of(context, people.owner)}",
        "Service-Org-Id": people.organization,
    }
    assert (await client.get("/v1/automations?scope=user", headers=token)).json()["total"] == 1


async def test_a_personal_environment_serves_no_shared_automation(office: Office) -> None:
    context, client = office.world.context, office.world.client
    people = await settle(context)
    owner = {"Authorization": f"Bearer {await key_of(context, people.organization, people.owner)}"}
    made = await client.post("/v1/environments", json={"name": "e", "scope": "user"}, headers=owner)
    own = made.json()["environment"]["id"]
    body = {"name": "n", "prompt": "p", "environment_id": own}
    assert (await client.post("/v1/automations", json=body, headers=owner)).status_code == 400
    body |= {"scope": "user"}
    assert (await client.post("/v1/automations", json=body, headers=owner)).status_code == 201


@pytest.mark.long
async def test_changes_are_told_and_told_again_from_a_place(office: Office) -> None:
    after = await office.runner.watch.newest()
    made = await office.create(triggers=[SCHEDULE])
    run = await office.trigger(made["id"])
    await office.reach(made["id"], run["execution_id"], "completed")
    await office.world.client.delete(f"/v1/automations/{made['id']}")
    told = await office.told(after)
    assert [one["type"] for one in told][:1] == ["automation.changed"]
    assert told[-1]["type"] == "automation.deleted"
    states = [
        one["payload"]["execution"]["status"] for one in told if "execution" in one["payload"]
    ]
    assert states == ["pending", "creating", "running", "completed"]
    half = told[2]["index"]
    assert await office.told(half) == told[3:]


async def test_replicas_that_come_and_go_are_told_to_their_organization(office: Office) -> None:
    watch, world = office.runner.watch, office.world
    after = await watch.newest()
    made = await world.create()
    for call in ("archive", "wake"):
        assert (await world.client.post(f"/v1/workspaces/{made}/{call}")).is_success
        await world.reach(made, {"archive": "archived", "wake": "active"}[call])
    assert (await world.client.delete(f"/v1/replica/{made}")).is_success
    told = await office.told(after)
    assert {one["type"] for one in told} == {"replica.changed"}
    assert [one["payload"] for one in told] == [
        {"replica_id": made, "status": status}
        for status in ("preparing", "archived", "preparing", None)
    ]
    assert await watch.read((str(uuid4()), None), after) == []


async def test_a_deleted_replica_is_told_at_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when the changes of other services are looked for."""
    watch, world = office.runner.watch, office.world
    monkeypatch.setattr(watch, "_pause", 3600)
    made = await world.create()
    organization = await world.context.database.read(only_organization)
    assert organization is not None
    stream = watch.follow(organization, None, await watch.newest())
    reading = asyncio.create_task(anext(stream))
    try:
        assert (await world.client.delete(f"/v1/replica/{made}")).is_success
        assert b'"status":null' in await reading
    finally:
        reading.cancel()
        await stream.aclose()


@pytest.mark.parametrize("depth", [101, 500, 900])
async def test_json_that_lies_too_deep_is_refused(office: Office, depth: int) -> None:
    made = await office.create()
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    for path, body in (
        (f"/v1/automations/{made['id']}/trigger", {"payload": deep}),
        (
            "/v1/replica",
            {"name": "r", "environment_id": office.world.environment, "config": {"a": deep}},
        ),
    ):
        answer = await office.world.client.post(path, json=body)
        assert answer.status_code == 400, (path, answer.text)


async def test_a_change_of_an_older_state_is_refused(office: Office) -> None:
    client = office.world.client
    made = await office.create(triggers=[SCHEDULE])
    path = f"/v1/automations/{made['id']}"
    first = (await client.get(path)).headers["etag"]
    answer = await client.patch(path, json={"name": "other"}, headers={"If-Match": first})
    assert answer.status_code == 200 and answer.headers["etag"] != first
    late = await client.patch(path, json={"name": "third"}, headers={"If-Match": first})
    assert (late.status_code, late.json()["code"]) == (412, "PRECONDITION_FAILED")
    assert (await office.get(made["id"]))["automation"]["name"] == "other"
