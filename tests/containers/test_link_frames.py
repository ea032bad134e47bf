"""Containers whose engine sends what it likes over its connections."""

import asyncio
import base64
import os
import socket
import struct
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import uuid4

import pytest

from quarterdeck.sandboxes.switchboard import MOST_WAITING, digest_of, new_token
from quarterdeck.service.dial_home import FEED_BYTES, FRAMES_AT_ONCE, LinkProtocol
from quarterdeck.wire.dial_home import LINK_PATH, PART_BYTES
from tests.containers.deck import Deck
from tests.support.waiting import eventually

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CONT, BINARY, PING, PONG = 0, 2, 9, 10


class Container:
    """A container that is meant to run, with its token."""

    def __init__(self, deck: Deck, monkeypatch: pytest.MonkeyPatch) -> None:
        self.deck = deck
        self.id = str(uuid4())
        self.token = self.wanted = new_token()
        self.links: list[LinkProtocol] = []
        self.pongs: list[int] = []
        """The turn of the event loop in which each arrived."""
        self.turns = 0
        switchboard = deck.driver.switchboard
        monkeypatch.setattr(switchboard, "_find", self._digest)
        made, pong = LinkProtocol.__init__, LinkProtocol.handle_pong

        def init(link: LinkProtocol, **given: Any) -> None:
            made(link, **given)
            self.links.append(link)

        def handle_pong(link: LinkProtocol, event: Any) -> None:
            self.pongs.append(self.turns)
            pong(link, event)

        monkeypatch.setattr(LinkProtocol, "__init__", init)
        monkeypatch.setattr(LinkProtocol, "handle_pong", handle_pong)

    async def _digest(self, workspace_id: str) -> str | None:
        return digest_of(self.wanted) if workspace_id == self.id else None

    def head(self, *more: str) -> bytes:
        lines = [
            f"GET {LINK_PATH} HTTP/1.1",
            "Host: a",
            "Connection: Upgrade",
            "Upgrade: websocket",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Authorization: Bearer {self.token}",
            f"X-Workspace-Id: {self.id}",
            *more,
        ]
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode()

    @asynccontextmanager
    async def opened(self, *more: str) -> AsyncGenerator[Opened]:
        """A connection of which little waits in the system, with its head sent."""
        end = socket.socket()
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, buffer, 4096)
        end.setblocking(False)
        address = (self.deck.host, cast("int", self.deck.port))
        await asyncio.get_running_loop().sock_connect(end, address)
        reader, writer = await asyncio.open_connection(sock=end, limit=4096)
        writer.write(self.head(*more))
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    @asynccontextmanager
    async def link(self) -> AsyncGenerator[Opened]:
        """A connection that was accepted."""
        async with self.opened() as (reader, writer):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
            yield reader, writer


@pytest.fixture
def container(deck: Deck, monkeypatch: pytest.MonkeyPatch) -> Container:
    return Container(deck, monkeypatch)


def frame(kind: int, data: bytes = b"", last: bool = True) -> bytes:
    first = bytes([(0x80 if last else 0) | kind])
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else b"\xff" + struct.pack("!Q", size)
    return first + length + bytes(4) + data


