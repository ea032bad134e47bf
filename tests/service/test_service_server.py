"""The running server: sockets, streams, stopping, and what a kill leaves behind."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from quarterdeck.local.home import Home
from quarterdeck.service import server
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import AddressInUseError, HomeInUseError, ListenError
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.listeners import (
    Bound,
    InsideTcpListener,
    Listener,
    TcpListener,
    UnixListener,
    bind,
)
from quarterdeck.service.server import serve
from quarterdeck.service.start import answers_health, build_service, take_home

pytestmark = pytest.mark.one_database

New = Callable[..., Awaitable[str]]
WAIT_SECONDS = 60.0

CHILD = """
import asyncio, os, sys
from pathlib import Path
from quarterdeck.local.home import Home
from quarterdeck.service.errors import ServiceError
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import configure_logging
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service, open_service

async def append(context, workspace):
    n = 0
    while True:
        n += 1
        [index] = await context.event_log.append(
            workspace, [NewEvent("error", {"code": "X", "message": str(n)})]
        )
        print(index, flush=True)

async def main():
    home = Home(Path(sys.argv[1]))
    async with open_service(home, None, lambda: []) as context:
        def ready(bound):
            print("ready", flush=True)
        tasks = []
        for workspace in sys.argv[2:]:
            tasks.append(asyncio.create_task(append(context, workspace)))
        await serve(build_service(context), [UnixListener(home.socket)], ready)
        for task in tasks:
            task.cancel()

configure_logging()
try:
    asyncio.run(main())
except ServiceError as e:
    sys.exit(f"refused: {e}")
