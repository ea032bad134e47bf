"""How a device gets a user token: on the owner's socket at once, elsewhere when it is approved."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import jwt
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from quarterdeck.local.home import Home
from quarterdeck.local.sockets import socket_address
from quarterdeck.service import middleware
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.first_start import owner_of
from quarterdeck.service.identity.sign_in import begin, collect
from quarterdeck.service.identity.tokens import USE, DeviceSettings, Tokens
from quarterdeck.service.listeners import TcpListener, UnixListener
from quarterdeck.service.middleware import is_owner
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service
from quarterdeck.wire.base import utc_now
from tests.service.people import bearing, key_of, settle, token_of
from tests.support.waiting import WAIT_SECONDS

pytestmark = pytest.mark.one_database

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass
class Doors:
    """A running service: the owner's socket, and TCP."""

    socket: httpx.AsyncClient
    tcp: httpx.AsyncClient
    path: Path


@asynccontextmanager
async def serving(context: ServiceContext, path: Path) -> AsyncIterator[tuple[str, int]]:
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    listeners = [UnixListener(path), TcpListener("127.0.0.1", 0)]
    running = asyncio.create_task(serve(build_service(context), listeners, ready.set_result))
    await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield ready.result()[1].address
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
async def doors(context: ServiceContext) -> AsyncIterator[Doors]:
    with TemporaryDirectory(prefix="qd-") as directory:
        path = Path(directory) / "s"
        async with serving(context, path) as (host, port):
            unix = httpx.AsyncHTTPTransport(uds=str(path))
            async with (
                httpx.AsyncClient(
                    transport=unix, base_url="http://localhost", timeout=WAIT_SECONDS
                ) as own,
                httpx.AsyncClient(
                    base_url=f"http://{host}:{port}", trust_env=False, timeout=WAIT_SECONDS
                ) as tcp,
            ):
                yield Doors(own, tcp, path)


@pytest.mark.parametrize("origin", ["https://page.example", "null", "http://localhost:1", ""])
async def test_a_web_page_gets_no_device_code(doors: Doors, origin: str) -> None:
    """Over a forwarded socket a page in the owner's browser would be the owner."""
    headers = {"Origin": origin}
    for client in (doors.socket, doors.tcp):
        refused = await client.post("/v1/auth/device", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
    device = (await doors.tcp.post("/v1/auth/device")).json()
    body = {"user_code": device["user_code"]}
    key = {"Authorization": f"Bearer {await owners_token(doors)}"}
    for browser in (headers, {"Sec-Fetch-Site": "same-origin"}):
        approved = await doors.socket.post("/v1/auth/approve", json=body, headers=key | browser)
        assert approved.status_code == 403
    assert (await doors.socket.post("/v1/auth/approve", json=body, headers=key)).is_success


async def owners_token(doors: Doors) -> str:
    device = (await doors.socket.post("/v1/auth/device")).json()
    answer = await doors.socket.post("/v1/auth/token", data=asking(device))
    return answer.json()["access_token"]


async def test_the_owner_is_no_browser(doors: Doors) -> None:
    """A browser says so in every request, also in those without `Origin`."""
    for mark in ({}, {"Sec-Fetch-Site": "same-origin"}):
        device = (await doors.socket.post("/v1/auth/device", headers=mark)).json()
        answer = await doors.socket.post("/v1/auth/token", data=asking(device))
        assert answer.is_success == (not mark)


def asking(device: dict[str, Any]) -> dict[str, str]:
    return {"grant_type": GRANT, "device_code": device["device_code"], "client_id": "qd"}


async def ask(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.post("/v1/auth/device")
    assert answer.status_code == 200, answer.text
    return answer.json()


def says(answer: httpx.Response, error: str) -> None:
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] == error
    assert answer.json()["details"]


async def forget_polls(context: ServiceContext) -> None:
    statement = text("UPDATE device_codes SET polled_at = NULL")
    await context.database.write(lambda c: c.execute(statement))


async def test_the_owner_of_the_socket_is_let_in_at_once(
    doors: Doors, context: ServiceContext
) -> None:
    device = await ask(doors.socket)
    assert device.keys() == {
        "device_code",
        "user_code",
        "verification_uri",
        "interval",
        "expires_in",
    }
    answer = await doors.tcp.post("/v1/auth/token", data=asking(device))
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["token_type"], told["expires_in"]) == ("Bearer", 3600)
    assert answer.headers["cache-control"] == "no-store"
    profile = await doors.tcp.get("/v1/user/profile", headers=bearing(told["access_token"]))
    assert profile.json()["user"]["id"] == await owner_of(context.database)
    says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "invalid_grant")


