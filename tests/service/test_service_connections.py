"""What connections may cost before anybody is known: how many, how long, how large a head."""

import asyncio
import json
import resource
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.local.home import Home
from quarterdeck.service import http_protocol
from quarterdeck.service.certificate import certificate_for
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.http_protocol import (
    HEAD_BYTES,
    HEADERS,
    PIPELINED,
    Acceptor,
    ConnectionLimits,
    Connections,
    limits_for,
)
from quarterdeck.service.listeners import (
    Entrance,
    InsideTcpListener,
    TcpListener,
    UnixListener,
    bind,
)
from tests.service.test_service_server import key_of, over, running

pytestmark = pytest.mark.one_database

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n"


@asynccontextmanager
async def opened(address: Path | tuple[str, int]) -> AsyncIterator[Opened]:
    """A bare connection to the service."""
    if isinstance(address, Path):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()


@pytest.fixture(params=["unix", "tcp", "inside"])
async def address(
    request: pytest.FixtureRequest, context: ServiceContext, home: Home
) -> AsyncIterator[Path | tuple[str, int]]:
    """A running service, by each of its ways."""
    async with running(context, UnixListener(home.socket), TcpListener("127.0.0.1", 0)) as bound:
        yield {"unix": home.socket, "tcp": bound[1].address, "inside": home.inside_socket}[
            request.param
        ]


async def answer_to(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    return int(head.split()[1]), json.loads(await reader.readexactly(length))


async def is_cut(reader: asyncio.StreamReader) -> bool:
    """Wait for the end of a connection on which nothing was answered."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def head_of(size: int, fields: int = 2) -> bytes:
    """Return a request whose head has a size, as it is counted, and a number of fields."""
    more = b"".join(b"x-%d: a\r\n" % n for n in range(fields - 2))
    start = b"GET /v1/health HTTP/1.1\r\nhost: a\r\n"
    counted = len(start) + len(more) - len(b"GET  HTTP/1.1\r\n") + len(b"y: \r\n")
    return start + more + b"y: " + b"y" * (size - counted) + b"\r\n\r\n"


async def test_a_head_within_the_bounds_is_served(address: Path | tuple[str, int]) -> None:
    for head in (head_of(HEAD_BYTES), head_of(HEAD_BYTES // 2, HEADERS)):
        async with opened(address) as (reader, writer):
            writer.write(head)
            assert (await answer_to(reader))[0] == 200


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (head_of(HEAD_BYTES + 1), f"head: at most {HEAD_BYTES} bytes"),
        (head_of(HEAD_BYTES // 2, HEADERS + 1), f"head: at most {HEADERS} headers"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nnonsense\r\n\r\n", "head: not valid HTTP"),
        (b"GET http://a:b:c/ HTTP/1.1\r\nhost: a\r\n\r\n", "head: not valid HTTP"),
    ],
    ids=["size", "fields", "syntax", "target"],
)
async def test_a_head_beyond_the_bounds_is_refused(
    address: Path | tuple[str, int], sent: bytes, told: str
) -> None:
    async with opened(address) as (reader, writer):
        writer.write(sent)
        status, error = await answer_to(reader)
        assert (status, error["code"], error["details"]) == (400, "INVALID_REQUEST", told)
        assert await reader.read() == b""


async def endless(writer: asyncio.StreamWriter, start: bytes) -> int:
    """Send a head's beginning and then more of it until the connection is cut; its size."""
    sent = 0
    writer.write(start)
    try:
        while True:
            writer.write(b"y" * 4096)
            await writer.drain()
            sent += 4096
    except ConnectionError:
        return sent


@pytest.mark.parametrize(
    "start",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nhost: a\r\ny: ",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        HEALTH + b"GET / HTTP/1.1\r\ny: ",
        b"POST /v1/auth/token HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\ny: ",
        b"POST /v1/auth/token HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1;",
    ],
    ids=["target", "value", "name", "second", "trailer", "extension"],
)
async def test_a_head_without_end_is_cut_off(address: Path | tuple[str, int], start: bytes) -> None:
    """Also fields after the body, and what else the parser gathers before it tells anything."""
    async with opened(address) as (_, writer):
        async with asyncio.timeout(60):
            assert await endless(writer, start) < 8 << 20  # what the sockets themselves hold