async def ending(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the service ends a connection."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def test_answers_to_pings_do_not_pile_up(container: Container) -> None:
    async with container.link() as (_, writer):
        (link,) = container.links
        end = link.transport.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        writer.write(frame(PING, bytes(125)) * 8_000)
        writer.write(frame(PONG))
        await eventually(lambda: container.pongs, "the last frame")
        assert link.transport.get_write_buffer_size() < 256 << 10


async def test_a_connection_whose_other_end_is_away_does_not_wait(
    container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    switchboard = container.deck.driver.switchboard
    async with container.link():
        await eventually(lambda: switchboard.has(container.id), "the connection")
        (link,) = container.links
        link.transport.write(bytes(8 << 20))  # more than the system takes
        link.keepalive_timeout()
        await eventually(lambda: not switchboard.has(container.id), "its end")
    assert "Exception in ASGI application" not in caplog.text


async def test_a_connection_that_was_taken_and_said_nothing_is_closed(
    container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    async with container.link() as (reader, _):
        _, writer = await container.deck.driver.switchboard.take(container.id)
        writer.close()
        await reader.readuntil(b"\x88\x02" + struct.pack("!H", 1000))
    assert "Exception in ASGI application" not in caplog.text


async def test_small_frames_leave_the_others_their_turns(container: Container) -> None:
    loop = asyncio.get_running_loop()

    def count() -> None:
        container.turns += 1
        nonlocal counting
        counting = loop.call_soon(count)

    async with container.link() as (_, writer):
        counting = loop.call_soon(count)
        try:
            frames = 5_000
            (link,) = container.links
            link.data_received(frame(PONG) * frames)  # as much in one go as the system may give
            await eventually(lambda: len(container.pongs) == frames, "all frames")
        finally:
            counting.cancel()
        assert not writer.is_closing()
    of_a_turn = max(Counter(container.pongs).values())
    assert of_a_turn <= FRAMES_AT_ONCE + FEED_BYTES // len(frame(PONG)) + 1


async def test_empty_parts_of_a_message_take_no_memory(container: Container) -> None:
    async with container.link() as (_, writer):
        writer.write(frame(BINARY, b"", last=False) + frame(CONT, b"", last=False) * 5_000)
        writer.write(frame(PONG))
        await eventually(lambda: container.pongs, "the last frame")
        (link,) = container.links
        assert len(link.frames) <= 1


async def test_a_message_is_limited(container: Container) -> None:
    for sent in (
        frame(BINARY, bytes(PART_BYTES + 1)),
        frame(BINARY, bytes(PART_BYTES), last=False) + frame(CONT, b"x", last=False),
    ):
        async with container.link() as (reader, writer):
            writer.write(sent)
            await ending(reader)
        closed = container.links[-1].conn.close_sent
        assert closed is not None and closed.code == 1009


@pytest.mark.parametrize(
    "line", [f"X-Long: {'a' * 9000}", "Content-Length: 5", "Transfer-Encoding: chunked"]
)
async def test_a_head_that_is_no_websocket_is_refused(container: Container, line: str) -> None:
    async with container.opened(line) as (reader, _):
        assert b" 101 " not in await ending(reader)


async def test_few_connections_wait(container: Container) -> None:
    switchboard = container.deck.driver.switchboard
    async with container.link() as (oldest, _):
        waiting: list[Any] = []
        try:
            for _ in range(MOST_WAITING):
                waiting.append(container.link())
                await waiting[-1].__aenter__()
            await oldest.readuntil(b"\x88\x02" + struct.pack("!H", 1000))
            assert switchboard.has(container.id)
        finally:
            for link in waiting:
                await link.__aexit__(None, None, None)


async def test_a_port_that_is_never_opened_is_given_up(container: Container) -> None:
    switchboard = container.deck.driver.switchboard
    async with container.link() as (reader, _):
        taking = asyncio.create_task(switchboard.take(container.id, 80))
        assert b'"port":80' in await reader.readuntil(b"}")
        taking.cancel()
        await ending(reader)


async def test_a_token_ends_with_its_replica(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = container.deck.driver
    destroy = container.deck.containers.destroy
    meanwhile = container.link()

    async def destroyed(workspace_id: str) -> None:
        await meanwhile.__aenter__()  # it runs until then
        await destroy(workspace_id)

    monkeypatch.setattr(container.deck.containers, "destroy", destroyed)
    await driver.destroy(container.id)
    try:
        assert not driver.switchboard.has(container.id)
    finally:
        await meanwhile.__aexit__(None, None, None)


async def test_refused_containers_do_not_fill_the_log(
    container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    container.token = new_token()
    with caplog.at_level("INFO", "quarterdeck.service"):
        for _ in range(3):
            async with container.opened() as (reader, _):
                assert b" 403 " in await ending(reader)
    assert len([line for line in caplog.messages if "is refused" in line]) == 1
