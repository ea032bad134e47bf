"""`/v1/mcp`: the tools by URL, with the SDK's own client against the running service."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin
from uuid import uuid4

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from sqlalchemy import update

from quarterdeck.cli import mcp_http
from quarterdeck.cli.mcp_http import HttpTools
from quarterdeck.local.home import Home
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import chats
from quarterdeck.service.listeners import TcpListener, UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service
from tests.service.people import People, bearing, key_of, settle, token_of
from tests.support.waiting import WAIT_SECONDS, eventually

pytestmark = pytest.mark.one_database

New = Callable[..., Awaitable[str]]
MODES = ("legacy", "auto")
"""With the handshake of earlier versions, and without one."""
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass
class Served:
    """A running service with tools."""

    url: str
    tools: HttpTools
    task: asyncio.Task[None]


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


@pytest.fixture
async def served(context: ServiceContext, home: Home) -> AsyncIterator[Served]:
    tools = HttpTools(home)
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    listeners = [UnixListener(home.socket), TcpListener("127.0.0.1", 0)]
    service = build_service(context, tools=tools)
    task = asyncio.create_task(serve(service, listeners, ready.set_result))
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    host, port = ready.result()[1].address
    yield Served(f"http://{host}:{port}/v1/mcp", tools, task)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def people(context: ServiceContext) -> People:
    return await settle(context)


@pytest.fixture
async def working(context: ServiceContext, new_workspace: New, new_chat: New) -> str:
    """A replica whose turn does not end."""
    workspace = await new_workspace(context.database)
    await new_chat(context.database, workspace)
    statement = update(chats).values(processing=True)
    await context.database.write(lambda c: c.execute(statement))
    return workspace


@asynccontextmanager
async def connected(
    served: Served, headers: dict[str, str], mode: str = "auto"
) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(served.url, http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the structured answer of a tool, or the text of its error."""
    result = await client.call_tool(tool, arguments)
    return result.content[0].text if result.is_error else result.structured_content


async def names(client: Client) -> set[str]:
    return {each["name"] for each in (await call(client, "list_replicas"))["replicas"]}


@pytest.mark.parametrize("mode", MODES)
async def test_each_of_several_clients_has_the_rights_of_its_own_key(
    served: Served, context: ServiceContext, people: People, new_workspace: New, mode: str
) -> None:
    own = await new_workspace(context.database, name="own")
    await new_workspace(context.database, name="foreign", organization_id=people.other)
    key = bearing(await key_of(context, people.organization, people.member))
    other = bearing(await key_of(context, people.other))
    async with connected(served, key, mode) as member, connected(served, other, mode) as stranger:
        rounds = [asyncio.gather(names(member), names(stranger)) for _ in range(5)]
        for seen in await asyncio.gather(*rounds):
            assert seen == [{"own"}, {"foreign"}]
        assert (await call(member, "get_replica", replica=own))["name"] == "own"
        assert "There is no replica 'own'." in await call(stranger, "get_replica", replica="own")
        assert "No replica" in await call(stranger, "send_message", replica=own, message="hello")


async def test_what_the_route_of_a_tool_refuses_is_refused(
    served: Served, context: ServiceContext, people: People
) -> None:
    token = token_of(context, people.owner)
    async with connected(served, bearing(token, people.organization)) as client:
        assert await names(client) == set()
        assert "key" in await call(client, "create_replica", message="hello")
    member = await key_of(context, people.organization, people.member)
    async with connected(served, bearing(member)) as client:
        # Over the owner's socket, but not as the owner.
        refused = await call(client, "create_replica", repository="/srv/private")
        assert "admin" in refused, refused
    async with httpx.AsyncClient(headers=bearing(token) | ACCEPT, timeout=WAIT_SECONDS) as http:
        answer = await http.post(served.url, json=LIST)
        assert (answer.status_code, answer.json()["code"]) == (400, "ORG_HEADER_REQUIRED")


async def test_a_key_that_is_deleted_ends_what_runs_with_it(
    served: Served, context: ServiceContext, people: People, working: str
) -> None:
    owner = bearing(await key_of(context, people.organization, people.owner))
    key = await key_of(context, people.organization)
    keys = urljoin(served.url, "/v1/organization/api-keys")
    async with (
        httpx.AsyncClient(headers=owner, timeout=WAIT_SECONDS) as http,
        connected(served, bearing(key)) as client,
    ):
        waiting = asyncio.create_task(call(client, "wait", replica=working, timeout_seconds=3600))
        await eventually(lambda: served.tools._calls[""] == 1)
        known = (await http.get(keys)).json()["api_keys"]
        for record in known:
            assert (await http.delete(f"{keys}/{record['id']}")).status_code == 200
        assert "key" in await waiting
        with pytest.raises(MCPError):
            await call(client, "list_replicas")


@pytest.mark.parametrize("headers", [{}, bearing("sk_bad"), {"Authorization": "Basic eA=="}])
async def test_without_a_key_there_is_only_the_error(
    served: Served, headers: dict[str, str]
) -> None:
    async with httpx.AsyncClient(headers=headers | ACCEPT, timeout=WAIT_SECONDS) as http:
        for method in ("POST", "GET", "DELETE"):
            answer = await http.request(method, served.url, json=LIST)
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
            assert answer.headers["www-authenticate"] == "Bearer"
    with pytest.raises((MCPError, ExceptionGroup)):
        async with connected(served, headers) as client:
            await client.list_tools()


