"""Previews through the real service, of real programs in real sandboxes (docs/interface.md 6)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from quarterdeck.service.fleet.transitions import enter_sleeping
from quarterdeck.service.formats import moment_text
from quarterdeck.service.http_protocol import limits_for
from quarterdeck.service.listeners import TcpListener, bind
from quarterdeck.service.previews import reverse_proxy
from quarterdeck.service.previews import reverse_proxy as exchange
from quarterdeck.service.previews.service import MOST_PREVIEWS
from tests.support.installation import free_port
from tests.support.waiting import WAIT_SECONDS, eventually
from tests.workspace_files.conftest import RealWorld, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER = r"""
import http.server, sys, threading
released = threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path == "/ws":
            self.send_response(101)
            self.send_header("Upgrade", "echo"); self.send_header("Connection", "Upgrade")
            self.end_headers()
            while data := self.connection.recv(1000):
                self.connection.sendall(b"<" + data + b">")
            self.close_connection = True
            return
        if self.path == "/ws-unread":
            self.send_response(101)
            self.send_header("Upgrade", "echo"); self.send_header("Connection", "Upgrade")
            self.end_headers(); released.wait(); return
        if self.path == "/moved":
            self.send_response(302); self.send_header("Location", "/there")
            self.send_header("Content-Length", "0"); self.end_headers(); return
        if self.path == "/release":
            released.set()
        if self.path == "/stream":
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\none\r\n"); self.wfile.flush()
            released.wait()
            self.wfile.write(b"3\r\ntwo\r\n0\r\n\r\n"); return
        text = "\n".join([self.path, *(f"{k}: {v}" for k, v in self.headers.items())]).encode()
        self.send_response(200); self.send_header("Connection", "X-Hop, close"); self.send_header("X-Hop", "1")
        self.send_header("Keep-Alive", "5"); self.send_header("X-Kept", "1")
        self.send_header("Content-Length", str(len(text))); self.end_headers(); self.wfile.write(text)
    def do_POST(self):
        if self.path == "/unread":
            released.wait(); return
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size); self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers["Content-Length"]))
        text = str(len(data)).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(text))); self.end_headers()
        self.wfile.write(text)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


async def as_workspace(world: RealWorld, id: str) -> dict[str, str]:
    from quarterdeck.service.replicas.rows import find_workspace

    row = await world.context.database.read(lambda c: find_workspace(c, id))
    assert row is not None
    secret = world.context.vault.unseal(row.id, row.engine_secret_sealed)
    return {"Authorization": f"Bearer {secret}", "X-Workspace-Id": id}


async def serving(world: RealWorld, made: str) -> tuple[int, str]:
    """A program that listens in a workspace; its port, and the address of its preview."""
    port = free_port()
    await world.post(
        made,
        "/exec",
        {"command": f"cat > ~/s.py <<'E'\n{SERVER}\nE\npython3 ~/s.py {port} >/dev/null 2>&1 &"},
    )
    opened = await world.client.post(
        "/v1/previews", json={"port": port}, headers=await as_workspace(world, made)
    )
    assert opened.status_code == 201, opened.text

    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    await eventually(listens, "the program")
    return port, opened.json()["preview"]["publicUrl"]


@pytest.mark.long
async def test_previews_are_bounded_and_never_the_services_own(
    world: RealWorld, active: str
) -> None:
    inside = await as_workspace(world, active)

    async def ask(port: int) -> tuple[int, str]:
        answer = await world.client.post("/v1/previews", json={"port": port}, headers=inside)
        return answer.status_code, answer.json().get("code", "")

    ports = range(5000, 5000 + MOST_PREVIEWS)
    assert {await ask(port) for port in ports} == {(201, "")}
    assert await ask(80) == (409, "CONFLICT")
    assert await ask(ports[0]) == (200, "")
    listed = (await world.client.get(f"/v1/replica/{active}/previews")).json()["previews"]
    own = httpx.URL(listed[0]["publicUrl"]).port
    assert own is not None
    assert await ask(own) == (400, "INVALID_REQUEST")
    # Also when the service came to listen there after the preview was opened.
    await world.client.delete(f"/v1/previews/{ports[0]}", headers=inside)
    taken = free_port()
    assert await ask(taken) == (201, "")
    listed = (await world.client.get(f"/v1/replica/{active}/previews")).json()["previews"]
    url = next(one["publicUrl"] for one in listed if one["port"] == taken)
    with closing(bind(TcpListener("127.0.0.1", taken))):
        async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as browser:
            refused = await browser.get(url)
    assert refused.status_code == 502
    assert "the service's own" in refused.text
    for port in (*ports[1:], taken):
        await world.client.delete(f"/v1/previews/{port}", headers=inside)