"""


@asynccontextmanager
async def running(context: ServiceContext, *listeners: Listener) -> AsyncIterator[list[Bound]]:
    ready: asyncio.Future[list[Bound]] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(build_service(context), listeners, ready.set_result))
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield await ready
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def over(path: Path, key: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"}
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    return httpx.AsyncClient(
        transport=transport, base_url="http://test", headers=headers, timeout=WAIT_SECONDS
    )


def key_of(home: Home) -> str:
    return home.key.read_text().strip()


@asynccontextmanager
async def child(home: Home, *workspaces: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, str(home.root), *workspaces),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def until_ready(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(WAIT_SECONDS):
        while (line := await process.stdout.readline()) != b"ready\n":
            assert line, "the service ended before it was ready"


async def test_it_answers_on_both_kinds_of_socket(context: ServiceContext, home: Home) -> None:
    listeners = UnixListener(home.socket), TcpListener("127.0.0.1", 0)
    async with running(context, *listeners) as bound, over(home.socket, key_of(home)) as unix:
        assert home.socket.stat().st_mode & 0o777 == 0o600
        assert (await unix.get("/v1/environments")).status_code == 200
        host, port = bound[1].address
        async with httpx.AsyncClient(timeout=WAIT_SECONDS) as tcp:
            assert (await tcp.get(f"http://{host}:{port}/v1/health")).status_code == 200
            assert (await tcp.get(f"http://{host}:{port}/v1/agents")).status_code == 401
    assert not home.socket.exists()
    assert [path.name for path in home.service.iterdir() if "sock" in path.name] == []


def test_idle_connections_are_closed_by_clients_first() -> None:
    kept = httpx.Limits().keepalive_expiry
    assert kept is not None and 2 * kept < server.KEEP_ALIVE_SECONDS


async def test_one_that_does_not_answer_at_first_is_ready_once_it_does(
    context: ServiceContext, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    async def slow(address: Path | tuple[str, int]) -> bool:
        asked.append(address)
        return len(asked) > 2 and await answers_health(address)

    monkeypatch.setattr(server, "answers_health", slow)
    monkeypatch.setattr(server, "ASK_AGAIN_SECONDS", 0.01)
    async with running(context, UnixListener(home.socket)) as bound:
        assert asked == [bound[0].address] * 3


async def test_a_stream_goes_on_after_an_index(
    context: ServiceContext, home: Home, new_workspace: New
) -> None:
    workspace = await new_workspace(context.database)
    event = NewEvent("error", {"code": "X", "message": "x"})
    await context.event_log.append(workspace, [event] * 10)
    path = f"/v1/replica/{workspace}/events"
    async with running(context, UnixListener(home.socket)), over(home.socket, key_of(home)) as http:
        headers = {"Last-Event-ID": "4"}
        async with http.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            await context.event_log.append(workspace, [event] * 3)
            text = ""
            async for chunk in response.aiter_text():
                text += chunk
                if "id: 13" in text:
                    break
        assert re.findall(r"^id: (\d+)$", text, re.MULTILINE) == [str(n) for n in range(5, 14)]
        for bad in ("x", "-1", "1.5", "9" * 30):
            response = await http.get(path, headers={"Last-Event-ID": bad})
            assert response.status_code == 400
            assert response.json()["details"].startswith("Last-Event-ID")
        async with asyncio.timeout(WAIT_SECONDS):
            while context.event_log.listeners(workspace):  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)


async def test_a_stream_is_not_begun_for_its_head(
    context: ServiceContext, home: Home, new_workspace: New
) -> None:
    workspace = await new_workspace(context.database)
    async with running(context, UnixListener(home.socket)), over(home.socket, key_of(home)) as http:
        for path in (f"/v1/replica/{workspace}/events", "/v1/automations/events"):
            async with http.stream("GET", path) as got:
                head = await http.head(path)
                assert (head.status_code, head.content) == (200, b"")
                got.headers.pop("transfer-encoding")
                assert head.headers == got.headers
        assert (await http.get("/v1/health")).status_code == 200
        async with asyncio.timeout(WAIT_SECONDS):
            while context.event_log.listeners(workspace):  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)


async def test_a_stalled_client_costs_no_memory(
    context: ServiceContext, home: Home, new_workspace: New
) -> None:
    workspace = await new_workspace(context.database)
    path = f"/v1/replica/{workspace}/events"
    big = NewEvent("error", {"code": "X", "message": "x" * 100_000})
    async with (
        running(context, UnixListener(home.socket)),
        over(home.socket, key_of(home)) as http,
        http.stream("GET", path) as response,
    ):
        for _ in range(20):
            await context.event_log.append(workspace, [big] * 10)
        assert context.event_log._broadcasts._rings[workspace].size < 3 << 20
        seen = b""
        async for chunk in response.aiter_bytes():
            seen = seen[-200_000:] + chunk
            if b"id: 200\n" in seen:
                break


async def test_a_port_in_use_is_told(context: ServiceContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUseError, match=rf"Port {port} .* is in use"):
            await serve(build_service(context), [TcpListener("127.0.0.1", port)])


async def test_an_address_that_is_none(context: ServiceContext, tmp_path: Path) -> None:
    # The second is nobody's: an address set aside for documentation.
    for bad in (TcpListener("127.0.0.1", 70_000), TcpListener("192.0.2.1", 0)):
        with pytest.raises(ListenError):
            await serve(build_service(context), [bad])
    with pytest.raises(ListenError):
        await serve(build_service(context), [UnixListener(tmp_path / "missing" / "qd.sock")])


def test_the_bridge_of_containers_may_be_made_later() -> None:
    bound = bind(InsideTcpListener("192.0.2.1", 0))
    try:
        with pytest.raises(AddressInUseError):
            bind(InsideTcpListener(*bound.socket.getsockname()))
    finally:
        bound.close()


async def test_a_stale_socket_is_replaced_and_a_live_one_is_not(
    context: ServiceContext, home: Home
) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(home.socket))
    async with running(context, UnixListener(home.socket)):
        with pytest.raises(AddressInUseError, match="listens on"):
            bind(UnixListener(home.socket))
        async with over(home.socket, key_of(home)) as http:
            assert (await http.get("/v1/health")).status_code == 200


async def test_a_socket_at_a_long_path(context: ServiceContext, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    async with running(context, UnixListener(deep / "qd.sock")):
        assert (deep / "qd.sock").is_socket()


def test_a_home_has_one_service(home: Home) -> None:
    lock = take_home(home)
    with pytest.raises(HomeInUseError, match=str(os.getpid())) as caught:
        take_home(home)
    assert caught.value.pid == os.getpid()
    lock.release()
    take_home(home).release()


@pytest.mark.long
async def test_two_services_on_one_home(home: Home) -> None:
    async with child(home) as first:
        await until_ready(first)
        async with child(home) as second:
            _, errors = await asyncio.wait_for(second.communicate(), WAIT_SECONDS)
        assert second.returncode == 1
        assert f"refused: A service of {home.root} runs already: process {first.pid}." in (
            errors.decode()
        )
        async with over(home.socket, key_of(home)) as http:
            assert (await http.get("/v1/health")).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_open_streams_and_the_service_at_once(
    context: ServiceContext, home: Home, new_workspace: New, tmp_path: Path, number: int
) -> None:
    other = Home(tmp_path / "other")
    async with child(other) as process:
        await until_ready(process)
        workspace = await _workspace_in(other, new_workspace, process)
        async with over(other.socket, key_of(other)) as http:
            path = f"/v1/replica/{workspace}/events"
            async with http.stream("GET", path) as a, http.stream("GET", path) as b:
                started = time.monotonic()
                process.send_signal(number)
                # A regular end: a cut connection raises here.
                assert [chunk async for chunk in a.aiter_bytes()] == []
                assert [chunk async for chunk in b.aiter_bytes()] == []
                _, errors = await asyncio.wait_for(process.communicate(), WAIT_SECONDS)
                assert time.monotonic() - started < WAIT_SECONDS  # 0.5 s when nothing else runs
        assert process.returncode == 0, errors.decode()
        assert b"Traceback" not in errors and b"sk_" not in errors
        assert not other.socket.exists()


async def _workspace_in(home: Home, new_workspace: New, process: asyncio.subprocess.Process) -> str:
    from quarterdeck.service.db.database import Database, sqlite_url

    database = await Database.open(sqlite_url(home.database))
    try:
        return await new_workspace(database)
    finally:
        await database.close()


@pytest.mark.long
async def test_what_was_acknowledged_survives_a_kill(
    home: Home, new_workspace: New, context: ServiceContext, tmp_path: Path
) -> None:
    from quarterdeck.service.db.database import Database, sqlite_url
    from quarterdeck.service.event_log import EventLog

    other = Home(tmp_path / "other")
    async with child(other) as first:
        await until_ready(first)
        workspace = await _workspace_in(other, new_workspace, first)
    acknowledged = 0
    for _ in range(2):
        async with child(other, workspace) as process:
            assert process.stdout is not None
            async with asyncio.timeout(WAIT_SECONDS):
                out = b"".join([await process.stdout.readline() for _ in range(100)])
            process.kill()
            out += (await process.communicate())[0]
        lines = [int(line) for line in out.split(b"\n")[:-1] if line.isdigit()]
        acknowledged = max([acknowledged, *lines])
    database = await Database.open(sqlite_url(other.database))
    stored = await EventLog(database).read_after(workspace, 0, 1_000_000)
    assert acknowledged >= 100
    assert [event.index for event in stored] == list(range(1, len(stored) + 1))
    assert len(stored) >= acknowledged
    await database.close()