async def test_a_device_that_asks_too_early_causes_no_write(
    doors: Doors, context: ServiceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = await ask(doors.tcp)
    says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "authorization_pending")
    monkeypatch.setattr(context.database, "write", None)
    says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "slow_down")


async def test_elsewhere_it_waits_for_the_owner(doors: Doors, context: ServiceContext) -> None:
    device = await ask(doors.tcp)
    says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "authorization_pending")
    says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "slow_down")
    key = bearing(context.home.key.read_text().strip())
    code = device["user_code"].lower().replace("-", " ")
    approved = await doors.socket.post("/v1/auth/approve", json={"user_code": code}, headers=key)
    assert approved.json() == {"success": True}
    again = await doors.socket.post("/v1/auth/approve", json={"user_code": code}, headers=key)
    assert again.status_code == 404
    answer = await doors.tcp.post("/v1/auth/token", json=asking(device))
    assert answer.status_code == 200, answer.text


async def test_two_polls_at_once_get_one_token(doors: Doors) -> None:
    device = await ask(doors.socket)
    polls = [doors.tcp.post("/v1/auth/token", json=asking(device)) for _ in range(8)]
    answers = await asyncio.gather(*polls)
    assert sorted(one.status_code for one in answers) == [200] + [400] * 7


async def test_the_owner_turns_a_device_away(doors: Doors, context: ServiceContext) -> None:
    device = await ask(doors.tcp)
    key = bearing(context.home.key.read_text().strip())
    body = {"user_code": device["user_code"], "deny": True}
    assert (await doors.socket.post("/v1/auth/approve", json=body, headers=key)).status_code == 200
    for _ in range(2):
        says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "access_denied")
    body["deny"] = False
    late = await doors.socket.post("/v1/auth/approve", json=body, headers=key)
    assert late.status_code == 404


async def test_nobody_else_approves(doors: Doors, context: ServiceContext) -> None:
    people = await settle(context)
    body = {"user_code": (await ask(doors.tcp))["user_code"]}
    bearers = [
        context.home.key.read_text().strip(),
        await key_of(context, people.organization, people.owner),
        token_of(context, people.owner),
    ]
    for bearer in bearers:
        answer = await doors.tcp.post("/v1/auth/approve", json=body, headers=bearing(bearer))
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")
    answer = await doors.socket.post("/v1/auth/approve", json=body)
    assert answer.status_code == 401


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
async def test_what_a_proxy_passes_on_is_not_the_owners(doors: Doors, header: str) -> None:
    answer = await doors.socket.post("/v1/auth/device", headers={header: "1.1.1.1"})
    says(
        await doors.tcp.post("/v1/auth/token", json=asking(answer.json())), "authorization_pending"
    )


async def test_the_owner_is_known_by_the_kernel() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert is_owner(left)
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        assert not is_owner(tcp)


ASK = """
import socket, sys
asking = socket.socket(socket.AF_UNIX)
asking.connect(sys.argv[1])
head = b"POST /v1/auth/device HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\nContent-Length: 0"
asking.sendall(head + b"\\r\\n\\r\\n")
print(b"".join(iter(lambda: asking.recv(4096), b"")).decode().split("\\r\\n\\r\\n")[1])
"""


async def asked_by(*command: str, path: Path, **options: Any) -> dict[str, Any]:
    """Return the device request that a process of another program opens on the socket."""
    process = await asyncio.create_subprocess_exec(
        *command, "/usr/bin/python3", "-c", ASK, str(path), stdout=-1, stderr=-1, **options
    )
    out, errors = await process.communicate()
    assert out, errors.decode()
    return httpx.Response(200, content=out).json()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user too")
async def test_another_user_on_the_socket_is_not_the_owner(doors: Doors) -> None:
    doors.path.parent.chmod(0o755)
    doors.path.chmod(0o666)
    device = await asked_by(path=doors.path, user=65534, group=65534)
    says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "authorization_pending")


async def test_another_process_of_the_owner_is_the_owner(doors: Doors) -> None:
    device = await asked_by(path=doors.path)
    assert (await doors.tcp.post("/v1/auth/token", json=asking(device))).status_code == 200


NAMESPACES = [("--unshare-user",), ("--unshare-user", "--unshare-pid"), ("--unshare-pid",)]


@pytest.mark.parametrize("namespaces", NAMESPACES, ids=" ".join)
async def test_nobody_in_a_sandbox_is_the_owner(
    doors: Doors, require_tool: Callable[[str], str], namespaces: tuple[str, ...]
) -> None:
    """The user is the owner's, and nothing else than the namespaces tells."""
    sandbox = (require_tool("bwrap"), *namespaces, "--bind", "/", "/", "--proc", "/proc")
    device = await asked_by(*sandbox, path=doors.path)
    says(await doors.tcp.post("/v1/auth/token", json=asking(device)), "authorization_pending")