async def test_open_list_and_close(world: RealWorld, active: str) -> None:
    inside = await as_workspace(world, active)
    told_before = len(await world.events(active, "preview.changed"))
    opened = await world.client.post("/v1/previews", json={"port": 4000}, headers=inside)
    assert opened.status_code == 201
    preview = opened.json()["preview"]
    assert preview.keys() == {"port", "publicUrl", "createdAt"}
    again = await world.client.post("/v1/previews", json={"port": 4000}, headers=inside)
    assert (again.status_code, again.json()) == (200, {"preview": preview})
    await world.client.post("/v1/previews", json={"port": 80}, headers=inside)
    for family in ("replica", "workspaces"):
        listed = (await world.client.get(f"/v1/{family}/{active}/previews")).json()["previews"]
        assert [one["port"] for one in listed] == [80, 4000]
        assert listed[1] == preview
    closed = await world.client.delete("/v1/previews/80", headers=inside)
    assert closed.json() == {"success": True, "port": 80}
    closed = await world.client.delete(f"/v1/workspaces/{active}/previews/4000")
    assert closed.json() == {"success": True, "port": 4000}
    gone = await world.client.delete(f"/v1/workspaces/{active}/previews/4000")
    assert (gone.status_code, gone.json()["code"]) == (404, "NOT_FOUND")
    told = (await world.events(active, "preview.changed"))[told_before:]
    assert [[one["port"] for one in event["previews"]] for event in told] == [
        [4000], [80, 4000], [4000], []
    ]  # fmt: skip


async def test_who_may_open_one(world: RealWorld, active: str) -> None:
    other = await world.create(wait=False)
    inside = await as_workspace(world, active)
    with_key = await world.client.post("/v1/previews", json={"port": 4000})
    assert with_key.status_code in (401, 403)
    mixed = inside | {"X-Workspace-Id": other}
    assert (
        await world.client.post("/v1/previews", json={"port": 1}, headers=mixed)
    ).status_code == 401
    outside = await world.client.get(f"/v1/workspaces/{active}/previews", headers=inside)
    assert outside.status_code in (401, 403)
    for port in (0, 65_536, "80", 80.5, None, True):
        refused = await world.client.post("/v1/previews", json={"port": port}, headers=inside)
        assert refused.status_code == 400, port
    for port in (1, 65_535):
        taken = await world.client.post("/v1/previews", json={"port": port}, headers=inside)
        assert taken.status_code == 201, port


async def test_requests_are_passed_on(world: RealWorld, active: str) -> None:
    port, url = await serving(world, active)
    token = url.split("/")[3]
    async with httpx.AsyncClient(timeout=WAIT_SECONDS) as browser:
        got = await browser.get(f"{url}a/b?q=1", headers={"Connection": "X-Mine", "X-Mine": "1"})
        said = got.text.splitlines()
        assert said[0] == "/a/b?q=1"
        assert f"Host: localhost:{port}" in said and "X-Forwarded-Proto: http" in said
        assert not [line for line in said if line.lower().startswith("x-mine")]
        assert got.headers["x-kept"] == "1"
        assert "x-hop" not in got.headers and "keep-alive" not in got.headers
        assert (await browser.get(url.rstrip("/"))).text.splitlines()[0] == "/"
        # The program goes on only after its first words have come through.
        async with asyncio.timeout(60), browser.stream("GET", f"{url}stream") as stream:
            said = stream.aiter_text()
            assert await anext(said) == "one"
            await browser.get(f"{url}release")
            assert "".join([text async for text in said]) == "two"
        moved = await browser.get(f"{url}moved")
        assert moved.headers["location"] == f"/{token}/there"
        by_host = {"Host": f"{token}.localhost:1"}
        base = "/".join(url.split("/")[:3])
        assert (await browser.get(f"{base}/x", headers=by_host)).text.splitlines()[0] == "/x"
        assert (await browser.get(f"{base}/moved", headers=by_host)).headers["location"] == "/there"
        navigated = await browser.get(f"{url}p", headers={"Sec-Fetch-Mode": "navigate"})
        assert navigated.status_code == 307
        assert (
            navigated.headers["location"]
            == f"http://{token}.localhost:{url.split(':')[2].split('/')[0]}/p"
        )

        async def parts() -> Any:
            for _ in range(20):
                yield b"x" * 100_000

        assert (await browser.post(url, content=parts())).text == "2000000"
        assert (await browser.post(url, content=b"y" * 3_000_000)).text == "3000000"


