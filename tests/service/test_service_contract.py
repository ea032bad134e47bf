"""What holds for every route: keys, versions, errors, limits, both path families."""

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import Field
from sqlalchemy import text

from quarterdeck.local.home import Home
from quarterdeck.service.app import ROUTES
from quarterdeck.service.context import ServiceContext, Workspace
from quarterdeck.service.db.database import Database
from quarterdeck.service.errors import (
    DatabaseFullError,
    DatabaseLockedError,
    DatabaseReadOnlyError,
    StorageError,
)
from quarterdeck.service.first_start import ensure_installation
from quarterdeck.service.identity.authentication import Keys
from quarterdeck.service.middleware import BODY_LIMIT
from quarterdeck.service.routing import both_families, replica_router
from quarterdeck.wire import base as wire
from quarterdeck.wire.errors import ErrorObject

pytestmark = pytest.mark.one_database

New = Callable[..., Awaitable[str]]


class Body(wire.Body):
    text: str
    count: Annotated[int, Field(ge=1, le=5)] = 1


@pytest.fixture
def app(app: FastAPI) -> FastAPI:
    """With routes that fail on purpose, and one that any body can be sent to."""
    router, replica = APIRouter(), replica_router("test")

    @router.post("/v1/test/body")
    async def take(body: Body) -> Body:
        return body

    @router.get("/v1/test/crash")
    async def crash() -> None:
        raise RuntimeError("the secret of the crash")

    @router.get("/v1/test/full")
    async def full() -> None:
        raise DatabaseFullError("The disk is full.")

    @router.get("/v1/test/held")
    async def held() -> None:
        raise DatabaseLockedError("The database is held.", "at /the/secret/path")

    @router.get("/v1/test/standby")
    async def standby() -> None:
        raise DatabaseReadOnlyError("The database can only be read.", "at /the/secret/path")

    @router.get("/v1/test/broken")
    async def broken() -> None:
        raise StorageError("The database failed.", "at /the/secret/path")

    @replica.get("/test/{item_id}")
    async def read(workspace: Workspace, item_id: UUID) -> dict[str, str]:
        return {"id": workspace.id}

    app.include_router(router)
    app.include_router(both_families(replica))
    return app


def failed(response: httpx.Response, status: int, code: str) -> ErrorObject:
    assert response.status_code == status, response.text
    error = ErrorObject.model_validate(response.json())
    assert error.code == code
    assert error.error.endswith(".")
    return error


async def test_health_needs_no_key(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/health", headers={"Authorization": ""})
    assert response.status_code == 200
    assert response.json()["status"] == "ok"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer sk_wrong", "Basic abc", "sk_wrong", "Bearer \u00e9"]
)
async def test_without_a_valid_key_nothing_is_told(client: httpx.AsyncClient, header: str) -> None:
    headers = {"Authorization": header.encode()}
    asked = [
        client.get("/v1/environments", headers=headers),
        client.get(f"/v1/replica/{uuid4()}/events", headers=headers),
        client.get("/v1/environments/no-uuid", headers=headers),
        client.put("/v1/environments", headers=headers),
        client.post("/v1/environments", headers=headers, content=b"{no json"),
        client.get("/v1/agents", headers=headers | {"X-Service-Api-Version": "1"}),
    ]
    for request in asked:
        response = await request
        failed(response, 401, "UNAUTHORIZED")
        assert response.headers["www-authenticate"] == "Bearer"
    failed(await client.get("/v1/nothing", headers=headers), 404, "NOT_FOUND")


async def test_the_scheme_is_read_in_any_case(client: httpx.AsyncClient, home: Home) -> None:
    headers = {"Authorization": f"bearer  {home.key.read_text().strip()}"}
    assert (await client.get("/v1/agents", headers=headers)).status_code == 200


async def test_a_key_is_looked_up_again_after_a_while(context: ServiceContext, home: Home) -> None:
    now = [0.0]
    keys = Keys(context.database, lambda: now[0])
    key = home.key.read_text().strip()
    assert await keys.caller_of(key) is not None
    await context.database.write(lambda c: c.execute(text("DELETE FROM api_keys")))
    assert await keys.caller_of(key) is not None
    now[0] = 5.1
    assert await keys.caller_of(key) is None


