"""Engines that connect to their service with TLS, by a certificate that is pinned."""

import asyncio
import ssl
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quarterdeck.engine.dial_home import ServiceAddress
from quarterdeck.local.tls import pinned_context
from quarterdeck.sandboxes.containers import HomeAddress
from quarterdeck.service.certificate import certificate_for
from quarterdeck.service.listeners import InsideTcpListener
from quarterdeck.wire.dial_home import PART_BYTES
from tests.containers.deck import Deck
from tests.containers.processes import ProcessContainers
from tests.support.git import git, make_repository
from tests.support.installation import free_port
from tests.support.waiting import eventually


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


async def listen(deck: Deck, path: Path, host: str = "127.0.0.1") -> HomeAddress:
    """Let the service listen with a certificate for this host; return where that is."""
    certificate = certificate_for(path, host)
    port = free_port()
    deck.inside.put_nowait(InsideTcpListener("127.0.0.1", port, path))

    async def there() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    await eventually(there, "the listener")
    return HomeAddress(f"https://127.0.0.1:{port}", certificate)


async def failure(deck: Deck) -> str:
    environment = await deck.environment()
    body = {"name": "broken", "environment_id": environment}
    id = (await deck.post("/v1/replica", body, 201))["replica"]["id"]
    error = (await deck.reach(id, "error"))["error"]
    await deck.client.delete(f"/v1/replica/{id}")
    return error


@pytest.mark.long
async def test_a_replica_works_by_a_pinned_certificate(
    deck: Deck, repository: Path, tmp_path: Path
) -> None:
    deck.way = await listen(deck, tmp_path / "pem")
    id = await deck.create(await deck.environment(str(repository)))
    assert (await deck.run(id, "cd shop && git status --short --branch")).startswith("## ")
    assert "in a terminal" in await deck.in_terminal(id, "echo in a terminal")
    # Programs inside know the certificate, and the service by it alone.
    program = f"{sys.executable} -I -m quarterdeck"
    assert (await deck.run(id, f"{program} preview open 3000")).startswith("http://127.0.0.1:")
    ask = "curl -sS -o /dev/null -w '%{http_code}' $QD_URL/v1/health"
    assert await deck.run(id, f"{ask} --cacert $QD_CA") == "200"
    assert "certificate" in await deck.run(id, f"{ask} 2>&1; true")
    # News of the source come by it as well.
    git(repository, "commit", "-q", "--allow-empty", "-m", "later")
    helper = tmp_path / "bin" / "git-remote-qd"
    helper.parent.mkdir()
    helper.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m quarterdeck.cli.git_remote "$@"\n')
    helper.chmod(0o755)
    await deck.run(id, f"cd shop && PATH={helper.parent}:$PATH git fetch -q origin")
    assert "later" in await deck.run(id, "cd shop && git log --format=%s origin/main")
    # A restarted service is found again.
    before = await deck.run(id, "echo $PPID")
    await deck.stop()
    deck.inside.put_nowait(
        InsideTcpListener("127.0.0.1", int(deck.way.url.rpartition(":")[2]), tmp_path / "pem")
    )
    await deck.start()
    assert await deck.running(id, "echo $PPID") == before


@pytest.mark.long
async def test_a_wrong_certificate_is_refused(deck: Deck, tmp_path: Path) -> None:
    right = await listen(deck, tmp_path / "pem")
    other = certificate_for(tmp_path / "other", "127.0.0.1")
    for pinned, reason in ((other, "self-signed certificate"), (None, "self-signed certificate")):
        deck.way = HomeAddress(right.url, pinned)
        error = await failure(deck)
        said = f"certificate of the service at {right.url} is not accepted: {reason}"
        assert said in error, error
    deck.way = await listen(deck, tmp_path / "elsewhere", "deck.example")
    assert "certificate is not valid for '127.0.0.1'" in await failure(deck)
    deck.way = HomeAddress(f"https://127.0.0.1:{deck.port}", right.ca)
    assert f"no TLS with the service at https://127.0.0.1:{deck.port}" in await failure(deck)
    deck.way = right
    await deck.create(await deck.environment())


async def test_a_connection_of_an_engine_has_a_small_buffer(deck: Deck, tmp_path: Path) -> None:
    way = await listen(deck, tmp_path / "pem")
    port = int(way.url.rpartition(":")[2])
    context = ServiceAddress(way.url, "", tmp_path / "pem")._tls
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    assert len(writer.transport._ssl_protocol._ssl_buffer) == PART_BYTES  # type: ignore[attr-defined]
    writer.close()


async def test_connections_without_tls_are_not_kept(deck: Deck, tmp_path: Path) -> None:
    way = await listen(deck, tmp_path / "pem")
    port = int(way.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert not (await reader.read()).startswith(b"HTTP")
    writer.close()
    # It is the entrance of replicas alone: the owner's key does not open it.
    key = deck.home.key.read_text().strip()
    context = pinned_context(tmp_path / "pem")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    ask = f"GET /v1/replica HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    writer.write(f"{ask}Connection: close\r\n\r\n".encode())
    assert (await reader.read()).startswith(b"HTTP/1.1 401")
    writer.close()


@asynccontextmanager
async def proxy(deck: Deck, path: Path) -> AsyncIterator[int]:
    """A reverse proxy that ends TLS; its port."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(deck.host, deck.port)
        await asyncio.gather(carry(reader, back), carry(there, writer))

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.long
async def test_a_replica_works_through_a_reverse_proxy(
    deck: Deck, repository: Path, tmp_path: Path
) -> None:
    certificate = certificate_for(tmp_path / "pem", "127.0.0.1")
    async with proxy(deck, tmp_path / "pem") as port:
        deck.way = HomeAddress(f"https://127.0.0.1:{port}", certificate)
        id = await deck.create(await deck.environment(str(repository)))
        assert await deck.run(id, "cat shop/README") == (repository / "README").read_text()
        containers = deck.containers
        assert isinstance(containers, ProcessContainers)
        await containers.kill_all()


def test_the_own_certificate_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "service" / "pem"
    made = certificate_for(path, "192.0.2.7")
    assert "PRIVATE" not in made and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert certificate_for(path, "192.0.2.7") == made
    assert certificate_for(path, "deck.example") != made
    path.write_text("damaged")
    assert certificate_for(path, "192.0.2.7") != made
