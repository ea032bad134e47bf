"""Variables, files, skills, MCP servers and hooks of environments, and the bounds of each."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, select, update

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environment_hooks, environment_variables, warm_pools
from quarterdeck.service.environments import rows
from quarterdeck.service.environments.hooks import save_tested
from quarterdeck.service.formats import now_text
from quarterdeck.service.identity.service import Caller, CallerKind, MemberRole
from quarterdeck.wire.environment_parts import CONTENT_LIMIT, FILES_LIMIT, FILES_MOST
from tests.service.callers import Callers, Client, environment, made, refused

pytestmark = pytest.mark.one_database

GLOBAL = "/v1/environments/global"
STDIO = {"command": "server", "args": ["-v"], "env": {"TOKEN": "t0ken"}}
HTTP = {"url": "https://host/mcp", "headers": {"Authorization": "Bearer t0ken"}}
PARTS: dict[str, dict[str, Any]] = {
    "variables": {"key": "KEY", "value": "text"},
    "files": {"path": "~/a/b", "content": "text"},
    "skills": {"name": "Pdf", "slug": "pdf", "source": "/srv/skills#pdf"},
    "mcps": {"name": "web", "transport": "stdio", "config": STDIO},
}
HOOK_FIELDS = {"id", "organization_id", "environment_id", "version", "content", "is_active"} | {
    "created_at"
}
CHANGES: dict[str, dict[str, Any]] = {
    "variables": {"value": "other"},
    "files": {"content": "other"},
    "mcps": {"config": {"command": "other", "args": [], "env": {}}},
}


def plural(kind: str) -> str:
    return f"environment_{kind}"


async def listed(client: Client, path: str, kind: str) -> list[dict[str, Any]]:
    answer = await client.get(f"{path}/{kind}")
    assert answer.status_code == 200, answer.text
    return answer.json()[plural(kind)]


# All of them


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("scope", ["global", "org", "user"])
async def test_a_part_is_made_listed_and_removed(callers: Callers, kind: str, scope: str) -> None:
    client = callers.owner
    path = GLOBAL if scope == "global" else await environment(client, scope=scope)
    assert await listed(client, path, kind) == []
    one = await made(client, f"{path}/{kind}", **PARTS[kind])
    assert PARTS[kind].items() <= one.items()
    of = (await client.get(path)).json()["environment"]
    assert one["environment_id"] == of["id"]
    assert one["organization_id"] == callers.people.organization
    assert await listed(client, path, kind) == [one]
    answer = await client.delete(f"{path}/{kind}/{one['id']}")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert await listed(client, path, kind) == []
    refused(await client.delete(f"{path}/{kind}/{one['id']}"), 404, "NOT_FOUND")


@pytest.mark.parametrize("kind", CHANGES)
async def test_only_what_is_given_of_a_part_changes(callers: Callers, kind: str) -> None:
    path = await environment(callers.key)
    one = await made(callers.key, f"{path}/{kind}", **PARTS[kind])
    answer = await callers.owner.patch(f"{path}/{kind}/{one['id']}", json=CHANGES[kind])
    assert answer.status_code == 200, answer.text
    (after,) = answer.json().values()
    assert after == {**one, **CHANGES[kind], "updated_at": after["updated_at"]}
    assert await listed(callers.key, path, kind) == [after]
    nothing = await callers.key.patch(f"{path}/{kind}/{one['id']}", json={})
    assert nothing.status_code == 200


@pytest.mark.parametrize("kind", CHANGES)
async def test_null_is_no_value_of_a_part(callers: Callers, kind: str) -> None:
    path = await environment(callers.key)
    one = await made(callers.key, f"{path}/{kind}", **PARTS[kind])
    for field in PARTS[kind]:
        answer = await callers.key.patch(f"{path}/{kind}/{one['id']}", json={field: None})
        refused(answer, 400, "INVALID_REQUEST", field)
    assert await listed(callers.key, path, kind) == [one]


@pytest.mark.parametrize("kind", PARTS)
async def test_a_part_is_reached_through_its_own_environment(callers: Callers, kind: str) -> None:
    path, other = await environment(callers.key), await environment(callers.key, "other")
    one = await made(callers.key, f"{path}/{kind}", **PARTS[kind])
    strange = await environment(callers.stranger)
    for client, wrong in (
        (callers.key, f"{other}/{kind}/{one['id']}"),
        (callers.key, f"{GLOBAL}/{kind}/{one['id']}"),
        (callers.key, f"{path}/{kind}/{uuid4()}"),
        (callers.stranger, f"{path}/{kind}/{one['id']}"),
        (callers.stranger, f"{strange}/{kind}/{one['id']}"),
    ):
        refused(await client.delete(wrong), 404, "NOT_FOUND")
        if kind in CHANGES:
            refused(await client.patch(wrong, json=CHANGES[kind]), 404, "NOT_FOUND")
    refused(await callers.key.delete(f"{path}/{kind}/no-id"), 400, "INVALID_REQUEST", "id")
    assert await listed(callers.key, path, kind) == [one]


@pytest.mark.parametrize("kind", PARTS)
async def test_a_part_needs_its_fields(callers: Callers, kind: str) -> None:
    path = await environment(callers.key)
    for field in PARTS[kind]:
        body = {name: value for name, value in PARTS[kind].items() if name != field}
        refused(await callers.key.post(f"{path}/{kind}", json=body), 400, "INVALID_REQUEST", field)
    assert await listed(callers.key, path, kind) == []


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        ("variables", {}),
        ("skills", {"source": "/other"}),
        ("skills", {"slug": "other"}),
        ("mcps", {}),
    ],
)
async def test_the_same_twice_is_a_conflict(
    callers: Callers, kind: str, again: dict[str, Any]
) -> None:
    path, other = await environment(callers.key), await environment(callers.key, "other")
    bodies = [{**PARTS[kind], **again}] * 3
    await made(callers.key, f"{path}/{kind}", **PARTS[kind])
    answers = await asyncio.gather(
        *(callers.key.post(f"{path}/{kind}", json=body) for body in bodies)
    )
    for answer in answers:
        refused(answer, 409, "CONFLICT")
    await made(callers.key, f"{other}/{kind}", **PARTS[kind])
    assert len(await listed(callers.key, path, kind)) == 1


# Variables


async def test_a_renamed_variable_must_not_meet_another(callers: Callers) -> None:
    path = await environment(callers.key)
    one = await made(callers.key, f"{path}/variables", key="ONE", value="1")
    await made(callers.key, f"{path}/variables", key="TWO", value="2")
    address = f"{path}/variables/{one['id']}"
    refused(await callers.key.patch(address, json={"key": "TWO"}), 409, "CONFLICT", "key: TWO")
    assert (await callers.key.patch(address, json={"key": "ONE"})).status_code == 200
    assert (await callers.key.patch(address, json={"key": "SIX"})).status_code == 200
    assert [one["key"] for one in await listed(callers.key, path, "variables")] == ["SIX", "TWO"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("key", "status"),
    [
        ("", 400),
        ("A", 201),
        ("_", 201),
        ("a1_B", 201),
        ("A" * 255, 201),
        ("A" * 256, 400),
        ("1A", 400),
        ("A-B", 400),
        ("A B", 400),
        ("A\n", 400),
        ("Ä", 400),
        (7, 400),
        ("HOME", 400),
        ("USER", 400),
        ("LOGNAME", 400),
        ("QUARTERDECK_WORKSPACE", 400),
        ("QUARTERDECK_SANDBOX", 400),
        ("home", 201),
        ("HOME_2", 201),
    ],
)
async def test_keys_of_variables(callers: Callers, key: Any, status: int) -> None:
    path = await environment(callers.key)
    answer = await callers.key.post(f"{path}/variables", json={"key": key, "value": "x"})
    assert answer.status_code == status
    one = await made(callers.key, f"{path}/variables", key="OTHER", value="x")
    if status == 400:
        refused(answer, 400, "INVALID_REQUEST", "key")
        patched = await callers.key.patch(f"{path}/variables/{one['id']}", json={"key": key})
        refused(patched, 400, "INVALID_REQUEST", "key")


async def test_a_variable_that_the_sandbox_sets_says_so(
    callers: Callers, context: ServiceContext
) -> None:
    path = await environment(callers.key)
    answer = await callers.key.post(f"{path}/variables", json={"key": "HOME", "value": "/x"})
    refused(answer, 400, "INVALID_REQUEST", "key: HOME")
    assert "sandbox sets HOME itself" in answer.json()["error"]
    # One that was stored while that was allowed can be given another name, or be removed.
    one = await made(callers.key, f"{path}/variables", key="OTHER", value="x")
    stored = update(environment_variables).where(environment_variables.c.id == one["id"])
    await context.database.write(lambda c: c.execute(stored.values(key="USER")))
    own = f"{path}/variables/{one['id']}"
    refused(await callers.key.patch(own, json={"value": "y"}), 400, "INVALID_REQUEST", "key: USER")
    assert (await callers.key.patch(own, json={"key": "MINE"})).status_code == 200


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("", 201),
        ("x" * 65_535, 201),
        ("x" * 65_536, 201),
        ("x" * 65_537, 400),
        ("é" * 32_768, 201),
        ("é" * 32_768 + "x", 400),
        ("two\nlines", 201),
        ("nul\0", 400),
        (7, 400),
    ],
)
async def test_values_of_variables(callers: Callers, value: Any, status: int) -> None:
    path = await environment(callers.key)
    answer = await callers.key.post(f"{path}/variables", json={"key": "A", "value": value})
    assert answer.status_code == status
    if status == 201:
        assert [one["value"] for one in await listed(callers.key, path, "variables")] == [value]
        return
    refused(answer, 400, "INVALID_REQUEST", "value")
    assert str(value)[:100] not in answer.text
    one = await made(callers.key, f"{path}/variables", key="A", value="x")
    patched = await callers.key.patch(f"{path}/variables/{one['id']}", json={"value": value})
    refused(patched, 400, "INVALID_REQUEST", "value")


async def test_the_switch_of_a_variable_is_a_boolean(callers: Callers) -> None:
    path = await environment(callers.key)
    one = await made(callers.key, f"{path}/variables", key="A", value="x")
    assert one["personal_override_allowed"] is False
    field = "personal_override_allowed"
    for wrong in ("true", 1):
        bad = await callers.key.patch(f"{path}/variables/{one['id']}", json={field: wrong})
        refused(bad, 400, "INVALID_REQUEST", field)
    good = await callers.key.patch(f"{path}/variables/{one['id']}", json={field: True})
    assert good.json()["environment_variable"][field] is True


async def test_who_may_override_an_inherited_variable(callers: Callers) -> None:
    source = await environment(callers.key)
    of = source.rsplit("/", 1)[-1]
    backed = await environment(callers.owner, "backed", scope="user", source_environment_id=of)
    plain = await environment(callers.owner, "plain", scope="user")
    for path in (GLOBAL, source):
        part = f"{path}/variables"
        end = path[-4:].upper().replace("-", "_")
        await made(callers.key, part, key=f"FREE{end}", value="x", personal_override_allowed=True)
        await made(callers.key, part, key=f"FIXED{end}", value="x")
    keys = [
        one["key"]
        for path in (GLOBAL, source)
        for one in await listed(callers.key, path, "variables")
    ]
    for key in keys:
        answer = await callers.owner.post(f"{backed}/variables", json={"key": key, "value": "own"})
        if key.startswith("FIXED"):
            refused(answer, 403, "FORBIDDEN", f"key: {key}")
        else:
            assert answer.status_code == 201
        await made(callers.owner, f"{plain}/variables", key=key, value="own")
    mine = await made(callers.owner, f"{backed}/variables", key="MINE", value="x")
    address = f"{backed}/variables/{mine['id']}"
    fixed = next(key for key in keys if key.startswith("FIXED"))
    refused(await callers.owner.patch(address, json={"key": fixed}), 403, "FORBIDDEN", fixed)
    assert (await callers.owner.patch(address, json={"value": "y"})).status_code == 200


async def test_the_uppermost_inherited_variable_decides(callers: Callers) -> None:
    source = await environment(callers.key)
    of = source.rsplit("/", 1)[-1]
    mine = await environment(callers.owner, "mine", scope="user", source_environment_id=of)
    await made(callers.key, f"{GLOBAL}/variables", key="A", value="global")
    above = await made(
        callers.key, f"{source}/variables", key="A", value="s", personal_override_allowed=True
    )
    own = await made(callers.owner, f"{mine}/variables", key="A", value="own")
    assert own["suppressed"] is False
    assert (await listed(callers.owner, mine, "variables"))[0]["suppressed"] is False
    closed = {"personal_override_allowed": False}
    await callers.key.patch(f"{source}/variables/{above['id']}", json=closed)
    (shown,) = await listed(callers.owner, mine, "variables")
    assert shown == {**own, "suppressed": True}
    for path in (source, GLOBAL):
        assert not any(one["suppressed"] for one in await listed(callers.key, path, "variables"))
    address = f"{mine}/variables/{own['id']}"
    refused(await callers.owner.patch(address, json={"value": "new"}), 403, "FORBIDDEN")
    assert (await callers.owner.delete(address)).status_code == 200


async def test_a_value_that_cannot_be_opened_is_the_services_failure(
    callers: Callers, context: ServiceContext
) -> None:
    path = await environment(callers.key)
    one = await made(callers.key, f"{path}/variables", key="A", value="s3cret")
    moved = context.vault.seal(str(uuid4()), "other")
    spoil = update(environment_variables).values(value_sealed=moved)
    await context.database.write(lambda c: c.execute(spoil) and None)
    address = f"{path}/variables/{one['id']}"
    for answer in (
        await callers.key.get(f"{path}/variables"),
        await callers.key.patch(address, json={"key": "B"}),
    ):
        refused(answer, 500, "INTERNAL_ERROR")
        assert "Set it again" in answer.json()["error"]
    assert (await callers.key.patch(address, json={"value": "new"})).status_code == 200
    assert [one["key"] for one in await listed(callers.key, path, "variables")] == ["A"]


# Files


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("~/a", 201),
        ("~/.config/tool/settings.toml", 201),
        ("~/a b/é", 201),
        ("~/..a", 201),
        ("~/" + "d/" * 510 + "ab", 201),
        ("~/" + "d/" * 510 + "abc", 400),
        ("~/" + "é" * 127 + "x", 201),
        ("~/" + "é" * 128, 400),
        ("~/" + "d" * 256 + "/a", 400),
        ("~/" + ("é" * 101 + "/") * 5 + "abcdefg", 201),
        ("~/" + ("é" * 101 + "/") * 5 + "abcdefgh", 400),
        ("", 400),
        ("~", 400),
        ("~/", 400),
        ("a", 400),
        ("/etc/passwd", 400),
        ("~root/a", 400),
        ("~/..", 400),
        ("~/../a", 400),
        ("~/a/../../b", 400),
        ("~/./a", 400),
        ("~//a", 400),
        ("~/a/", 400),
        ("~/a\0", 400),
        ("~/a\nb", 400),
        (7, 400),
    ],
)
async def test_paths_of_files(callers: Callers, path: Any, status: int) -> None:
    at = await environment(callers.key)
    answer = await callers.key.post(f"{at}/files", json={"path": path, "content": "x"})
    assert answer.status_code == status, answer.text
    if status == 201:
        assert answer.json()["environment_file"]["path"] == path
        return
    refused(answer, 400, "INVALID_REQUEST", "path")
    one = await made(callers.key, f"{at}/files", path="~/ok", content="x")
    patched = await callers.key.patch(f"{at}/files/{one['id']}", json={"path": path})
    refused(patched, 400, "INVALID_REQUEST", "path")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("", 201),
        ("x" * 65_535, 201),
        ("x" * 65_536, 201),
        ("x" * 65_537, 400),
        ("é" * 32_768, 201),
        ("é" * 32_768 + "x", 400),
        ("nul\0", 400),
        (7, 400),
    ],
)
async def test_contents_of_files(callers: Callers, content: Any, status: int) -> None:
    at = await environment(callers.key)
    answer = await callers.key.post(f"{at}/files", json={"path": "~/a", "content": content})
    assert answer.status_code == status
    if status == 201:
        assert [one["content"] for one in await listed(callers.key, at, "files")] == [content]
        return
    refused(answer, 400, "INVALID_REQUEST", "content")
    one = await made(callers.key, f"{at}/files", path="~/a", content="x")
    patched = await callers.key.patch(f"{at}/files/{one['id']}", json={"content": content})
    refused(patched, 400, "INVALID_REQUEST", "content")


@pytest.mark.parametrize(
    ("name", "status"), [("", 400), ("n", 201), ("n" * 255, 201), ("n" * 256, 400), ("a\nb", 400)]
)
async def test_names_of_files(callers: Callers, name: str, status: int) -> None:
    at = await environment(callers.key)
    body = {"path": "~/a/settings", "content": "x"}
    answer = await callers.key.post(f"{at}/files", json={**body, "name": name})
    assert answer.status_code == status
    plain = await made(callers.key, f"{at}/files", path="~/b/plain", content="x")
    assert plain["name"] == "plain"


async def test_two_files_have_two_paths(callers: Callers) -> None:
    at = await environment(callers.key)
    one = await made(callers.key, f"{at}/files", path="~/a", content="1")
    two = await made(callers.key, f"{at}/files", path="~/b", content="2")
    again = await callers.key.post(f"{at}/files", json={"path": "~/a", "content": "3"})
    refused(again, 400, "INVALID_REQUEST", "path: ~/a")
    moved = await callers.key.patch(f"{at}/files/{two['id']}", json={"path": "~/a"})
    refused(moved, 400, "INVALID_REQUEST", "path: ~/a")
    same = await callers.key.patch(f"{at}/files/{one['id']}", json={"path": "~/a"})
    assert same.status_code == 200


async def test_the_files_of_an_environment_have_a_total(callers: Callers) -> None:
    at = await environment(callers.key)
    full = "é" * (CONTENT_LIMIT // 2)
    files = [
        await made(callers.key, f"{at}/files", path=f"~/{n}", content=full)
        for n in range(FILES_LIMIT // CONTENT_LIMIT)
    ]
    path = f"{at}/files/{files[0]['id']}"
    more = {"path": "~/more", "content": "x"}
    refused(await callers.key.post(f"{at}/files", json=more), 400, "INVALID_REQUEST", "content")
    for change in ({"path": "~/moved"}, {"content": full[1:]}):
        assert (await callers.key.patch(path, json=change)).status_code == 200
    await made(callers.key, f"{at}/files", **more)
    refused(
        await callers.key.patch(path, json={"content": full}), 400, "INVALID_REQUEST", "content"
    )
    await made(callers.key, f"{await environment(callers.key, name='other')}/files", **more)


async def test_an_environment_has_so_many_files(callers: Callers) -> None:
    at = await environment(callers.key)
    files = [
        await made(callers.key, f"{at}/files", path=f"~/{n}", content="") for n in range(FILES_MOST)
    ]
    more = {"path": "~/more", "content": ""}
    refused(await callers.key.post(f"{at}/files", json=more), 400, "INVALID_REQUEST", "path")
    path = f"{at}/files/{files[0]['id']}"
    assert (await callers.key.patch(path, json={"content": "x"})).status_code == 200
    assert (await callers.key.delete(path)).is_success
    await made(callers.key, f"{at}/files", **more)


# Skills


@pytest.mark.parametrize(
    ("slug", "status"),
    [
        ("a", 201),
        ("a" * 100, 201),
        ("a.b_c-D1", 201),
        ("", 400),
        ("a" * 101, 400),
        ("..", 400),
        ("a/b", 400),
        ("~a", 400),
        ("-a", 400),
    ],
)
async def test_slugs_of_skills(callers: Callers, slug: str, status: int) -> None:
    at = await environment(callers.key)
    body = {**PARTS["skills"], "slug": slug}
    assert (await callers.key.post(f"{at}/skills", json=body)).status_code == status


@pytest.mark.parametrize(
    ("field", "most"),
    [("name", 200), ("source", 1000)],
)
async def test_lengths_of_skills(callers: Callers, field: str, most: int) -> None:
    at = await environment(callers.key)
    for length, status in ((0, 400), (most + 1, 400), (most, 201)):
        body = {**PARTS["skills"], field: "x" * length}
        assert (await callers.key.post(f"{at}/skills", json=body)).status_code == status


# MCP servers


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("a", 201),
        ("9", 201),
        ("a_b-C", 201),
        ("a" * 64, 201),
        ("a" * 65, 400),
        ("", 400),
        ("-a", 400),
        ("_a", 400),
        ("a b", 400),
        ("a.b", 400),
    ],
)
async def test_names_of_mcp_servers(callers: Callers, name: str, status: int) -> None:
    at = await environment(callers.key)
    body = {**PARTS["mcps"], "name": name}
    assert (await callers.key.post(f"{at}/mcps", json=body)).status_code == status


@pytest.mark.long
@pytest.mark.parametrize(
    ("transport", "config", "status"),
    [
        ("stdio", STDIO, 201),
        ("stdio", {"command": "x"}, 201),
        ("stdio", {}, 400),
        ("stdio", HTTP, 400),
        ("stdio", {"command": ""}, 400),
        ("stdio", {"command": "nul\0"}, 400),
        ("stdio", {"command": "x", "args": "x"}, 400),
        ("stdio", {"command": "x", "args": [1]}, 400),
        ("stdio", {"command": "x", "args": ["nul\0"]}, 400),
        ("stdio", {"command": "x", "env": {"A": 1}}, 400),
        ("stdio", {"command": "x", "env": {"A=B": "x"}}, 400),
        ("stdio", {"command": "x", "env": {"": "x"}}, 400),
        ("http", HTTP, 201),
        ("sse", {"url": "http://localhost:1/"}, 201),
        ("http", {"url": "ftp://host"}, 400),
        ("http", {"url": "https://a b"}, 400),
        ("http", {"url": "https://"}, 400),
        ("http", {**HTTP, "headers": {"A": "two\nlines"}}, 400),
        ("http", {**HTTP, "headers": {"A B": "x"}}, 400),
        ("http", STDIO, 400),
        ("http", [], 400),
        ("tcp", STDIO, 400),
        (None, STDIO, 400),
    ],
)
async def test_configurations_of_mcp_servers(
    callers: Callers, transport: Any, config: Any, status: int
) -> None:
    at = await environment(callers.key)
    body = {"name": "m", "transport": transport, "config": config}
    answer = await callers.key.post(f"{at}/mcps", json=body)
    assert answer.status_code == status, answer.text
    assert "t0ken" not in answer.text or status == 201
    if status == 400:
        known = transport in ("stdio", "http", "sse")
        refused(answer, 400, "INVALID_REQUEST", "config" if known else "transport")


async def test_a_change_of_an_mcp_server_must_fit_together(callers: Callers) -> None:
    at = await environment(callers.key)
    one = await made(callers.key, f"{at}/mcps", **PARTS["mcps"])
    address = f"{at}/mcps/{one['id']}"
    for body in ({"transport": "http"}, {"config": HTTP}, {"config": {}}):
        answer = await callers.key.patch(address, json=body)
        refused(answer, 400, "INVALID_REQUEST", "config")
        assert "t0ken" not in answer.text
    assert await listed(callers.key, at, "mcps") == [one]
    answer = await callers.key.patch(address, json={"transport": "sse", "config": HTTP})
    assert answer.json()["environment_mcp"]["config"] == HTTP
    await made(callers.key, f"{at}/mcps", **{**PARTS["mcps"], "name": "two"})
    refused(await callers.key.patch(address, json={"name": "two"}), 409, "CONFLICT", "name: two")


async def test_unknown_fields_of_a_configuration_are_left_out(callers: Callers) -> None:
    at = await environment(callers.key)
    body = {**PARTS["mcps"], "config": {**STDIO, "extra": {"deep": 1}}}
    assert (await made(callers.key, f"{at}/mcps", **body))["config"] == STDIO


# Hooks


@pytest.mark.parametrize("kind", ["warm", "start"])
async def test_versions_of_a_hook_only_grow(
    callers: Callers, context: ServiceContext, kind: str
) -> None:
    path = await environment(callers.key)
    key = f"{kind}_hook"
    assert (await callers.key.get(f"{path}/{kind}-hooks")).json()[key] is None
    for version in (1, 2, 3):
        body = {"content": f"echo {version}"}
        answer = await callers.owner.post(f"{path}/{kind}-hooks/save", json=body)
        assert answer.status_code == 200, answer.text
        hook = answer.json()[key]
        assert (hook["version"], hook["content"]) == (version, f"echo {version}")
        assert hook["is_active"] is True
        assert set(hook) == HOOK_FIELDS
        assert hook["environment_id"] == path.rsplit("/", 1)[-1]
        assert (await callers.key.get(f"{path}/{kind}-hooks")).json()[key] == hook
    kept = select(environment_hooks.c.version).where(environment_hooks.c.is_active)
    assert await context.database.read(lambda c: list(c.execute(kept).scalars())) == [3]


async def test_the_newest_versions_of_a_hook_are_kept(
    callers: Callers, context: ServiceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_HOOKS", 2)
    path = await environment(callers.key)
    of = path.rsplit("/", 1)[-1]
    await callers.key.post(f"{path}/start-hooks/save", json={"content": "true"})
    await callers.key.post(f"{path}/warm-hooks/save", json={"content": "echo 1"})
    kind = CallerKind.ORGANIZATION_KEY
    caller = Caller(callers.people.organization, None, kind, role=MemberRole.ADMIN)
    for version in (2, 3, 4):
        await save_tested(context, caller, of, f"echo {version}", passed=False)
    columns = (environment_hooks.c.kind, environment_hooks.c.version)
    statement = select(*columns).order_by(*columns)
    kept = await context.database.read(lambda c: [tuple(row) for row in c.execute(statement)])
    assert kept == [("start", 1), ("warm", 1), ("warm", 3), ("warm", 4)]
    assert (await callers.key.get(f"{path}/warm-hooks")).json()["warm_hook"]["version"] == 1


@pytest.mark.parametrize("blank", ["", " \n\t"])
async def test_a_blank_start_hook_takes_the_active_one_away(callers: Callers, blank: str) -> None:
    path = await environment(callers.key)
    save = f"{path}/start-hooks/save"
    await callers.key.post(save, json={"content": "true"})
    cleared = await callers.key.post(save, json={"content": blank})
    assert (cleared.status_code, cleared.json()) == (200, {"start_hook": None})
    assert (await callers.key.get(f"{path}/start-hooks")).json() == {"start_hook": None}
    again = await callers.key.post(save, json={"content": "false"})
    assert again.json()["start_hook"]["version"] == 2


@pytest.mark.parametrize("kind", ["warm", "start"])
async def test_hooks_are_reached_like_their_environment(callers: Callers, kind: str) -> None:
    path = await environment(callers.key)
    mine = await environment(callers.owner, "mine", scope="user")
    for client, wrong in (
        (callers.stranger, path),
        (callers.member, mine),
        (callers.key, f"/v1/environments/{uuid4()}"),
    ):
        refused(await client.get(f"{wrong}/{kind}-hooks"), 404, "NOT_FOUND")
        answer = await client.post(f"{wrong}/{kind}-hooks/save", json={"content": "true"})
        refused(answer, 404, "NOT_FOUND")
    for body in ({}, {"content": 7}, {"content": "nul\0"}):
        answer = await callers.key.post(f"{path}/{kind}-hooks/save", json=body)
        refused(answer, 400, "INVALID_REQUEST", "content")
    answer = await callers.key.post(f"{GLOBAL}/{kind}-hooks/save", json={"content": "true"})
    assert answer.status_code == 200


@pytest.mark.long
async def test_a_saved_warm_hook_makes_the_pools_above_stale(
    callers: Callers, context: ServiceContext
) -> None:
    source = await environment(callers.key, "source")
    of = source.rsplit("/", 1)[-1]
    backed = await environment(callers.owner, "backed", scope="user", source_environment_id=of)
    other = await environment(callers.key, "other")
    strange = await environment(callers.stranger, "strange")
    for path in (source, backed, other, strange):
        of_stranger = path == strange
        people = callers.people
        pool = insert(warm_pools).values(
            id=str(uuid4()),
            organization_id=people.other if of_stranger else people.organization,
            environment_id=path.rsplit("/", 1)[-1],
            enabled=True,
            target_size=1,
            generation=1,
            failures=0,
            updated_at=now_text(),
        )
        await context.database.write(lambda c, pool=pool: c.execute(pool) and None)

    async def generations() -> list[int]:
        found: list[int] = []
        for path, client in (
            (source, callers.owner),
            (backed, callers.owner),
            (other, callers.owner),
            (strange, callers.stranger),
        ):
            pool = (await client.get(f"{path}/warm-hooks")).json()["warm_pool"]
            found.append(pool["generation"])
        return found

    assert await generations() == [1, 1, 1, 1]
    await callers.key.post(f"{source}/warm-hooks/save", json={"content": "true"})
    assert await generations() == [2, 2, 1, 1]
    await callers.key.post(f"{GLOBAL}/warm-hooks/save", json={"content": "true"})
    assert await generations() == [3, 3, 2, 1]
    await callers.key.post(f"{source}/start-hooks/save", json={"content": "true"})
    assert await generations() == [4, 4, 2, 1]
    for kind in CHANGES:
        before = await generations()
        one = await made(callers.key, f"{other}/{kind}", **PARTS[kind])
        await callers.key.patch(f"{other}/{kind}/{one['id']}", json=CHANGES[kind])
        await callers.key.delete(f"{other}/{kind}/{one['id']}")
        assert await generations() == [*before[:2], before[2] + 3, 1]
    before = await generations()
    await callers.key.patch(other, json={"description": "d"})
    await callers.key.delete(f"{other}/files/{uuid4()}")
    assert await generations() == before
    await callers.key.patch(source, json={"system_prompt": "p"})
    assert await generations() == [before[0] + 1, before[1] + 1, *before[2:]]


# Secrets


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
async def test_values_are_sealed_on_the_disk(callers: Callers, context: ServiceContext) -> None:
    path = await environment(callers.key)
    secrets = [f"s3cret-{uuid4()}" for _ in range(3)]
    one = await made(callers.key, f"{path}/variables", key="SHOWN_KEY", value=secrets[0])
    await callers.key.patch(f"{path}/variables/{one['id']}", json={"value": secrets[1]})
    config = {"command": "x", "env": {"A": secrets[2]}}
    await made(callers.key, f"{path}/mcps", name="m", transport="stdio", config=config)
    seen = [one["value"] for one in await listed(callers.key, path, "variables")]
    assert seen == [secrets[1]]
    url = context.database.url
    files = list(Path(url.split("///", 1)[-1]).parent.glob("*.sqlite3*"))
    stored = b"".join(file.read_bytes() for file in files)
    assert b"SHOWN_KEY" in stored
    for secret in secrets:
        assert secret.encode() not in stored
