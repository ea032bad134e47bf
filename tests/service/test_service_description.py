"""The OpenAPI description: right in itself, and about what is served."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.openapi.models import OpenAPI
from fastapi.routing import iter_route_contexts

from quarterdeck.wire.errors import STATUS_OF

Object = dict[str, Any]
PUBLIC = {
    "/v1/health",
    "/v1/auth/device",
    "/v1/auth/token",
    "/v1/auth/verify",
    "/v1/automations/webhook/{token}",
    "/v1/host-a/webhook",
    "/v1/host-b/webhook",
}


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


@pytest.fixture
async def description(client: httpx.AsyncClient) -> Object:
    answer = await client.get("/openapi.json", headers={"Authorization": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    return answer.json()


def operations(description: Object) -> Iterator[tuple[str, str, Object]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def content(description: Object, method: str, path: str, status: int = 200) -> Object:
    return description["paths"][path][method]["responses"][str(status)]["content"]


async def test_it_is_openapi_3_1_of_version_2_0_0(description: Object) -> None:
    assert description["openapi"].startswith("3.1")
    assert description["info"]["version"] == "2.0.0"
    OpenAPI.model_validate(description)
    for found in references(description):
        node: Any = description
        for part in found.removeprefix("#/").split("/"):
            node = node[part]


async def test_it_is_made_once(client: httpx.AsyncClient, app: FastAPI) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):  # whoever asks first leaves
            await client.get("/openapi.json")
    made = app.state.description
    answers = await asyncio.gather(*(client.get("/openapi.json") for _ in range(3)))
    assert {answer.content for answer in answers} == {made.result()}
    await client.get("/openapi.json")
    assert app.state.description is made


async def test_every_served_route_is_described_and_no_other(
    description: Object, app: FastAPI
) -> None:
    served = {
        (method, route.path_format)
        for route in iter_route_contexts(app.state.routes)
        for method in route.methods or ()
    }
    described = {(method, path) for method, path, _ in operations(description)}
    assert served - described == {("GET", "/openapi.json")}
    assert described <= served


async def test_every_operation_has_a_name_of_its_own_and_a_tag(description: Object) -> None:
    names = [operation["operationId"] for _, _, operation in operations(description)]
    assert len(names) == len(set(names))
    assert all(operation["tags"] for _, _, operation in operations(description))


async def test_both_families_are_described_alike(description: Object) -> None:
    paths = description["paths"]
    first = {path: methods for path, methods in paths.items() if "/v1/replica/{id}" in path}
    assert len(first) > 10
    for path, methods in first.items():
        other = paths[path.replace("/v1/replica/", "/v1/workspaces/")]
        assert methods.keys() == other.keys(), path
        for method in methods:
            assert methods[method]["responses"] == other[method]["responses"], path


async def test_who_is_let_in(description: Object) -> None:
    assert description["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for _, path, operation in operations(description):
        assert (operation["security"] == []) == (path in PUBLIC), path
    inside = description["paths"]["/v1/previews"]["post"]["security"]
    assert inside == [{"bearer": [], "workspace": []}]


async def test_the_headers_of_every_operation(description: Object) -> None:
    for _, path, operation in operations(description):
        headers = {one["name"]: one for one in operation["parameters"] if one["in"] == "header"}
        version = headers["X-Service-Api-Version"]
        assert (version["required"], version["schema"]["enum"]) == (False, ["2026-10-07"]), path
        if path.startswith("/v1/environments"):
            assert headers["Service-Org-Id"]["schema"]["format"] == "uuid"
    assert "Service-Org-Id" not in json.dumps(description["paths"]["/v1/replica"]["post"])


async def test_every_error_answer_is_the_error_object(description: Object) -> None:
    known = {*STATUS_OF.values()} - {405}
    for _, path, operation in operations(description):
        answers = operation["responses"]
        assert "422" not in answers, path
        assert {"400", "500"} <= answers.keys(), path
        for status, answer in answers.items():
            if int(status) >= 400:
                assert int(status) in known, path
                # The framework adds a description to what a route names itself.
                assert answer["$ref"] == f"#/components/responses/Error{status}", path
                assert answer.keys() <= {"$ref", "description"}, path
    schema = description["components"]["schemas"]["ErrorObject"]
    assert schema["required"] == ["error"]
    assert {"type": "null"} in schema["properties"]["details"]["anyOf"]
    assert "HTTPValidationError" not in description["components"]["schemas"]


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        # The specification names them: operations 1, 5, 7, 8, 13.
        ("post", "/v1/replica/{id}/exec", {400, 401, 404, 409, 500}),
        ("patch", "/v1/replica/{id}/chats/{chat_id}", {400, 401, 404, 409, 500}),
        (
            "patch",
            "/v1/environments/{environment_id}/variables/{id}",
            {400, 401, 403, 404, 409, 500},
        ),
        ("patch", "/v1/environments/{environment_id}/files/{id}", {400, 401, 404, 500}),
        ("get", "/v1/workspaces/{id}/repo-files/search", {400, 401, 404, 500}),
        ("post", "/v1/replica", {400, 401, 403, 404, 409, 413, 429, 500}),
        ("post", "/v1/workspaces/{id}/canvas", {400, 401, 404, 409, 413, 500}),
    ],
)
async def test_the_errors_that_the_contract_names(
    description: Object, method: str, path: str, statuses: set[int]
) -> None:
    assert {str(one) for one in statuses} <= description["paths"][path][method]["responses"].keys()


async def test_success_has_the_contracts_code(description: Object) -> None:
    created = {
        path
        for method, path, operation in operations(description)
        if method == "POST" and "201" in operation["responses"]
    }
    assert created >= {
        "/v1/replica",
        "/v1/environments",
        "/v1/replica/{id}/chats",
        "/v1/replica/{id}/terminal/sessions",
        "/v1/user/api-keys",
        "/v1/replica/repositories",
    }
    assert "202" in description["paths"]["/v1/workspaces/{id}/wake"]["post"]["responses"]
    upload = description["paths"]["/v1/workspaces/{id}/canvas"]["post"]
    assert {"200", "202"} <= upload["responses"].keys()
    for _, path, operation in operations(description):
        assert any(status < "300" for status in operation["responses"]), path


async def test_streams_and_uploads_have_their_media_types(description: Object) -> None:
    for path in (
        "/v1/replica/{id}/events",
        "/v1/workspaces/{id}/terminal/sessions/{session_id}/stream",
    ):
        assert content(description, "get", path) == {
            "text/event-stream": {"schema": {"type": "string"}}
        }
    upload = description["paths"]["/v1/workspaces/{id}/canvas"]["post"]["requestBody"]["content"]
    assert list(upload) == ["multipart/form-data"]


async def test_what_may_be_null_is_described_so(description: Object) -> None:
    schemas = description["components"]["schemas"]
    for model, field in (
        ("ExecResponse", "exit_code"),
        ("Chat", "title"),
        ("History", "beforeCursor"),
        ("Replica", "last_activity_at"),
        ("Environment", "description"),
    ):
        assert {"type": "null"} in schemas[model]["properties"][field]["anyOf"], (model, field)
    assert schemas["ExecRequest"]["properties"]["timeout_seconds"]["maximum"] == 50


async def test_it_is_not_made_at_start(app: FastAPI, client: httpx.AsyncClient) -> None:
    await client.get("/v1/health")
    assert app.state.description is None
