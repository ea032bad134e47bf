"""Each operation on environments, their parts, keys and sets calls its route, with its body."""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from quarterdeck.client import Client, HttpConnection
from quarterdeck.wire.environment_parts import (
    ChangeFile,
    ChangeMcp,
    ChangeVariable,
    CreateFile,
    CreateMcp,
    CreateSkill,
    CreateVariable,
    McpTransport,
)
from quarterdeck.wire.environments import ChangeEnvironment
from quarterdeck.wire.repositories import ChangeRepositorySet, CreateRepositorySet

E = UUID("00000000-0000-4000-8000-00000000000a")
P = UUID("00000000-0000-4000-8000-00000000000b")
NOW = "2026-11-21T10:00:00.000Z"
PART = {
    "id": str(P),
    "organization_id": str(E),
    "environment_id": str(E),
    "created_at": NOW,
    "updated_at": NOW,
}
ENVIRONMENT = {**PART, "name": "e"}
VARIABLE = {**PART, "key": "A", "value": "x", "personal_override_allowed": False}
FILE = {**PART, "name": "a", "path": "~/a", "content": "x"}
SKILL = {**PART, "name": "S", "slug": "s", "source": "/s"}
CONFIG = {"command": "x", "args": [], "env": {}}
MCP = {**PART, "name": "m", "transport": "stdio", "config": CONFIG}
HOOK = {**PART, "version": 1, "content": "true", "is_active": True}
POOL = {**PART, "enabled": True, "target_size": 2, "generation": 1}
SET = {"id": str(P), "name": "all", "repositories": [str(P)], "created_at": NOW}
SUCCESS = {"success": True}
AT = f"/v1/environments/{E}"
ONE = f"/{P}"