async def test_a_known_version_only(client: httpx.AsyncClient) -> None:
    known = await client.get("/v1/agents", headers={"X-Service-Api-Version": "2026-10-07"})
    assert known.status_code == 200
    other = await client.get("/v1/agents", headers={"X-Service-Api-Version": "2026-10-08"})
    assert "X-Service-Api-Version" in (failed(other, 400, "INVALID_REQUEST").details or "")


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"{no json", "body"),
        (b"", "body"),
        (b"[]", "body"),
        (b"\xff\xfe{}", "body"),
        (b"{}", "text"),
        (b'{"text": 5}', "text"),
        (b'{"text": "a", "count": 0}', "count"),
        (b'{"text": "a", "count": 6}', "count"),
        (b'{"text": "a", "count": "many"}', "count"),
        (b'{"text": null}', "text"),
        (b"[" * 100_000, "body"),
        (b'{"text": "\xff"}', "body"),
        (b'{"text": "a\\u0000"}', "text"),
        (b'{"text": "\\ud800"}', "text"),
    ],
    ids=range(14),
)
async def test_a_bad_body_names_its_field(
    client: httpx.AsyncClient, content: bytes, field: str
) -> None:
    headers = {"Content-Type": "application/json"}
    response = await client.post("/v1/test/body", content=content, headers=headers)
    details = failed(response, 400, "INVALID_REQUEST").details
    assert details is not None and details.startswith(f"{field}:")


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "json"])
async def test_a_body_of_another_type_names_the_header(
    client: httpx.AsyncClient, kind: str
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    for path in ("/v1/test/body", "/v1/replica", "/v1/environments"):
        request = client.build_request("POST", path, content=b'{"text": "a"}', headers=headers)
        error = failed(await client.send(request), 400, "INVALID_REQUEST")
        assert error.details == "Content-Type: a body is sent as application/json"


async def test_what_is_wrong_is_told_in_the_contracts_words(client: httpx.AsyncClient) -> None:
    """And not in those of the library that found it."""
    for path, body in (
        ("/v1/environments", {"name": "a", "repository_id": "x"}),
        ("/v1/environments", {"name": "a\n"}),
        ("/v1/environments/global/files", {"name": "a", "path": "/x", "content": ""}),
        ("/v1/environments/global/mcps", {"name": "a", "transport": "sse", "config": {}}),
    ):
        details = failed(await client.post(path, json=body), 400, "INVALID_REQUEST").details
        assert details and not re.search("value error|assertion", details, re.IGNORECASE), details


@pytest.mark.parametrize(
    "header",
    ["x", "", "7a0e8b8e111142228333444455556666", "{7a0e8b8e-1111-4222-8333-444455556666}"],
)
async def test_an_organization_that_is_no_id_is_refused_also_beside_a_key(
    client: httpx.AsyncClient, header: str
) -> None:
    answer = await client.get("/v1/environments", headers={"Service-Org-Id": header})
    error = failed(answer, 400, "INVALID_REQUEST")
    assert error.details == "Service-Org-Id: must be a UUID"


ONE = "7a0e8b8e-1111-4222-8333-444455556666"
OTHER_WAYS = (
    ONE.replace("-", ""),
    f"{{{ONE}}}",
    f"urn:uuid:{ONE}",
    f" {ONE}",
    f"{ONE}\n",
    "7a0e8b8e1111-4222-8333-4444-55556666",
)


@pytest.mark.parametrize("text", OTHER_WAYS, ids=range(len(OTHER_WAYS)))
async def test_an_id_has_one_form(client: httpx.AsyncClient, text: str) -> None:
    there = quote(text, safe="")
    for path in (
        f"/v1/replica/{there}",
        f"/v1/workspaces/{there}/chats",
        f"/v1/warm-pools/{there}/workspaces",
        f"/v1/environments/{there}",
        f"/v1/replica?environment_id={there}",
    ):
        failed(await client.get(path), 400, "INVALID_REQUEST")
    bodies = {
        "/v1/replica": {"name": "a", "environment_id": text},
        "/v1/environments": {"name": "a", "repository_id": text},
        "/v1/replica/repository-sets": {"name": "a", "repository_ids": [text]},
    }
    for path, body in bodies.items():
        error = failed(await client.post(path, json=body), 400, "INVALID_REQUEST")
        assert "UUID" in (error.details or "")


async def test_an_id_is_read_in_any_case(client: httpx.AsyncClient) -> None:
    of = (await client.get("/v1/environments/global")).json()["environment"]
    answer = await client.get(f"/v1/environments/{of['id'].upper()}")
    assert answer.json()["environment"] == of


@pytest.mark.parametrize("text", ["1.0", "1e0", "1_0", "%201", "%2B1", "true", "", "\u0661"])
async def test_an_integer_of_a_query_is_written_in_digits(
    client: httpx.AsyncClient, context: ServiceContext, new_workspace: New, text: str
) -> None:
    one = await new_workspace(context.database)
    for path in (
        f"/v1/replica?limit={text}",
        f"/v1/replica?page={text}",
        f"/v1/organization/api-keys?limit={text}",
        f"/v1/replica/{one}/history?limit={text}",
        f"/v1/replica/{one}/history?beforeEvent={text}",
        f"/v1/replica/{one}/repo-files/search?limit={text}",
    ):
        failed(await client.get(path), 400, "INVALID_REQUEST")
    if text:
        failed(await client.delete(f"/v1/replica/{one}/previews/{text}"), 400, "INVALID_REQUEST")


async def test_unknown_fields_are_ignored(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/test/body", json={"text": "a", "other": 1})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1/replica?source=a%00",
        "/v1/agents/a%00b/models",
        "/v1/replica/%00",
        "/v1/environments?scope=%00",
    ],
)
async def test_a_nul_character_in_an_address_is_refused(
    client: httpx.AsyncClient, path: str
) -> None:
    failed(await client.get(path), 400, "INVALID_REQUEST")


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def served() -> dict[str, set[str]]:
    """The methods of every path; wherever GET is, HEAD is."""
    found: dict[str, set[str]] = {}
    for context in iter_route_contexts(ROUTES):
        methods = found.setdefault(context.path_format or "", set())
        methods |= context.methods or set()
    return {path: own | ({"HEAD"} if "GET" in own else set()) for path, own in found.items()}


