"""Requests of strangers, and of callers whose key was revoked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import httpx
import pytest

from quarterdeck.service import middleware
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.sign_in import DeviceRequests, peer_of
from quarterdeck.service.identity.tokens import DeviceSettings
from quarterdeck.service.listeners import TcpListener
from quarterdeck.service.middleware import BODY_VALUES
from quarterdeck.service.server import serve
from quarterdeck.wire.dial_home import LINK_PATH
from tests.fleet.conftest import World
from tests.support.waiting import WAIT_SECONDS

pytestmark = pytest.mark.one_database


@pytest.fixture
async def address(world: World) -> AsyncIterator[tuple[str, int]]:
    ready: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        serve(
            world.service,
            [TcpListener("127.0.0.1", 0)],
            lambda bound: ready.set_result(bound[0].address),  # pyright: ignore
        )
    )
    yield await ready
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_peer_runs_out_of_logins_alone(address: tuple[str, int]) -> None:
    url = f"http://{address[0]}:{address[1]}/v1/auth/device"
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as client:

        async def ask(peer: str) -> int:
            return (await client.post(url, headers={"X-Forwarded-For": peer})).status_code

        assert {await ask("203.0.113.9") for _ in range(30)} == {200}
        # What a caller claims before what the proxy adds is not believed.
        for claimed in ("203.0.113.9", "198.51.100.1, 203.0.113.9"):
            assert await ask(claimed) == 429
        assert [await ask(peer) for peer in ("203.0.113.10", "2001:db8::1")] == [200, 200]
        assert (await client.post(url)).status_code == 200


async def test_a_proxy_may_add_a_header_of_its_own(address: tuple[str, int]) -> None:
    """Some add a line, after that which the caller has written."""
    url = f"http://{address[0]}:{address[1]}/v1/auth/device"
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as client:
        codes = [
            (
                await client.post(
                    url,
                    headers=[
                        ("X-Forwarded-For", f"198.51.100.{number}"),
                        ("X-Forwarded-For", "203.0.113.11"),
                    ],
                )
            ).status_code
            for number in range(31)
        ]
    assert codes == [200] * 30 + [429]


async def test_an_address_that_a_header_names_counts_as_one(
    world: World, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else any program of this machine could make up addresses that seem to connect themselves."""
    taken: list[tuple[str, bool]] = []
    monkeypatch.setattr(DeviceRequests, "take", lambda _, *peer: taken.append(peer))
    url = f"http://{address[0]}:{address[1]}/v1/auth/device"
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as client:
        for headers in ({"X-Forwarded-For": "203.0.113.9"}, {"X-Forwarded-For": "x, 203.0.113.9"}):
            await client.post(url, headers=headers)
        await client.post(url, headers={"X-Forwarded-For": "203.0.113.9, 127.0.0.1"})
        answer = await client.post(url, headers={"X-Forwarded-Proto": "https", "Host": "a.example"})
    assert taken == [("203.0.113.9", True)] * 2 + [("127.0.0.1", True), ("127.0.0.1", False)]
    assert answer.json()["verification_uri"] == "https://a.example/v1/auth/verify"


@pytest.mark.parametrize("name", ["Host", "Authorization", "Service-Org-Id", "X-Workspace-Id"])
async def test_who_asks_is_said_once(address: tuple[str, int], name: str) -> None:
    """What reads the first of them and what reads the last would disagree."""
    head = NEXT.replace("Host: a", f"Host: a\r\n{name}: b\r\n{name}: b")
    answer = await exchange(address, head)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert f"at most one {name.lower()}".encode() in answer


def test_the_name_of_a_peer() -> None:
    assert peer_of("203.0.113.9", "198.51.100.1") == ("203.0.113.9", False)
    assert peer_of("127.0.0.1", "a, 198.51.100.1") == ("198.51.100.1", True)
    assert peer_of("127.0.0.1", "nonsense") == ("127.0.0.1", False)
    assert peer_of("127.0.0.1", "127.0.0.1") == ("127.0.0.1", True)
    assert peer_of("2001:db8::1", "") == peer_of("2001:db8::ffff", "") == ("2001:db8::/64", False)