Case = tuple[Callable[[Client], Awaitable[Any]], str, Any, Any]
CASES: list[Case] = [
    (
        lambda c: c.environments.change(E, ChangeEnvironment(name="n", description=None)),
        f"PATCH {AT}",
        {"name": "n", "description": None},
        {"environment": ENVIRONMENT},
    ),
    (lambda c: c.environments.delete(E), f"DELETE {AT}", None, SUCCESS),
    (
        lambda c: c.variables.list("global"),
        "GET /v1/environments/global/variables",
        None,
        {"environment_variables": [VARIABLE]},
    ),
    (
        lambda c: c.variables.add(E, CreateVariable(key="A", value="x")),
        f"POST {AT}/variables",
        {"key": "A", "value": "x", "personal_override_allowed": False},
        {"environment_variable": VARIABLE},
    ),
    (
        lambda c: c.variables.change(E, P, ChangeVariable(value="")),
        f"PATCH {AT}/variables{ONE}",
        {"value": ""},
        {"environment_variable": VARIABLE},
    ),
    (lambda c: c.variables.delete(E, P), f"DELETE {AT}/variables{ONE}", None, SUCCESS),
    (
        lambda c: c.environment_files.list(E),
        f"GET {AT}/files",
        None,
        {"environment_files": [FILE]},
    ),
    (
        lambda c: c.environment_files.add(E, CreateFile(path="~/a", content="x")),
        f"POST {AT}/files",
        {"path": "~/a", "content": "x"},
        {"environment_file": FILE},
    ),
    (
        lambda c: c.environment_files.change(E, P, ChangeFile(path="~/b")),
        f"PATCH {AT}/files{ONE}",
        {"path": "~/b"},
        {"environment_file": FILE},
    ),
    (lambda c: c.environment_files.delete(E, P), f"DELETE {AT}/files{ONE}", None, SUCCESS),
    (lambda c: c.skills.list(E), f"GET {AT}/skills", None, {"environment_skills": [SKILL]}),
    (
        lambda c: c.skills.add(E, CreateSkill(name="S", slug="s", source="/s")),
        f"POST {AT}/skills",
        {"name": "S", "slug": "s", "source": "/s"},
        {"environment_skill": SKILL},
    ),
    (lambda c: c.skills.delete(E, P), f"DELETE {AT}/skills{ONE}", None, SUCCESS),
    (
        lambda c: c.skills.search("a b"),
        "GET /v1/environment-skills/search?q=a+b",
        None,
        {"skills": [{"name": "S", "slug": "s", "source": "/s", "installs": 7}]},
    ),
    (lambda c: c.mcps.list(E), f"GET {AT}/mcps", None, {"environment_mcps": [MCP]}),
    (
        lambda c: c.mcps.add(E, CreateMcp(name="m", transport=McpTransport.STDIO, config=CONFIG)),
        f"POST {AT}/mcps",
        {"name": "m", "transport": "stdio", "config": CONFIG},
        {"environment_mcp": MCP},
    ),
    (
        lambda c: c.mcps.change(E, P, ChangeMcp(config=CONFIG)),
        f"PATCH {AT}/mcps{ONE}",
        {"config": CONFIG},
        {"environment_mcp": MCP},
    ),
    (lambda c: c.mcps.delete(E, P), f"DELETE {AT}/mcps{ONE}", None, SUCCESS),
    (
        lambda c: c.environment_hooks.warm(E),
        f"GET {AT}/warm-hooks",
        None,
        {"warm_hook": None, "warm_pool": POOL},
    ),
    (
        lambda c: c.environment_hooks.save_warm(E, "true"),
        f"POST {AT}/warm-hooks/save",
        {"content": "true"},
        {"warm_hook": HOOK},
    ),
    (
        lambda c: c.environment_hooks.start(E),
        f"GET {AT}/start-hooks",
        None,
        {"start_hook": HOOK},
    ),
    (
        lambda c: c.environment_hooks.save_start(E, ""),
        f"POST {AT}/start-hooks/save",
        {"content": ""},
        {"start_hook": None},
    ),
    (
        lambda c: c.credentials.get("provider-a"),
        "GET /v1/provider-a/user/credentials",
        None,
        {"hasCredentials": False},
    ),
    (
        lambda c: c.credentials.set("provider-g", "k", shared=True),
        "POST /v1/provider-g/credentials",
        {"api_key": "k"},
        {"success": True, "credentialId": str(P)},
    ),
    (
        lambda c: c.credentials.delete("provider-g"),
        "DELETE /v1/provider-g/user/credentials",
        None,
        SUCCESS,
    ),
    (
        lambda c: c.repositories.disconnect(P),
        f"DELETE /v1/replica/repositories{ONE}",
        None,
        SUCCESS,
    ),
    (
        lambda c: c.repository_sets.list(),
        "GET /v1/replica/repository-sets",
        None,
        {"repository_sets": [SET]},
    ),
    (
        lambda c: c.repository_sets.create(CreateRepositorySet(name="all", repositories=[P])),
        "POST /v1/replica/repository-sets",
        {"name": "all", "repositories": [str(P)]},
        {"repository_set": SET},
    ),
    (
        lambda c: c.repository_sets.get(P),
        f"GET /v1/replica/repository-sets{ONE}",
        None,
        {"repository_set": SET},
    ),
    (
        lambda c: c.repository_sets.change(P, ChangeRepositorySet(name="every")),
        f"PATCH /v1/replica/repository-sets{ONE}",
        {"name": "every"},
        {"repository_set": SET},
    ),
    (
        lambda c: c.repository_sets.delete(P),
        f"DELETE /v1/replica/repository-sets{ONE}",
        None,
        SUCCESS,
    ),
]


@pytest.mark.parametrize(("call", "line", "body", "answer"), CASES, ids=[c[1] for c in CASES])
async def test_each_operation_calls_its_route(
    call: Callable[[Client], Awaitable[Any]], line: str, body: Any, answer: Any
) -> None:
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=answer)

    connection = HttpConnection("http://test", "k", transport=httpx.MockTransport(handle))
    async with Client(connection) as client:
        await call(client)
    (request,) = asked
    assert f"{request.method} {request.url.raw_path.decode()}" == line
    assert (json.loads(request.content) if request.content else None) == body


async def test_secrets_are_not_in_what_is_printed_of_a_record() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        records = {
            "variables": {"environment_variables": [{**VARIABLE, "value": "s3cret"}]},
            "mcps": {"environment_mcps": [{**MCP, "config": {"command": "s3cret"}}]},
        }
        return httpx.Response(200, json=records[request.url.path.rsplit("/", 1)[-1]])

    connection = HttpConnection("http://test", "k", transport=httpx.MockTransport(handle))
    async with Client(connection) as client:
        shown = repr((await client.variables.list(E), await client.mcps.list(E)))
    assert "s3cret" not in shown
    assert "s3cret" not in repr(CreateVariable(key="A", value="s3cret"))
    assert "s3cret" not in repr(ChangeVariable(value="s3cret"))
