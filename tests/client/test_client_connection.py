import asyncio
import os
import socket
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from quarterdeck.client import Client, HttpConnection, WireNames
from quarterdeck.client import errors as client_errors
from quarterdeck.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidKeyError,
    InvalidRequestError,
    NotActiveError,
    NotFoundError,
    PayloadTooLargeError,
    ProtocolError,
    RateLimitedError,
    ReplicaFailedError,
    RequestTimeoutError,
    ResponseError,
    ServerError,
    UnauthorizedError,
    UnavailableError,
    UnreachableError,
)
from quarterdeck.wire.account import Health
from quarterdeck.wire.chats import SendMessage

HEALTH = {"status": "ok", "version": "1"}


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "INVALID_REQUEST", InvalidRequestError),
        (401, "UNAUTHORIZED", UnauthorizedError),
        (403, "API_KEY_REQUIRED", ForbiddenError),
        (404, "NOT_FOUND", NotFoundError),
        (409, "CONFLICT", ConflictError),
        (409, "WORKSPACE_NOT_ACTIVE", NotActiveError),
        (409, "WORKSPACE_ERROR_STATE", ReplicaFailedError),
        (409, None, ConflictError),
        (413, "PAYLOAD_TOO_LARGE", PayloadTooLargeError),
        (429, "TERMINAL_LIMIT_REACHED", RateLimitedError),
        (500, "INTERNAL_ERROR", ServerError),
        (502, "ENGINE_UNREACHABLE", UnavailableError),
        (418, "A_NEW_CODE", ResponseError),
    ],
)
async def test_a_refusal_becomes_the_error_of_its_status(status, code, kind, tiny_server, connect):
    async def refuse(seen, reply):
        await reply.json({"error": "No.", "details": "the field", "code": code}, status)

    async with tiny_server(refuse) as server, connect(server) as connection:
        with pytest.raises(kind) as caught:
            await connection.call("POST", "/v1/x", Health)
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.details) == (status, code, "the field")
    assert str(error) == error.message == "No."
    assert error.title and error.next_step


@pytest.mark.parametrize(
    ("details", "step"),
    [
        ("name: alpha", "Choose another name."),
        ("repository: shop", "Change that, then retry."),
        ("status: completed", "It has changed; refresh and retry."),
        ("conflicts: a.txt, b.txt", "Resolve the conflicts, then retry."),
        (
            "Ask the agent to move the work to another branch.",
            "Check its current state, then retry.",
        ),
        (None, "Check its current state, then retry."),
    ],
)
async def test_a_conflict_says_what_to_do(tiny_server, connect, details, step):
    async def refuse(seen, reply):
        await reply.json({"error": "No.", "code": "CONFLICT", "details": details}, 409)

    async with tiny_server(refuse) as server, connect(server) as connection:
        with pytest.raises(ConflictError) as caught:
            await connection.call("POST", "/v1/x", Health)
    assert caught.value.next_step == step


def test_every_error_has_a_title_and_a_next_step_and_stands_in_the_drawing():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    for kind in below(ClientError):
        assert kind.title and kind.default_step
        assert kind.__name__ in (client_errors.__doc__ or "")


async def test_a_refusal_without_an_error_object_still_says_something(tiny_server, connect):
    async def refuse(seen, reply):
        await reply.raw(b"HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\n<no>")

    async with tiny_server(refuse) as server, connect(server) as connection:
        with pytest.raises(ForbiddenError, match="403"):
            await connection.call("GET", "/v1/x", Health)


async def test_get_is_tried_again_after_503_and_a_broken_line(tiny_server, connect):
    async def script(seen, reply):
        match len(server.seen):
            case 1:
                await reply.json({"error": "later"}, 503, {"Retry-After": "0.01"})
            case 2:
                await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            case _:
                await reply.json(HEALTH)

    async with tiny_server(script) as server, Client(connect(server)) as client:
        assert (await client.health.get()).version == "1"
    assert len(server.seen) == 3


async def test_get_gives_up_after_a_few_tries(tiny_server, connect):
    async def script(seen, reply):
        await reply.json({"error": "later"}, 502)

    async with tiny_server(script) as server, connect(server) as connection:
        with pytest.raises(UnavailableError):
            await connection.call("GET", "/v1/x", Health)
    assert len(server.seen) == 4


async def test_a_long_retry_after_is_given_to_the_caller(tiny_server, connect):
    async def script(seen, reply):
        await reply.json({"error": "much later"}, 429, {"Retry-After": "3600"})

    async with tiny_server(script) as server, connect(server) as connection:
        with pytest.raises(RateLimitedError) as caught:
            await connection.call("GET", "/v1/x", Health)
    assert caught.value.retry_after == 3600
    assert len(server.seen) == 1