async def test_a_head_that_does_not_come_is_not_waited_for(
    address: Path | tuple[str, int], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
    for begun in (b"", b"GET / HT", b"\r\n"):
        async with opened(address) as (reader, writer):
            writer.write(begun)
            assert await is_cut(reader)
    async with opened(address) as (reader, writer):
        writer.write(HEALTH)
        assert (await answer_to(reader))[0] == 200
        writer.write(b"GET /v1/health HTTP/1.1\r\n")
        assert await is_cut(reader)
    assert len([one for one in caplog.records if "not complete" in one.message]) == 1


async def test_a_body_that_nobody_waits_for_is_not_waited_for(
    address: Path | tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a request that was answered before it was complete."""
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
    async with opened(address) as (reader, writer):
        writer.write(b"POST /v1/replica HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n")
        assert (await answer_to(reader))[0] == 401
        writer.write(b"x")
        assert await is_cut(reader)


async def test_a_connection_is_kept_for_the_next_request(
    address: Path | tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time for heads is not the time between requests."""
    refused = b"POST /v1/replica HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n"
    async with opened(address) as (reader, writer):
        for request, body in ((HEALTH, b""), (refused, b"x" * 9), (HEALTH, b"")):
            writer.write(request)
            await answer_to(reader)
            writer.write(body)
        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.0)
        async with opened(address) as (other, _):
            assert await is_cut(other)
        monkeypatch.undo()
        writer.write(HEALTH)
        assert (await answer_to(reader))[0] == 200


async def test_requests_that_wait_on_one_connection_are_bounded(
    address: Path | tuple[str, int],
) -> None:
    async with opened(address) as (reader, writer):
        writer.write(HEALTH * PIPELINED)
        for _ in range(PIPELINED):
            assert (await answer_to(reader))[0] == 200
    async with opened(address) as (reader, writer):
        writer.write(HEALTH * (PIPELINED + 2))
        assert await is_cut(reader)


class CountedConnections(Connections):
    """Has room for one connection, and tells when it is taken."""

    def __init__(self) -> None:
        super().__init__(ConnectionLimits({Entrance.INSIDE: 1}, {Entrance.INSIDE: 1}))
        self.admitted = asyncio.Event()

    def admit(self, entrance: Entrance, peer: str) -> bool:
        self.admitted.set()
        return super().admit(entrance, peer)


async def test_a_handshake_that_does_not_come_is_not_waited_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 600.0)
    certificate_for(tmp_path / "pem", "127.0.0.1")
    bound = bind(InsideTcpListener("127.0.0.1", 0, tmp_path / "pem"))
    connections = CountedConnections()
    acceptor = Acceptor(bound, connections, lambda peer: asyncio.Protocol())
    try:
        assert isinstance(bound.address, tuple)
        async with opened(bound.address) as (reader, _):
            await connections.admitted.wait()
            async with asyncio.timeout(60):
                await acceptor.close()
            assert await is_cut(reader)
    finally:
        bound.close()
    # It is released, and once only.
    assert connections.admit(Entrance.INSIDE, "127.0.0.1")
    assert not connections.admit(Entrance.INSIDE, "127.0.0.1")


def test_what_a_number_of_files_allows() -> None:
    for files in (256, 1024, 4096, 1 << 20):
        limits = limits_for(files)
        others = limits.of[Entrance.INSIDE] + limits.of[Entrance.NETWORK]
        assert others <= files * 3 // 8
        assert limits.of_peer[Entrance.INSIDE] <= limits.of[Entrance.INSIDE] // 2
        assert limits.of_peer[Entrance.NETWORK] <= limits.of[Entrance.NETWORK] // 2


HOLD = """
import socket, sys
held = []
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    held.append(one)
    try:
        one.sendall(b"GET / HT")
    except ConnectionError:
        pass  # refused already
print("held", flush=True)
sys.stdin.readline()
"""
HEALTHY = """
import socket, sys
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
one.sendall(b"GET /v1/health HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
print(one.recv(64).decode().split()[1])
"""


SERVE = """
import asyncio, sys, uvloop
from pathlib import Path
from quarterdeck.local.home import Home
from quarterdeck.service.listeners import TcpListener, UnixListener
from quarterdeck.service.server import configure_logging
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service, open_service

async def main():
    home = Home(Path(sys.argv[1]))
    async with open_service(home, None, lambda: []) as context:
        listeners = [UnixListener(home.socket), TcpListener("127.0.0.1", 0)]
        await serve(build_service(context), listeners, lambda bound: print(bound[1].address[1], flush=True))

configure_logging()
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


@dataclass
class Served:
    process: asyncio.subprocess.Process
    port: int

    async def logged(self) -> list[dict[str, Any]]:
        """Stop the service and return the lines of its log."""
        self.process.terminate()
        _, errors = await self.process.communicate()
        return [json.loads(line) for line in errors.splitlines()]


@pytest.fixture
async def served(home: Home) -> AsyncIterator[Served]:
    """A service that may have 256 files open, and began with fewer."""
    limited = ("sh", "-c", 'ulimit -Sn 128 && ulimit -Hn 256 && exec "$@"', "sh")
    process = await asyncio.create_subprocess_exec(
        *limited, sys.executable, "-c", SERVE, str(home.root), stdout=-1, stderr=-1
    )
    try:
        assert process.stdout is not None
        yield Served(process, int(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def start(*command: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1)


@pytest.mark.long
async def test_a_service_may_have_as_many_files_as_the_system_lets_it(served: Served) -> None:
    assert resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE) == (256, 256)


@pytest.mark.long
async def test_a_sandbox_cannot_take_the_connections_of_others(
    served: Served, home: Home, require_tool: Callable[[str], str]
) -> None:
    """Half-open requests of two sandboxes, each more than the service may have files."""
    sandbox = (require_tool("bwrap"), "--unshare-user", "--unshare-pid", "--bind", "/", "/")
    program = (*sandbox, "--proc", "/proc", sys.executable, "-I", "-c")
    path = str(home.inside_socket)
    holding = [await start(*program, HOLD, path, "600") for _ in range(2)]
    try:
        for one in holding:
            assert one.stdout and await one.stdout.readline() == b"held\n"
        async with over(home.socket, key_of(home)) as owner:
            assert (await owner.get("/v1/environments")).status_code == 200
        other = await start(*program, HEALTHY, path)
        assert (await other.communicate())[0] == b"200\n"
    finally:
        for one in holding:
            await one.communicate(b"\n")
    lines = [line["message"] for line in await served.logged()]
    refused = [line for line in lines if "refused beyond" in line]
    assert len(refused) == len(set(refused)) == 2, lines
    assert all("sandbox" in line for line in refused)


@pytest.mark.long
async def test_the_network_cannot_take_the_owners_connections(served: Served, home: Home) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(300):
            _, writer = await stack.enter_async_context(opened(("127.0.0.1", served.port)))
            writer.write(b"GET / HT")
        async with over(home.socket, key_of(home)) as owner:
            assert (await owner.get("/v1/environments")).status_code == 200
    assert [line for line in await served.logged() if "127.0.0.1" in line["message"]]