async def test_a_protocol_can_be_switched(world: RealWorld, active: str) -> None:
    _, url = await serving(world, active)
    _, _, host, token, _ = url.split("/")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    head = (
        f"GET /{token}/ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
    )
    writer.write(head.encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101") and b"Upgrade: echo" in answer
    for text in (b"one", b"two"):
        writer.write(text)
        assert await reader.readexactly(5) == b"<" + text + b">"
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()


async def switched(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the echo of a preview."""
    _, _, host, token, _ = url.split("/")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    head = f"GET /{token}/ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: echo\r\n\r\n"
    writer.write(head.encode() + b"one")
    await reader.readuntil(b"\r\n\r\n<one>")
    return reader, writer


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            return await reader.read() == b""
    except ConnectionError:
        return True


async def close_it(world: RealWorld, id: str, port: int) -> None:
    assert (await world.client.delete(f"/v1/replica/{id}/previews/{port}")).status_code == 200


async def stop_it(world: RealWorld, id: str, port: int) -> None:
    # Only the row: what ends the connection must not be the end of the program.
    now = moment_text(world.context.clock())
    assert await world.context.event_log.write(lambda w: enter_sleeping(w, id, now))


async def lose_it(world: RealWorld, id: str, port: int) -> None:
    world.context.event_log.drop(id)  # as when it was deleted


@pytest.mark.parametrize("end", [close_it, stop_it, lose_it])
async def test_what_is_under_way_ends_with_the_preview(
    world: RealWorld, active: str, end: Callable[[RealWorld, str, int], Awaitable[None]]
) -> None:
    port, url = await serving(world, active)
    _, other_url = await serving(world, active)
    reader, writer = await switched(url)
    other_reader, other_writer = await switched(other_url)
    try:
        await end(world, active, port)
        assert await ended(reader)
        if end is close_it:
            other_writer.write(b"two")
            assert await other_reader.readexactly(5) == b"<two>"
        else:
            assert await ended(other_reader)
    finally:
        writer.close()
        other_writer.close()
        await world.set_status(active, "active")


def connected_to(port: int) -> list[str]:
    """The established connections to a port of this machine."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [one[1] for one in lines if one[2].endswith(f":{port:04X}") and one[3] == "01"]


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65536


@pytest.mark.long
async def test_a_program_that_reads_nothing_holds_no_connection(
    world: RealWorld, active: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reverse_proxy, "STALL_SECONDS", 0.2)
    port, url = await serving(world, active)
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as browser:
        answer = await browser.post(f"{url}unread", content=b"x" * 40_000_000)
        assert (answer.status_code, answer.text) == (
            504,
            f"The program on port {port} of the replica does not read the request.\n",
        )
        reader, writer = await asyncio.open_connection(*url.split("/")[2].split(":"))
        path = httpx.URL(url).path
        writer.write(f"GET {path}ws-unread HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        with pytest.raises(ConnectionError):
            async for data in endless():
                writer.write(data)
                await writer.drain()
        writer.close()

        async def closed() -> bool:  # although much of what was sent was never read
            return not any(connected_to(port))

        await eventually(closed, "the end of both connections")
        await browser.get(f"{url}release")


async def test_only_open_previews_of_active_workspaces(world: RealWorld, active: str) -> None:
    port, url = await serving(world, active)
    base = "/".join(url.split("/")[:3])
    async with httpx.AsyncClient(timeout=WAIT_SECONDS) as browser:
        for wrong in (f"{base}/", f"{base}/{'0' * 32}/", f"{base}/{port}/"):
            assert (await browser.get(wrong)).status_code == 404
        await world.set_status(active, "sleeping")
        assert (await browser.get(url)).status_code == 503
        await world.set_status(active, "active")
        assert (await browser.get(url)).status_code == 200
        silent = await world.client.post(
            "/v1/previews", json={"port": 1}, headers=await as_workspace(world, active)
        )
        assert (await browser.get(silent.json()["preview"]["publicUrl"])).status_code == 502
        await world.client.delete(f"/v1/workspaces/{active}/previews/{port}")
        assert (await browser.get(url)).status_code == 404


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"",
    ],
    ids=range(5),
)
async def test_what_is_no_request_ends_the_connection(
    world: RealWorld, active: str, sent: bytes
) -> None:
    opened = await world.client.post(
        "/v1/previews", json={"port": 1}, headers=await as_workspace(world, active)
    )
    host = opened.json()["preview"]["publicUrl"].split("/")[2]
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(sent)
    writer.write_eof()
    answer = await reader.read()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    writer.close()


@pytest_asyncio.fixture(loop_scope="module")
async def tight(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RealWorld]:
    """An installation of its own whose previews have 16 connections in all, 8 of them without a
    request, 4 for each replica.
    """
    monkeypatch.setattr(reverse_proxy, "limits_here", lambda: limits_for(256))
    async with opened() as made:
        yield made


@pytest.mark.long
async def test_connections_without_a_request_keep_nobody_out(
    tight: RealWorld, caplog: pytest.LogCaptureFixture
) -> None:
    _, url = await serving(tight, await tight.create())
    async with AsyncExitStack() as stack:
        for _ in range(60):
            _, writer = await asyncio.open_connection(*url.split("/")[2].split(":"))
            stack.callback(writer.close)
            writer.write(b"GET / HT")
        async with httpx.AsyncClient(timeout=WAIT_SECONDS) as browser:
            assert (await browser.get(url)).status_code == 200
    assert len([one for one in caplog.messages if "without one" in one]) == 1


@pytest.mark.long
async def test_one_replica_cannot_take_the_connections_of_others(tight: RealWorld) -> None:
    _, url = await serving(tight, await tight.create())
    other = await tight.create()
    free = await tight.client.post(
        "/v1/previews", json={"port": 1}, headers=await as_workspace(tight, other)
    )
    async with httpx.AsyncClient(timeout=WAIT_SECONDS) as browser, AsyncExitStack() as stack:
        held = [browser.stream("GET", f"{url}stream") for _ in range(4)]
        texts = [(await stack.enter_async_context(one)).aiter_text() for one in held]
        assert [await anext(text) for text in texts] == ["one"] * 4
        refused = await browser.get(url)
        assert (refused.status_code, refused.text) == (
            503,
            "The replica of this preview has too many connections.\n",
        )
        assert (await browser.get(free.json()["preview"]["publicUrl"])).status_code == 502
    async with httpx.AsyncClient(timeout=WAIT_SECONDS) as browser:

        async def served() -> bool:  # although the program has not answered those that left
            return (await browser.get(url)).status_code == 200

        await eventually(served, "a connection")


async def test_a_head_is_bounded(
    world: RealWorld, active: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url = await serving(world, active)
    async with httpx.AsyncClient(timeout=WAIT_SECONDS) as browser:
        fields = {f"X-{n}": "1" for n in range(101)}
        assert (await browser.get(url, headers=fields)).status_code == 431
    monkeypatch.setattr(exchange, "HEAD_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(*url.split("/")[2].split(":"))
    writer.write(b"GET / HT")
    assert await reader.read() == b""
    writer.close()


async def test_addresses_stay_over_a_restart(world: RealWorld, active: str) -> None:
    _, url = await serving(world, active)
    await world.stop()
    await world.start()
    async with httpx.AsyncClient(timeout=WAIT_SECONDS) as browser:

        async def back() -> bool:
            return (await browser.get(url)).status_code == 200

        await eventually(back, "the preview")