async def test_callers_inside_replicas_are_refused(
    served: Served, context: ServiceContext, home: Home, people: People, new_workspace: New
) -> None:
    key = await key_of(context, people.organization)
    workspace, secret = str(uuid4()), "s" * 64
    sealed = context.vault.seal(workspace, secret)
    await new_workspace(context.database, id=workspace, engine_secret_sealed=sealed)
    transport = httpx.AsyncHTTPTransport(uds=str(home.inside_socket))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", timeout=WAIT_SECONDS
    ) as http:
        for shown in (key, secret):
            headers = bearing(shown) | {"X-Workspace-Id": workspace} | ACCEPT
            answer = await http.post("/v1/mcp", json=LIST, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")


async def test_web_pages_and_other_methods_are_refused(
    served: Served, context: ServiceContext, people: People
) -> None:
    key = bearing(await key_of(context, people.organization))
    async with httpx.AsyncClient(headers=key | ACCEPT, timeout=WAIT_SECONDS) as http:
        page = await http.post(served.url, json=LIST, headers={"Origin": "http://evil.example"})
        assert (page.status_code, page.json()["code"]) == (403, "FORBIDDEN")
        for method in ("GET", "DELETE"):
            answer = await http.request(method, served.url)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        large = await http.post(served.url, content=b" " * (9 << 20))
        assert (large.status_code, large.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
        for body in (b"", b"[]", b"{}", b"{", b"[" * 100_000, b"\xff"):
            headers = {"Content-Type": "application/json"}
            answer = await http.post(served.url, content=body, headers=headers)
            assert answer.status_code == 400 and "error" in answer.json(), body[:10]


async def test_no_stream_of_changes_is_opened(
    served: Served, context: ServiceContext, people: People
) -> None:
    key = bearing(await key_of(context, people.organization))
    version = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    body = LIST | {"method": "subscriptions/listen", "params": params}
    async with httpx.AsyncClient(headers=key | ACCEPT | version, timeout=WAIT_SECONDS) as http:
        answer = await http.post(served.url, json=body)
        assert answer.json()["error"]["message"] == "Method not found", answer.text


@pytest.mark.parametrize("mode", MODES)
async def test_a_wait_ends_when_its_client_leaves(
    served: Served, context: ServiceContext, people: People, working: str, mode: str
) -> None:
    key = await key_of(context, people.organization)
    async with connected(served, bearing(key), mode) as client:
        short = await call(client, "wait", replica=working, timeout_seconds=1)
        assert short == {"state": "working", "timed_out": True}
        waiting = asyncio.create_task(call(client, "wait", replica=working, timeout_seconds=3600))
        await eventually(lambda: served.tools._calls[""] == 1)
        assert await names(client) != set()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await eventually(lambda: served.tools._calls[""] == 0)


async def test_a_wait_ends_when_the_service_stops(
    served: Served,
    context: ServiceContext,
    people: People,
    working: str,
) -> None:
    key = await key_of(context, people.organization)
    headers = bearing(key) | ACCEPT | {"MCP-Protocol-Version": "2025-06-18"}
    arguments = {"replica": working, "timeout_seconds": 3600}
    body = LIST | {"method": "tools/call", "params": {"name": "wait", "arguments": arguments}}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        waiting = asyncio.create_task(http.post(served.url, json=body))
        await eventually(lambda: served.tools._calls[""] == 1)
        served.task.cancel()
        answer = await waiting
    assert (answer.status_code, answer.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert answer.headers["retry-after"]
    await asyncio.gather(served.task, return_exceptions=True)


@pytest.mark.parametrize(
    ("bound", "of_colleague", "of_stranger"),
    [("CALLS", 429, 429), ("OF_ORGANIZATION", 429, 200), ("OF_CALLER", 200, 200)],
)
async def test_calls_at_once_are_bounded_in_all_and_for_an_organization_and_a_caller(
    served: Served,
    context: ServiceContext,
    people: People,
    working: str,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    of_colleague: int,
    of_stranger: int,
) -> None:
    monkeypatch.setattr(mcp_http, bound, 1)
    key = bearing(await key_of(context, people.organization))
    colleague = bearing(await key_of(context, people.organization, people.member))
    stranger = bearing(await key_of(context, people.other))
    async with (
        connected(served, key) as client,
        httpx.AsyncClient(headers=ACCEPT, timeout=WAIT_SECONDS) as http,
    ):
        waiting = asyncio.create_task(call(client, "wait", replica=working, timeout_seconds=3600))
        await eventually(lambda: served.tools._calls[""] == 1)
        refused = await http.post(served.url, json=LIST, headers=key)
        assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
        assert refused.headers["retry-after"]
        for headers, status in ((colleague, of_colleague), (stranger, of_stranger)):
            answer = await http.post(served.url, json=LIST, headers=headers)
            assert answer.status_code == status
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await eventually(lambda: not served.tools._calls)
        assert await names(client) != set()
