"""The OpenAPI description: right in itself, and about what is served."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI
from fastapi.openapi.models import OpenAPI
from fastapi.routing import iter_route_contexts

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service.app import build_app
from quarterdeck.service.db.database import sqlite_url
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.automations import AUTOMATION_PAYLOADS
from quarterdeck.wire.errors import STATUS_OF, ErrorCode
from quarterdeck.wire.events import PAYLOADS
from quarterdeck.wire.history import AGENT_PAYLOADS
from quarterdeck.wire.replicas import WEBHOOK_DATA, WebhookType
from tests.service.conftest import Mirrors

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


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What one service answers: making it costs more than all that is tested of it."""

    async def asked() -> bytes:
        place = tmp_path_factory.mktemp("described")
        driver, database = cast("SandboxDriver", Mirrors()), sqlite_url(place / "one.sqlite3")
        async with open_service(Home(place / "home"), driver, list, database) as context:
            transport = httpx.ASGITransport(build_app(build_service(context)))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as nobody:
                answer = await nobody.get("/openapi.json")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        return answer.content

    return asyncio.run(asked())


@pytest.fixture
def description(document: bytes) -> Object:
    return json.loads(document)


def operations(description: Object) -> Iterator[tuple[str, str, Object]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def nodes(node: Any, place: str = "") -> Iterator[tuple[str, Object]]:
    """Every object of the document with its place."""
    if isinstance(node, dict):
        yield place, node
        for name, value in node.items():
            yield from nodes(value, f"{place}/{name}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from nodes(value, f"{place}/{number}")


def schema_of(description: Object, reference: str) -> Object:
    node: Any = description
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


def variants(description: Object, name: str) -> dict[str, Object]:
    """The schemas of a union told apart by `type`."""
    union = description["components"]["schemas"][name]
    assert union["discriminator"]["propertyName"] == "type"
    mapping: dict[str, str] = union["discriminator"]["mapping"]
    assert [{"$ref": reference} for reference in mapping.values()] == union["oneOf"]
    found = {type: schema_of(description, reference) for type, reference in mapping.items()}
    assert all(schema["properties"]["type"]["const"] == type for type, schema in found.items())
    return found


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
        assert schema_of(description, found)


@pytest.mark.long
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
    assert served - described == {("GET", "/openapi.json"), ("POST", "/v1/mcp")}
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
        ("post", "/v1/automations/checks/{check_run_id}", {400, 401, 403, 404, 500}),
        ("post", "/v1/automations/webhook/{token}", {404, 413}),
        ("delete", "/v1/replica/repositories/{id}", {403, 404, 409}),
        ("patch", "/v1/automations/{id}", {412}),
        ("patch", "/v1/environments/{environment_id}", {412}),
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
        stream = content(description, "get", path)
        assert stream["text/event-stream"]["schema"] == {"type": "string"}
    upload = description["paths"]["/v1/workspaces/{id}/canvas"]["post"]["requestBody"]["content"]
    assert list(upload) == ["multipart/form-data"]


async def test_an_answer_that_is_no_json_is_not_described_as_json(description: Object) -> None:
    for _, path, operation in operations(description):
        for status, answer in operation["responses"].items():
            json_content = answer.get("content", {}).get("application/json", {"schema": True})
            assert json_content["schema"], (path, status)
    patch = description["paths"]["/v1/replica/{id}/git/{repository}/diff"]["get"]
    assert patch["responses"]["200"]["content"].keys() == {"text/x-diff"}


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


async def test_every_property_and_parameter_has_a_description(description: Object) -> None:
    for place, node in nodes(description):
        if "properties" in node and not place.endswith("/properties"):
            for name, schema in node["properties"].items():
                assert schema.get("description"), f"{place}: {name}"
    for _, path, operation in operations(description):
        for parameter in operation["parameters"]:
            assert parameter.get("description"), f"{path}: {parameter['name']}"


async def test_bounds_are_written_as_json_schema_has_them(description: Object) -> None:
    for place, node in nodes(description):
        if not place.endswith("/properties"):
            assert not {"ge", "gt", "le", "lt"} & node.keys(), place
    schemas = description["components"]["schemas"]
    assert schemas["CreateTerminal"]["properties"]["cols"].items() >= {
        ("minimum", 2),
        ("maximum", 500),
    }


@pytest.mark.parametrize(
    ("name", "field", "payloads"),
    [
        ("Event", "payload", PAYLOADS),
        ("AgentEvent", "payload", AGENT_PAYLOADS),
        ("AutomationEvent", "payload", AUTOMATION_PAYLOADS),
        ("WebhookCall", "data", WEBHOOK_DATA),
    ],
)
async def test_every_event_type_is_described_with_its_payload(
    description: Object, name: str, field: str, payloads: dict[Any, Any]
) -> None:
    types = type(next(iter(payloads)))
    found = variants(description, name)
    assert found.keys() == payloads.keys() == {one.value for one in types}
    for event_type, schema in found.items():
        assert {"type", field} <= set(schema["required"])
        payload = schema_of(description, schema["properties"][field]["$ref"])
        assert payload["title"] == payloads[event_type].__name__


async def test_each_stream_names_its_messages(description: Object) -> None:
    named = {
        content["text/event-stream"]["itemSchema"]["properties"]["data"]["contentSchema"]["$ref"]
        for _, _, operation in operations(description)
        if "text/event-stream"
        in (content := operation["responses"].get("200", {}).get("content", {}))
    }
    names = {reference.rpartition("/")[2] for reference in named}
    assert names == {"Event", "TerminalEvent", "AutomationEvent", "HookTestEvent"}
    terminal = variants(description, "TerminalEvent")
    assert terminal.keys() == {"replay", "output", "resize", "exit", "error"}
    events = description["components"]["schemas"]["History"]["properties"]["events"]
    assert events["items"] == {"$ref": "#/components/schemas/AgentEvent"}


async def test_every_webhook_is_described(description: Object) -> None:
    assert description["webhooks"].keys() == {type.value for type in WebhookType}
    for type, item in description["webhooks"].items():
        body = item["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema_of(description, body["$ref"])["properties"]["type"]["const"] == type
        assert item["post"]["parameters"][0]["name"] == "X-Service-Signature"


async def test_every_error_code_is_listed_with_its_status(description: Object) -> None:
    components = description["components"]
    assert set(components["schemas"]["ErrorCode"]["enum"]) == {code.value for code in ErrorCode}
    code = components["schemas"]["ErrorObject"]["properties"]["code"]
    assert code["$ref"] == "#/components/schemas/ErrorCode"
    for code, status in STATUS_OF.items():
        if status != 405:  # of no operation
            answer = components["responses"][f"Error{status}"]["content"]["application/json"]
            assert code in answer["schema"]["allOf"][1]["properties"]["code"]["enum"]


async def test_open_objects_are_described(description: Object) -> None:
    schemas = description["components"]["schemas"]
    for name in ("EnvironmentMcp", "CreateMcp", "ChangeMcp"):
        assert schemas[name]["properties"]["config"]["anyOf"] == [
            {"$ref": "#/components/schemas/StdioConfig"},
            {"$ref": "#/components/schemas/RemoteConfig"},
        ]
    difference = schemas["RepositoryStatus"]["properties"]["git_diff"]["anyOf"]
    assert difference == [{"$ref": "#/components/schemas/RepositoryDiff"}, {"type": "null"}]
    parameters = description["paths"]["/v1/replica/{id}"]["get"]["parameters"]
    (include,) = (one for one in parameters if one["name"] == "include")
    assert include["schema"]["items"]["enum"] == ["environment", "diffs"]
    assert (include["style"], include["explode"]) == ("form", False)


async def test_an_answer_with_an_entity_tag_says_so(description: Object) -> None:
    tagged = {
        (method, path)
        for method, path, operation in operations(description)
        if any("ETag" in answer.get("headers", {}) for answer in operation["responses"].values())
    }
    environment, automation = "/v1/environments/{environment_id}", "/v1/automations/{id}"
    assert tagged == {
        *(("POST", path) for path in ("/v1/environments", "/v1/automations")),
        *((method, path) for method in ("GET", "PATCH") for path in (environment, automation)),
        ("POST", f"{automation}/webhook/rotate"),
    }