def test_logins_of_a_peer_come_back() -> None:
    now = [0.0]
    requests = DeviceRequests(DeviceSettings(of_peer=2), lambda: now[0])
    requests.take("a")
    now[0] = 10.0
    requests.take("a")
    with pytest.raises(ApiError) as refused:
        requests.take("a")
    assert refused.value.retry_after == 590
    now[0] = 600.5
    requests.take("a")


@pytest.mark.parametrize("forwarded", [True, False])
def test_ever_new_peers_leave_half_of_the_logins_to_others(forwarded: bool) -> None:
    """Any program of this machine can write the header of a proxy, with any address in it."""
    now = [0.0]
    requests = DeviceRequests(DeviceSettings(waiting=6), lambda: now[0])
    for peer in "abc":
        requests.take(peer, forwarded)
    with pytest.raises(ApiError, match="Too many devices wait"):
        requests.take("d", forwarded)
    for peer in "abc":
        requests.take(peer, not forwarded)
    now[0] = 590.5
    with pytest.raises(ApiError) as refused:
        requests.take("d", forwarded)
    assert refused.value.retry_after == 10
    now[0] = 600.5
    for peer in "def":
        requests.take(peer, forwarded)
    with pytest.raises(ApiError):
        requests.take("g", forwarded)


async def test_a_trailer_changes_nothing(world: World, address: tuple[str, int]) -> None:
    key = world.headers["Authorization"]
    body = b'5\r\n{"a":\r\n2\r\n1}\r\n0\r\n'

    async def ask(head: str, trailer: str) -> bytes:
        reader, writer = await asyncio.open_connection(*address)
        text = f"POST /v1/replica HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{head}"
        text += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(text.encode() + body + f"{trailer}\r\n".encode())
        try:
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()

    own, other = f"Authorization: {key}\r\n", "Authorization: Bearer sk_wrong\r\n"
    accepted, refused = b"HTTP/1.1 400", b"HTTP/1.1 401"
    assert (await ask(own, "")).startswith(accepted)
    assert (await ask(own, other)).startswith(accepted)
    assert (await ask(other, own)).startswith(refused)
    assert (await ask("", own)).startswith(refused)
    # They count as headers; the request is being served, so there is no other answer than the end.
    assert (await ask(own, "X: y\r\n" * 90)).startswith(accepted)
    assert await ask(own, "X: y\r\n" * 100) == b""


async def exchange(address: tuple[str, int], *parts: str) -> bytes:
    """Return what the service answers to parts of requests, each sent after an answer began."""
    reader, writer = await asyncio.open_connection(*address)
    answer = b""
    with suppress(ConnectionError):  # it has been refused, and closed
        for part in parts:
            writer.write(part.encode())
            answer += await reader.read(1 << 16)
        answer += await reader.read()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return answer


UPGRADE = "Connection: Upgrade\r\nUpgrade: {}\r\n"
NEXT = "GET /v1/auth/verify HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("upgrade", [*map(UPGRADE.format, ("h2c", "websocket")), "Upgrade: x\r\n"])
@pytest.mark.parametrize("path", ["/v1/auth/device", LINK_PATH])
@pytest.mark.parametrize(
    "body",
    [
        f"Content-Length: {len(NEXT)}\r\n\r\n{NEXT}",
        f"Transfer-Encoding: chunked\r\n\r\n{len(NEXT):x}\r\n{NEXT}\r\n0\r\n\r\n",
    ],
)
async def test_a_request_for_another_protocol_has_no_body(
    address: tuple[str, int], upgrade: str, path: str, body: str
) -> None:
    """A proxy takes the body for a body, and the service would take it for another request."""
    head, mark, rest = f"POST {path} HTTP/1.1\r\nHost: a\r\n{upgrade}{body}".partition("\r\n\r\n")
    for parts in ([head + mark + rest], [head + mark, rest]):
        answer = await exchange(address, *parts)
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"connection: close\r\n" in answer
        assert b"no body" in answer


async def test_a_request_after_one_for_another_protocol_is_answered(
    address: tuple[str, int],
) -> None:
    """A connection that is used again would give its answer to the request after it."""
    for upgrade in map(UPGRADE.format, ("h2c", "websocket")):
        for length in ("", "Content-Length: 0\r\n"):
            head = f"GET /v1/auth/verify HTTP/1.1\r\nHost: a\r\n{upgrade}{length}\r\n"
            answer = await exchange(address, head + head + NEXT)
            assert answer.count(b"HTTP/1.1 200 OK") == 3, answer


