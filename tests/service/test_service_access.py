"""Every operation of the service against every kind of caller, from one table."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from sqlalchemy import text

from quarterdeck.service.app import build_app
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity import tokens
from quarterdeck.service.identity.authentication import Authenticator, CallerHeaders
from quarterdeck.service.identity.service import INSIDE, OWNER
from quarterdeck.service.routing import Access, FoundRoute
from quarterdeck.service.start import build_service
from quarterdeck.wire.errors import ErrorCode
from tests.service.access import ACCESS, CALLERS, NOBODIES, PASS, RULES, written
from tests.service.people import People, bearing, key_of, settle, token_of

pytestmark = pytest.mark.one_database

SECRET = "e" * 64
REFUSALS = {
    ErrorCode.UNAUTHORIZED,
    ErrorCode.JWT_REQUIRED,
    ErrorCode.USER_REQUIRED,
    ErrorCode.API_KEY_REQUIRED,
    ErrorCode.FORBIDDEN,
    ErrorCode.ORG_HEADER_REQUIRED,
}
EXAMPLES = {"port": "3000", "provider": "provider-g", "agent": "builtin", "filename": "a.md"}

Headers = dict[str, str]


FIRST = {"member's key", "stranger's token", "engine", "no key"}
"""One caller of each kind; the others are long, for each asks for every operation."""


def operations(app: FastAPI) -> Iterator[tuple[str, str]]:
    """What is served: method and path."""
    for route in iter_route_contexts(app.state.routes):
        for method in route.methods or ():
            yield method, str(route.path)


def filled(path: str, ids: dict[str, str] | None = None) -> str:
    """A path with an example for each parameter; ids that are not given name nothing."""

    def example(match: re.Match[str]) -> str:
        name = match[1].partition(":")[0]
        return (ids or {}).get(name) or EXAMPLES.get(name) or str(uuid4())

    return re.sub(r"{([^}]*)}", example, path)


@pytest.fixture
async def app(context: ServiceContext) -> AsyncIterator[FastAPI]:
    """Some operations open what only the end of the service closes."""
    service = build_service(context)
    yield build_app(service)
    await service.previews.close()
    await service.file_search.close()


@pytest.fixture
async def people(context: ServiceContext) -> People:
    return await settle(context)


@pytest.fixture
async def shown(context: ServiceContext, people: People, new_workspace: Any) -> dict[str, Headers]:
    """What every kind of caller sends."""
    own, other = people.organization, people.other
    first, second = str(uuid4()), str(uuid4())
    for id, secret in ((first, SECRET), (second, "f" * 64)):
        sealed = context.vault.seal(id, secret)
        await new_workspace(context.database, id=id, engine_secret_sealed=sealed)
    admin, member = token_of(context, people.owner), token_of(context, people.member)
    deleted = await key_of(context, own)
    statement = text("DELETE FROM api_keys WHERE key_prefix = :p AND name = 'Test'")
    await context.database.write(lambda c: c.execute(statement, {"p": deleted[:7]}))
    return {
        "organization key": bearing(await key_of(context, own)),
        "admin's key": bearing(await key_of(context, own, people.owner)),
        "member's key": bearing(await key_of(context, own, people.member)),
        "admin's token": bearing(admin, own),
        "member's token": bearing(member, own),
        "token, no header": bearing(admin),
        "token, bad header": bearing(admin, "x"),
        "token, foreign header": bearing(admin, other),
        "stranger's token": bearing(token_of(context, people.stranger), own),
        "engine": bearing(SECRET) | {"X-Workspace-Id": first},
        "no key": {},
        "bad key": bearing("sk_bad"),
        "deleted key": bearing(deleted),
        "bad token": bearing(admin[:-8] + "AAAAAAAA", own),
        "expired token": bearing(expired_token(context, people.owner), own),
        "no bearer": {"Authorization": f"Basic {admin}"},
        "owner's socket, no key": {},
        "inside, organization key": bearing(await key_of(context, own)),
        "inside, admin's token": bearing(admin, own),
        "engine of another workspace": bearing(SECRET) | {"X-Workspace-Id": second},
        "engine without a workspace": bearing(SECRET),
        "engine with a bad secret": bearing("0" * 64) | {"X-Workspace-Id": first},
    }


def expired_token(context: ServiceContext, user: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "LIFETIME_SECONDS", -3600)
        return token_of(context, user)


STATES = {"owner's socket": OWNER, "inside": INSIDE}
"""What the socket that a request came over leaves in its state; see `http_protocol`."""


@pytest.fixture
async def over(app: FastAPI, who: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client on the socket that a caller's name begins with."""
    mark = STATES.get(who.partition(",")[0])

    async def marked(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": {mark: True} if mark else {}}, receive, send)

    transport = httpx.ASGITransport(marked)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as opened:
        yield opened


async def ask(
    client: httpx.AsyncClient, method: str, path: str, headers: Headers
) -> httpx.Response:
    """A stream is asked for from a place that is none: it would not end."""
    body = {} if method in ("POST", "PUT", "PATCH") else None
    sent = {"Authorization": "", "Last-Event-ID": "none", **headers}
    return await client.request(method, path, json=body, headers=sent)


def outcome(answer: httpx.Response) -> str:
    """The code of a refusal, or PASS."""
    if answer.status_code < 400:
        return PASS
    told = answer.json()
    code, details = str(told.get("code")), str(told.get("details"))
    at_the_door = code in REFUSALS or details.startswith("Service-Org-Id")
    return code if at_the_door else PASS


async def test_what_only_begins_like_a_public_path_takes_keys(
    client: httpx.AsyncClient, shown: dict[str, Headers]
) -> None:
    path = f"/v1/automations/webhook/executions/{uuid4()}"
    answer = await ask(client, "GET", path, shown["no key"])
    assert (answer.status_code, outcome(answer)) == (401, "UNAUTHORIZED")
    answer = await ask(client, "POST", f"/v1/automations/webhook/{uuid4()}/more", shown["no key"])
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


def test_every_operation_has_a_rule_and_every_rule_an_operation(app: FastAPI) -> None:
    served = {written(method, path) for method, path in operations(app)}
    assert served - ACCESS.keys() == set(), "served, and nobody says who may"
    assert ACCESS.keys() - served == set(), "in the table, and not served"


def test_both_families_serve_the_same(app: FastAPI) -> None:
    served = set(operations(app))
    other = re.compile(r"^/v1/workspaces(?=/{id}|$)")
    renamed = {(method, other.sub("/v1/replica", path)) for method, path in served}
    missing = [
        (method, path)
        for method, path in renamed
        if re.match(r"/v1/replica(/{id}|$)", path)
        and not {(method, path), (method, path.replace("replica", "workspaces", 1))} <= served
    ]
    assert missing == []


@pytest.mark.long
@pytest.mark.parametrize(
    "who",
    [
        who if who in FIRST else pytest.param(who, marks=pytest.mark.long)
        for who in (*CALLERS, *NOBODIES)
    ],
)
async def test_who_may_do_what(
    app: FastAPI, over: httpx.AsyncClient, shown: dict[str, Headers], who: str
) -> None:
    wrong: list[str] = []
    for method, path in sorted(operations(app)):
        rule = ACCESS.get(written(method, path), "MEMBERS")
        # The socket for callers inside replicas has no public operations but its health.
        public = "PUBLIC GET /v1/health" if who.startswith("inside") else "PUBLIC"
        nobody = PASS if f"{rule} {method} {path}".startswith(public) else "UNAUTHORIZED"
        expected = RULES[rule].get(who, nobody)
        answer = await ask(over, method, filled(path), shown[who])
        assert answer.status_code < 500, (method, path, answer.text)
        found = outcome(answer)
        if found != expected:
            wrong.append(f"{rule} {method} {path}: {found} instead of {expected}")
        if found == "UNAUTHORIZED":
            assert answer.headers["www-authenticate"] == "Bearer"
    assert wrong == []


async def test_what_a_member_may_not_change(
    client: httpx.AsyncClient, people: People, shown: dict[str, Headers]
) -> None:
    """What the organization shares is read by its members, and changed by its admins (docs/interface.md 11)."""
    environment = await made(client, "/v1/environments", {"name": "e"}, "environment")
    personal = {"name": "mine", "scope": "user"}
    automation = {"name": "a", "prompt": "p", "environment_id": environment}
    shared = await made(client, "/v1/automations", automation, "automation")
    variable = await made(
        client,
        f"/v1/environments/{environment}/variables",
        {"key": "K", "value": "v"},
        "environment_variable",
    )

    def below(of: str) -> list[tuple[str, str, Any]]:
        path = f"/v1/environments/{of}"
        hook = {"content": "true"}
        mcp = {"name": "m", "transport": "stdio", "config": {"command": "m"}}
        return [
            ("PATCH", path, {"description": "other"}),
            ("POST", f"{path}/variables", {"key": "L", "value": "v"}),
            ("POST", f"{path}/files", {"name": "f", "path": "~/f", "content": "c"}),
            (
                "POST",
                f"{path}/skills",
                {"name": "s", "slug": "s", "source": "https://host.example/s"},
            ),
            ("POST", f"{path}/mcps", mcp),
            ("POST", f"{path}/warm-hooks/save", hook),
            ("POST", f"{path}/start-hooks/save", hook),
        ]

    refused = [
        *below(environment),
        *below("global")[1:],
        ("PATCH", f"/v1/environments/{environment}/variables/{variable}", {"value": "w"}),
        ("DELETE", f"/v1/environments/{environment}/variables/{variable}", None),
        ("PUT", f"/v1/environments/{environment}/warm-pools", {"enabled": True}),
        ("POST", f"/v1/environments/{environment}/warm-hooks/save-test", {"content": "true"}),
        ("DELETE", f"/v1/environments/{environment}", None),
        ("POST", "/v1/environments", {"name": "f"}),
        ("POST", "/v1/automations", automation),
        ("PATCH", f"/v1/automations/{shared}", {"description": "other"}),
        ("POST", f"/v1/automations/{shared}/webhook/rotate", None),
        ("DELETE", f"/v1/automations/{shared}", None),
    ]
    for who in ("member's key", "member's token"):
        for method, path, body in refused:
            answer = await client.request(method, path, json=body, headers=shown[who])
            if "warm-pools" in path or "save-test" in path:  # they need a fleet
                assert answer.status_code in (403, 500, 503), (method, path, answer.text)
                continue
            assert outcome(answer) == "FORBIDDEN", (who, method, path, answer.text)
        for path in ("", "/variables", "/files", "/skills", "/mcps", "/warm-hooks"):
            url = f"/v1/environments/{environment}{path}"
            assert (await client.get(url, headers=shown[who])).status_code == 200, path
        url = f"/v1/automations/{shared}"
        assert (await client.get(url, headers=shown[who])).status_code == 200
    member = shown["member's key"]
    answer = await client.post("/v1/environments", json=personal, headers=member)
    own = answer.json()["environment"]["id"]
    for method, path, body in below(own):
        answer = await client.request(method, path, json=body, headers=member)
        assert answer.status_code in (200, 201), (method, path, answer.text)
    body = {**automation, "environment_id": own, "scope": "user"}
    answer = await client.post("/v1/automations", json=body, headers=member)
    assert answer.status_code == 201, answer.text
    path = f"/v1/automations/{answer.json()['automation']['id']}"
    for method in ("PATCH", "DELETE"):
        answer = await client.request(method, path, json={}, headers=member)
        assert answer.status_code == 200, answer.text


async def test_an_engine_gets_at_its_own_workspace_only(
    client: httpx.AsyncClient, shown: dict[str, Headers]
) -> None:
    own = shown["engine"]
    for path in (f"/v1/workspaces/{own['X-Workspace-Id']}/previews", "/v1/replica"):
        assert outcome(await ask(client, "GET", path, own)) == "UNAUTHORIZED"


async def test_a_route_of_replicas_that_takes_engines_takes_the_replicas_own(
    context: ServiceContext, shown: dict[str, Headers]
) -> None:
    """There is none yet: whoever adds one need not think of this."""
    own = shown["engine"]["X-Workspace-Id"]
    authenticator = Authenticator(context)
    for inside in (True, False):
        headers = CallerHeaders(SECRET, workspace=own, inside=inside)
        for id, admitted in ((own, True), (own.upper(), True), (str(uuid4()), False)):
            route = FoundRoute(scope={"path_params": {"id": id}}, access=Access(engines=True))
            if admitted:
                assert (await authenticator.caller_of(headers, route)).workspace_id == own
            else:
                with pytest.raises(ApiError, match="does not open this"):
                    await authenticator.caller_of(headers, route)


async def made(client: httpx.AsyncClient, path: str, body: dict[str, Any], kind: str) -> str:
    answer = await client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()[kind]["id"]


async def test_nothing_of_another_organization_is_there(
    app: FastAPI,
    client: httpx.AsyncClient,
    context: ServiceContext,
    people: People,
    new_workspace: Any,
    new_chat: Any,
) -> None:
    """Each path with an id, filled with what this organization has, asked by the other one."""
    workspace = await new_workspace(context.database)
    environment = await made(client, "/v1/environments", {"name": "e"}, "environment")
    ids = {
        "environment_id": environment,
        "chat_id": await new_chat(context.database, workspace),
    }
    below = f"/v1/environments/{environment}"
    variable = {"key": "K", "value": "v"}
    file = {"name": "f", "path": "~/f", "content": "c"}
    repository = {"url": "/somewhere"}
    automation = {"name": "a", "prompt": "p", "environment_id": environment}
    of = {
        "/v1/replica/{id}": workspace,
        "/v1/workspaces/{id}": workspace,
        "variables/{id}": await made(
            client, f"{below}/variables", variable, "environment_variable"
        ),
        "files/{id}": await made(client, f"{below}/files", file, "environment_file"),
        "repositories/{id}": await made(
            client, "/v1/replica/repositories", repository, "repository"
        ),
        "automations/{id}": await made(client, "/v1/automations", automation, "automation"),
        "organization/api-keys/{id}": await made(
            client, "/v1/organization/api-keys", {"name": "k"}, "api_key"
        ),
    }
    bearers = [
        bearing(await key_of(context, people.other)),
        bearing(await key_of(context, people.other, people.stranger)),
        bearing(token_of(context, people.stranger), people.other),
    ]
    told: list[str] = []
    for method, path in sorted(operations(app)):
        own = next((one for part, one in of.items() if part in path), None)
        if own is None and "{environment_id}" not in path:
            continue
        target = filled(path, ids | ({"id": own} if own else {}))
        for headers in bearers:
            answer = await ask(client, method, target, headers)
            # A body is looked at before what it is for: 400 tells nothing of what there is.
            if answer.status_code != 404 and not (answer.status_code == 400 and method != "GET"):
                told.append(f"{method} {path}: {answer.status_code} {answer.text[:100]}")
    assert told == []
    for path in (f"/v1/replica/{workspace}", below, f"{below}/variables"):
        assert (await client.get(path)).status_code == 200