def any_parameter(path: str) -> str:
    return re.sub(r"\{.*?\}", "{}", path)


async def test_a_wrong_method_is_told_every_right_one(client: httpx.AsyncClient) -> None:
    """Also at an address that could hold an id: `/v1/replica/repositories` is no replica."""
    for path in served():
        allowed = {
            method
            for other, methods in served().items()
            for method in methods
            if any_parameter(other) == any_parameter(path)
        }
        for method in sorted(METHODS - allowed):
            response = await client.request(method, any_parameter(path).replace("{}", ONE))
            if method == "HEAD":
                assert (response.status_code, response.content) == (405, b""), path
            else:
                assert response.status_code == 405, (method, path)
                failed(response, 405, "METHOD_NOT_ALLOWED")
            assert response.headers["allow"] == ", ".join(sorted(allowed)), (method, path)


@pytest.mark.long
async def test_head_is_answered_as_get_is(
    client: httpx.AsyncClient, context: ServiceContext, new_workspace: New
) -> None:
    """With the same headers and no body. Streams: `test_service_server`."""
    paths = [path for path, methods in served().items() if "GET" in methods]
    for id in (await new_workspace(context.database), "x"):
        for path in paths:
            if path.endswith(("/events", "/stream")):
                continue
            url = any_parameter(path).replace("{}", id)
            got, head = await client.get(url), await client.head(url)
            assert (head.status_code, head.content) == (got.status_code, b""), url
            assert head.headers == got.headers, url


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/environments/", "/docs"])
async def test_an_unknown_route_is_404(client: httpx.AsyncClient, path: str) -> None:
    failed(await client.get(path), 404, "NOT_FOUND")