@pytest.mark.parametrize("fault", ["503", "cut"])
async def test_a_message_is_never_sent_twice(fault, tiny_server, connect):
    async def script(seen, reply):
        if fault == "503":
            await reply.json({"error": "later"}, 503)

    async with tiny_server(script) as server, Client(connect(server)) as client:
        with pytest.raises((UnavailableError, UnreachableError)):
            await client.messages.send(uuid4(), SendMessage(message="once"))
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", UnreachableError),
        (b"SSH-2.0-OpenSSH_9.2\r\n", UnreachableError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", UnreachableError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html", ProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", ProtocolError),
        (b"HTTP/1.1 302 No\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", ProtocolError),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz",
            ProtocolError,
        ),
    ],
)
async def test_no_exception_of_the_http_library_leaves(answer, kind, tiny_server, connect):
    async def script(seen, reply):
        await reply.raw(answer)

    async with tiny_server(script) as server, connect(server) as connection:
        with pytest.raises(kind) as caught:
            await connection.call("POST", "/v1/x", Health)
    assert "sk_secret" not in f"{caught.value}{caught.value!r}"


async def test_an_answer_that_does_not_come_times_out(tiny_server, connect):
    async def script(seen, reply):
        await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server, timeout=0.05) as connection:
        with pytest.raises(RequestTimeoutError):
            await connection.call("POST", "/v1/x", Health)


async def test_nothing_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with HttpConnection(address, None) as connection:
            with pytest.raises(UnreachableError, match="No service answers"):
                await connection.call("POST", "/v1/x", Health)


async def test_a_password_in_the_address_is_not_shown():
    async with HttpConnection("http://me:hidden@127.0.0.1:9/x", None) as connection:
        with pytest.raises(UnreachableError) as refused:
            await connection.call("POST", "/v1/x", Health)
    assert "hidden" not in str(refused.value)
    assert "http://127.0.0.1:9/x" in str(refused.value)


@pytest.mark.parametrize("address", ["http://", "nonsense", "ftp://x", "http://[::1"])
async def test_an_address_that_is_none(address):
    async with HttpConnection(address, None) as connection:
        with pytest.raises(ClientError):
            await connection.call("POST", "/v1/x", Health)


async def test_key_and_names_are_sent_as_the_service_calls_them(tiny_server, connect):
    async def script(seen, reply):
        await reply.json(HEALTH)

    names = WireNames(version_header="X-Hosted-Version", version="7", organization_header="X-Org")
    async with (
        tiny_server(script) as server,
        connect(server, names=names, organization="o1") as connection,
    ):
        await connection.call("GET", "/v1/health", Health)
    headers = server.seen[0].headers
    assert headers["authorization"] == "Bearer sk_secret"
    assert (headers["x-hosted-version"], headers["x-org"]) == ("7", "o1")
    assert "x-service-api-version" not in headers


async def test_a_unix_socket_at_a_long_path_and_nothing_stays_open(tiny_server, tmp_path: Path):
    async def script(seen, reply):
        await reply.json(HEALTH)

    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    before = _descriptors()
    descriptor = os.open(deep, os.O_RDONLY)
    async with tiny_server(script, Path(f"/proc/self/fd/{descriptor}/s")):
        connection = HttpConnection("http://localhost", "k", socket=deep / "s")
        async with Client(connection) as client:
            for _ in range(3):
                assert (await client.health.get()).status == "ok"
    os.close(descriptor)
    assert _descriptors() == before


def _descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_socket_directory_that_is_not_there(tmp_path: Path):
    connection = HttpConnection("http://localhost", "k", socket=tmp_path / ("x" * 200) / "s")
    async with connection:
        with pytest.raises(UnreachableError):
            await connection.call("POST", "/v1/health", Health)


async def test_an_injected_transport_is_used():
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=HEALTH))
    async with Client(HttpConnection("http://nowhere", None, transport=transport)) as client:
        assert (await client.health.get()).status == "ok"


async def test_a_closed_connection_says_so():
    connection = HttpConnection("http://127.0.0.1:1", None)
    await connection.aclose()
    await connection.aclose()
    with pytest.raises(UnreachableError, match="closed"):
        await connection.call("GET", "/v1/health", Health)


@pytest.mark.parametrize("key", ["sk_ä", "sk_a\nb", "sk_\x1b[0m"])
def test_a_key_that_cannot_be_sent_is_not_repeated(key):
    with pytest.raises(InvalidKeyError) as caught:
        HttpConnection("http://localhost", key)
    assert key not in str(caught.value)


async def test_loopback_goes_around_a_proxy(tiny_server, connect, monkeypatch):
    async def script(seen, reply):
        await reply.json(HEALTH)

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with tiny_server(script) as server, Client(connect(server)) as client:
        assert (await client.health.get()).status == "ok"