async def test_streams_end_soon_after_their_key_was_revoked(
    world: World, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "RECHECK_SECONDS", 0.05)
    made = await world.create()
    keys = "/v1/organization/api-keys"
    key = (await world.client.post(keys, json={"name": "lost"})).json()
    size = {"cols": 80, "rows": 24}
    session = (await world.post(made, "/terminal/sessions", size)).json()
    terminal = f"/v1/replica/{made}/terminal/sessions/{session['session']['id']}/stream"
    lost = {"Authorization": f"Bearer {key['key']}"}
    base = f"http://{address[0]}:{address[1]}"
    async with (
        httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS, base_url=base) as client,
        AsyncExitStack() as stack,
    ):
        paths = (terminal, f"/v1/replica/{made}/events", "/v1/automations/events")
        streams = [
            await stack.enter_async_context(client.stream("GET", path, headers=lost))
            for path in paths
        ]
        own = await stack.enter_async_context(client.stream("GET", paths[1], headers=world.headers))
        assert {one.status_code for one in (*streams, own)} == {200}
        assert (await world.client.delete(f"{keys}/{key['api_key']['id']}")).status_code == 200
        async with asyncio.timeout(10):
            for stream in streams:
                with pytest.raises(httpx.RemoteProtocolError):
                    async for _ in stream.aiter_raw():
                        pass
            await world.send(made, "still here")
            async for text in own.aiter_text():
                if "still here" in text:
                    break


async def test_what_was_begun_with_a_key_is_finished_after_it_was_revoked(
    world: World, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only answers are cut off: a deletion would be left half done."""
    monkeypatch.setattr(middleware, "RECHECK_SECONDS", 0.01)
    made, other = await world.create(), await world.create()
    keys = "/v1/organization/api-keys"
    key = (await world.client.post(keys, json={"name": "lost"})).json()
    begun, go, destroy = asyncio.Event(), asyncio.Event(), world.driver.destroy

    async def slow(workspace_id: str) -> None:
        begun.set()
        await go.wait()
        await destroy(workspace_id)

    monkeypatch.setattr(world.driver, "destroy", slow)
    base = f"http://{address[0]}:{address[1]}"
    lost = {"Authorization": f"Bearer {key['key']}"}
    async with httpx.AsyncClient(
        trust_env=False, timeout=WAIT_SECONDS, base_url=base, headers=lost
    ) as client:
        deleting = asyncio.create_task(client.delete(f"/v1/replica/{made}"))
        await begun.wait()
        async with client.stream("GET", f"/v1/replica/{other}/events") as stream:
            assert (await world.client.delete(f"{keys}/{key['api_key']['id']}")).status_code == 200
            with pytest.raises(httpx.RemoteProtocolError):
                async for _ in stream.aiter_raw():
                    pass
        go.set()
        assert (await deleting).status_code == 200


@pytest.mark.parametrize("value", [b"[]", b"{}", b"1", b'""'])
async def test_a_body_of_many_small_values_is_refused_before_it_is_read(
    world: World, value: bytes
) -> None:
    """Reading 8 MB of them would take seconds, in which no other request is answered."""
    for count, status in ((BODY_VALUES, 413), (BODY_VALUES // 8, 400)):
        body = b'{"unknown":[' + (value + b",") * count + value + b"]}"
        for kinds in (
            ["application/json"],
            ["Application/x+JSON; a=b"],
            ["application/json", "a/b"],
        ):
            headers = [("Content-Type", kind) for kind in kinds]
            answer = await world.client.post("/v1/replica", content=body, headers=headers)
            assert answer.status_code == status, (kinds, count)


async def test_text_in_a_body_may_have_many_commas(world: World) -> None:
    made = await world.create()
    sent = await world.send(made, "[,]" * BODY_VALUES)
    assert await world.done(made, sent["message_id"])


async def test_a_stranger_sends_little_to_be_read(world: World) -> None:
    """The request for a token needs no key."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body, status in ((b"a=b&" * (4 << 10) + b"a", 413), (b"a=b", 400)):
        answer = await world.client.post("/v1/auth/token", content=body, headers=form)
        assert answer.status_code == status