async def test_a_body_over_the_limit_is_413(client: httpx.AsyncClient) -> None:
    body = json.dumps({"text": "x" * BODY_LIMIT}).encode()

    async def chunks() -> AsyncIterator[bytes]:
        for first in range(0, len(body), 1 << 20):
            yield body[first : first + (1 << 20)]

    headers = {"Content-Type": "application/json"}
    fixed = await client.post("/v1/test/body", content=body, headers=headers)
    failed(fixed, 413, "PAYLOAD_TOO_LARGE")
    chunked = await client.post("/v1/test/body", content=chunks(), headers=headers)
    failed(chunked, 413, "PAYLOAD_TOO_LARGE")
    fitting = json.dumps({"text": "x" * (BODY_LIMIT - 100)}).encode()
    answered = await client.post("/v1/test/body", content=fitting, headers=headers)
    assert answered.status_code == 200


async def test_an_unexpected_error_is_logged_and_not_told(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        response = await client.get("/v1/test/crash")
    failed(response, 500, "INTERNAL_ERROR")
    assert "secret" not in response.text
    assert "the secret of the crash" in caplog.text and "Traceback" in caplog.text


async def test_a_full_disk_is_a_clear_500(client: httpx.AsyncClient) -> None:
    error = failed(await client.get("/v1/test/full"), 500, "INTERNAL_ERROR")
    assert error.error == "The disk is full."


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("held", 503, "SERVICE_UNAVAILABLE"),
        ("standby", 503, "SERVICE_UNAVAILABLE"),
        ("broken", 500, "INTERNAL_ERROR"),
    ],
)
async def test_what_the_driver_said_is_only_logged(
    client: httpx.AsyncClient,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    status: int,
    code: str,
) -> None:
    answer = await client.get(f"/v1/test/{fault}")
    failed(answer, status, code)
    assert "secret" not in answer.text
    assert ("retry-after" in answer.headers) is (status == 503)
    assert "/the/secret/path" in caplog.text


@pytest.mark.parametrize("family", ["replica", "workspaces"])
async def test_both_families_find_the_callers_workspace(
    client: httpx.AsyncClient, context: ServiceContext, new_workspace: New, family: str
) -> None:
    workspace = await new_workspace(context.database)
    other = await new_workspace(context.database, organization_id=await _other(context.database))
    base, item = f"/v1/{family}", uuid4()
    found = await client.get(f"{base}/{workspace}/test/{item}")
    assert found.json() == {"id": workspace}
    failed(await client.get(f"{base}/{other}/test/{item}"), 404, "NOT_FOUND")
    failed(await client.get(f"{base}/{uuid4()}/test/{item}"), 404, "NOT_FOUND")
    bad = failed(await client.get(f"{base}/nothing/test/{item}"), 400, "INVALID_REQUEST")
    assert (bad.details or "").startswith("id:")
    bad = failed(await client.get(f"{base}/{workspace}/test/nothing"), 400, "INVALID_REQUEST")
    assert (bad.details or "").startswith("item_id:")


async def _other(database: Database) -> str:
    organization = str(uuid4())
    statement = text("INSERT INTO organizations (id, name, created_at) VALUES (:id, 'Other', '9')")
    await database.write(lambda c: c.execute(statement, {"id": organization}))
    return organization


async def test_a_lost_key_file_is_made_anew(
    client: httpx.AsyncClient, context: ServiceContext, home: Home
) -> None:
    before = home.key.read_text()
    home.key.unlink()
    await ensure_installation(context.database, home)
    assert home.key.read_text() != before
    assert home.key.stat().st_mode & 0o777 == 0o600
    headers = {"Authorization": f"Bearer {home.key.read_text().strip()}"}
    assert (await client.get("/v1/agents", headers=headers)).status_code == 200
    assert len((await client.get("/v1/environments")).json()["environments"]) == 1