async def test_a_caller_that_has_ended_is_not_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number may be another process's by then; the connection may be in other hands."""
    with socket.socket(socket.AF_UNIX) as listener, socket_address(tmp_path / "s") as name:
        listener.bind(name)
        listener.listen()
        calling = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        caller = await asyncio.create_subprocess_exec("/usr/bin/python3", "-c", calling)
        await caller.wait()
        accepted, _ = listener.accept()
        with accepted:
            assert not is_owner(accepted)
            # As if its number was that of a process of the owner by now.
            monkeypatch.setattr(middleware, "_namespace", lambda *_: (0, 0))
            assert not is_owner(accepted)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "invalid_request"),
        (b"[]", "invalid_request"),
        (b"{no json", "invalid_request"),
        (b"\xff", "invalid_request"),
        (b'{"device_code": "x"}', "invalid_request"),
        (b'{"grant_type": "password", "device_code": "x"}', "unsupported_grant_type"),
        (b'{"grant_type": "%s"}' % GRANT.encode(), "invalid_request"),
        (b'{"grant_type": "%s", "device_code": "x"}' % GRANT.encode(), "invalid_grant"),
        (
            b'{"grant_type": "%s", "device_code": "\\u00e9"}' % GRANT.encode(),
            "invalid_grant",
        ),
    ],
    ids=range(9),
)
async def test_a_bad_token_request_says_so(
    client: httpx.AsyncClient, body: bytes, error: str
) -> None:
    answer = await client.post("/v1/auth/token", content=body, headers={"Authorization": ""})
    says(answer, error)


@pytest.mark.parametrize(
    "body", [b"", b"\xff=1", b"grant_type=a&grant_type=b", b"%zz"], ids=range(4)
)
async def test_a_bad_form_says_so(client: httpx.AsyncClient, body: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    says(await client.post("/v1/auth/token", content=body, headers=headers), "invalid_request")


async def test_a_request_expires(context: ServiceContext, home: Home) -> None:
    device = await begin(context, "http://a/", by_owner=True)
    context.clock = lambda: utc_now() + timedelta(seconds=601)
    tokens = Tokens(context.vault.derived(USE))
    with pytest.raises(ApiError, match="expired_token"):
        await collect(context, tokens, device.device_code)
    context.clock = lambda: utc_now() + timedelta(hours=2)
    await begin(context, "http://a/", by_owner=True)
    with pytest.raises(ApiError, match="invalid_grant"):
        await collect(context, tokens, device.device_code)


async def test_only_so_many_devices_wait(context: ServiceContext) -> None:
    few = DeviceSettings(waiting=2)
    for _ in range(2):
        await begin(context, "http://a/", False, few)
    with pytest.raises(ApiError) as refusal:
        await begin(context, "http://a/", False, few)
    assert (refusal.value.status, refusal.value.retry_after) == (429, 600)
    await begin(context, "http://a/", True, few)
    context.clock = lambda: utc_now() + timedelta(seconds=601)
    await begin(context, "http://a/", False, few)


async def test_the_place_to_go_to_says_what_to_do(doors: Doors) -> None:
    device = await ask(doors.tcp)
    page = await doors.tcp.get(device["verification_uri"])
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/plain")
    assert "qd auth approve CODE" in page.text


@pytest.mark.parametrize(
    ("peer", "named", "scheme"),
    [
        ("127.0.0.1", "https", "https"),
        ("::1", "https", "https"),
        ("127.0.0.1", "javascript", "http"),
        ("203.0.113.9", "https", "http"),
    ],
)
async def test_only_a_proxy_of_this_machine_names_the_scheme(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, peer: str, named: str, scheme: str
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # of uvicorn, which is not asked
    transport = httpx.ASGITransport(app, client=(peer, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://deck.example") as client:
        answer = await client.post("/v1/auth/device", headers={"X-Forwarded-Proto": named})
    assert answer.json()["verification_uri"] == f"{scheme}://deck.example/v1/auth/verify"


async def test_neither_code_is_stored_readable(doors: Doors, context: ServiceContext) -> None:
    device = await ask(doors.tcp)
    rows = await context.database.read(
        lambda c: c.execute(text("SELECT * FROM device_codes")).all()
    )
    assert device["device_code"] not in str(rows)


async def test_a_token_says_little_and_ends(context: ServiceContext) -> None:
    owner = await owner_of(context.database)
    claims = jwt.decode(token_of(context, owner), options={"verify_signature": False})
    assert claims.keys() == {"iss", "aud", "sub", "iat", "exp", "jti"}
    assert claims["exp"] - claims["iat"] == 3600
