"""Rows that are not valid: lists leave them out, and their own routes say so."""

import logging
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import Database
from quarterdeck.service.environments.service import repositories_for
from quarterdeck.service.errors import DamagedRecordError
from quarterdeck.service.formats import now_text
from quarterdeck.service.identity.rows import KeyScope, add_key
from tests.service.callers import Callers, environment, made, refused, repository
from tests.service.conftest import NewWorkspace

LATE = "10000-01-01T00:00:00.000Z"
REPLICA = "/v1/replica/{id}"
AUTOMATION = "/v1/automations/{id}"


async def _damage(database: Database, table: str, id: str, column: str, value: Any) -> None:
    statement = text(f"UPDATE {table} SET {column} = :value WHERE id = :id")
    await database.write(lambda c: c.execute(statement, {"value": value, "id": id}))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("created_at", LATE),
        ("created_at", "0000-00-00"),
        ("repositories_json", "["),
        ("repositories_json", "{}"),
        ("repositories_json", "[1]"),
        ("repositories_json", '[{"id": 1}]'),
        ("repository_statuses_json", '[{"name": 1}]'),
        ("repository_statuses_json", "[" * 20_000),
    ],
)
async def test_a_damaged_replica_hides_no_other(
    callers: Callers,
    context: ServiceContext,
    new_workspace: NewWorkspace,
    caplog: pytest.LogCaptureFixture,
    column: str,
    value: str,
) -> None:
    whole, damaged = [await new_workspace(context.database) for _ in range(2)]
    await _damage(context.database, "workspaces", damaged, column, value)
    answer = await callers.key.get("/v1/replica")
    assert answer.status_code == 200, answer.text
    assert [one["id"] for one in answer.json()["replicas"]] == [whole]
    assert any(one.levelno == logging.WARNING for one in caplog.records)
    refused(await callers.key.get(REPLICA.format(id=damaged)), 500, "INTERNAL_ERROR")
    assert "is damaged" in (await callers.key.get(REPLICA.format(id=damaged))).text


@pytest.mark.parametrize(
    ("column", "value"),
    [("goal_json", "nothing"), ("goal_json", "[]"), ("updated_at", LATE)],
)
async def test_a_damaged_chat_hides_no_other(
    callers: Callers,
    context: ServiceContext,
    new_workspace: NewWorkspace,
    new_chat: NewWorkspace,
    column: str,
    value: str,
) -> None:
    workspace = await new_workspace(context.database)
    whole, damaged = [await new_chat(context.database, workspace) for _ in range(2)]
    await _damage(context.database, "chats", damaged, column, value)
    path = REPLICA.format(id=workspace)
    answer = await callers.key.get(path)
    assert answer.status_code == 200, answer.text
    assert [one["id"] for one in answer.json()["replica"]["chats"]] == [whole]
    listed = await callers.key.get(f"{path}/chats")
    assert [one["id"] for one in listed.json()["chats"]] == [whole]
    own = await callers.key.get(f"{path}/chats/{damaged}/settings")
    refused(own, 500, "INTERNAL_ERROR")
    assert "is damaged" in own.text


@pytest.mark.parametrize(
    ("column", "value"),
    [("triggers_json", "[1]"), ("triggers_json", "x"), ("config_json", "[]"), ("created_at", LATE)],
)
async def test_a_damaged_automation_hides_no_other(
    callers: Callers, context: ServiceContext, column: str, value: str
) -> None:
    of = (await environment(callers.key)).rpartition("/")[2]
    values: dict[str, Any] = {
        "environment_id": of,
        "prompt": "Look",
        "triggers": [],
        "coding_agent": "builtin",
    }
    whole, damaged = [
        await made(callers.key, "/v1/automations", name=name, **values) for name in ("one", "two")
    ]
    await _damage(context.database, "automations", damaged["id"], column, value)
    answer = await callers.key.get("/v1/automations")
    assert answer.status_code == 200, answer.text
    assert [one["id"] for one in answer.json()["automations"]] == [whole["id"]]
    own = await callers.key.get(AUTOMATION.format(id=damaged["id"]))
    refused(own, 500, "INTERNAL_ERROR")
    assert "is damaged" in own.text
    answer = await callers.key.delete(AUTOMATION.format(id=damaged["id"]))
    assert answer.status_code == 200, answer.text


async def test_damaged_parts_of_an_environment_hide_no_others(
    callers: Callers, context: ServiceContext
) -> None:
    path = await environment(callers.key)
    variables = [await made(callers.key, f"{path}/variables", key=key, value="x") for key in "AB"]
    database = context.database
    await _damage(database, "environment_variables", variables[1]["id"], "created_at", LATE)
    answer = await callers.key.get(f"{path}/variables")
    assert answer.status_code == 200, answer.text
    (listed,) = answer.json().values()
    assert [one["key"] for one in listed] == ["A"]
    for one in variables[1:]:
        assert (await callers.key.delete(f"{path}/variables/{one['id']}")).status_code == 200


@pytest.mark.parametrize("column", ["updated_at", "permission_rules_json"])
async def test_a_damaged_environment_hides_no_other(
    callers: Callers, context: ServiceContext, column: str
) -> None:
    whole, damaged = await environment(callers.key, "one"), await environment(callers.key, "two")
    id = damaged.rpartition("/")[2]
    await _damage(context.database, "environments", id, column, "{")
    answer = await callers.key.get("/v1/environments")
    assert answer.status_code == 200, answer.text
    ids = {one["id"] for one in answer.json()["environments"]}
    assert whole.rpartition("/")[2] in ids and id not in ids
    own = await callers.key.get(damaged)
    refused(own, 500, "INTERNAL_ERROR")
    assert "is damaged" in own.text


async def test_damaged_api_keys_and_repository_sets_hide_no_others(
    callers: Callers, context: ServiceContext
) -> None:
    scope = KeyScope(callers.people.organization, callers.people.owner)
    database = context.database
    whole, damaged = [
        await database.write(lambda c, name=name: add_key(c, scope, name, "p", name, now_text()))
        for name in ("one", "two")
    ]
    await _damage(database, "api_keys", str(damaged.id), "created_at", LATE)
    listed = (await callers.owner.get("/v1/user/api-keys")).json()["api_keys"]
    ids = {one["id"] for one in listed}
    assert str(whole.id) in ids and str(damaged.id) not in ids
    of = [await repository(callers.key)]
    path = "/v1/replica/repository-sets"
    sets = [await made(callers.key, path, name=name, repository_ids=of) for name in ("a", "b")]
    await _damage(context.database, "repository_sets", sets[1]["id"], "created_at", LATE)
    (listed,) = (await callers.key.get(path)).json().values()
    assert [one["id"] for one in listed] == [sets[0]["id"]]


@pytest.mark.parametrize("database_kind", ["sqlite"])
@pytest.mark.parametrize("column", ["name", "default_branch"])
async def test_a_set_with_a_damaged_repository_is_not_used_without_it(
    callers: Callers, context: ServiceContext, column: str
) -> None:
    whole, damaged = [await repository(callers.key, name) for name in ("whole", "damaged")]
    path = "/v1/replica/repository-sets"
    one = await made(callers.key, path, name="both", repositories=[whole, damaged])
    bound = (await environment(callers.key, "bound", repository_set_id=one["id"])).rpartition("/")[
        2
    ]
    await _damage(context.database, "repositories", damaged, column, b"\xff")
    (listed,) = (await callers.key.get(path)).json().values()
    assert listed == [one]
    owner = callers.people.organization, None
    with pytest.raises(DamagedRecordError, match="repository is damaged") as raised:
        await context.database.read(lambda c: repositories_for(c, *owner, bound))
    assert damaged in raised.value.for_operator()
    # It can be taken out of the set, and away.
    assert (
        await callers.key.patch(f"{path}/{one['id']}", json={"repositories": [whole]})
    ).is_success
    answer = await callers.key.delete(f"/v1/replica/repositories/{damaged}")
    assert answer.status_code == 200, answer.text


async def test_an_unknown_role_is_said_to_be_damaged(
    callers: Callers, context: ServiceContext
) -> None:
    statement = text("UPDATE members SET role = 'emperor' WHERE user_id = :user")
    user = {"user": callers.people.member}
    await context.database.write(lambda c: c.execute(statement, user))
    answer = await callers.member.get("/v1/replica")
    refused(answer, 500, "INTERNAL_ERROR")
    assert "is damaged" in answer.text
    assert (await callers.owner.get("/v1/replica")).status_code == 200


@pytest.mark.parametrize("database_kind", ["sqlite"])
@pytest.mark.parametrize(
    ("table", "column"),
    [("workspaces", "name"), ("chats", "title"), ("organizations", "name"), ("members", "role")],
)
async def test_text_that_is_not_utf_8_is_replaced(
    callers: Callers,
    context: ServiceContext,
    new_workspace: NewWorkspace,
    new_chat: NewWorkspace,
    table: str,
    column: str,
) -> None:
    workspace = await new_workspace(context.database, name=f"web {uuid4()}")
    await new_chat(context.database, workspace)
    statement = text(f"UPDATE {table} SET {column} = CAST(X'61ff62' AS TEXT)")
    await context.database.write(lambda c: c.execute(statement))
    for path in ("/v1/replica", REPLICA.format(id=workspace), "/v1/organizations"):
        answer = await callers.key.get(path)
        assert answer.status_code == 200, answer.text
    if table in ("workspaces", "chats"):
        assert "a\ufffdb" in (await callers.key.get(REPLICA.format(id=workspace))).text
