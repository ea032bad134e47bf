"""A container engine whose answers are given by tests, to be damaged: it runs nothing."""

import asyncio
import json
import re
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]

ID = "made"
_NAMED = re.compile(rf"/(containers|volumes|services|nodes)/(qd-[^/]+|{ID})")


def frame(stream: int, data: bytes, length: int | None = None) -> bytes:
    """One frame of what a container prints; `length` is another one in its header."""
    return struct.pack(">BxxxL", stream, len(data) if length is None else length) + data


def http(body: bytes, status: int = 200, kind: str = "application/json", more: str = "") -> bytes:
    """An HTTP response."""
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    )
    return head.encode() + body


def answered(value: Any, status: int = 200) -> bytes:
    """A response of JSON."""
    return http(json.dumps(value).encode(), status)


CONTAINER = {
    "Id": ID,
    "State": {"Status": "running", "ExitCode": 0, "OOMKilled": False},
    "Config": {"Labels": {"quarterdeck.token-digest": "d"}, "Tty": False},
}
UPGRADED = (
    b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
    b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
)
GOOD: dict[str, Any] = {
    "GET /version": {
        "ApiVersion": "1.41",
        "Version": "26.1",
        "Arch": "amd64",
        "Components": [{"Name": "Engine"}],
    },
    "GET /info": {
        "NCPU": 2,
        "CgroupVersion": "2",
        "SecurityOptions": ["name=seccomp,profile=builtin"],
        "CpuCfsQuota": True,
        "MemoryLimit": True,
        "PidsLimit": True,
    },
    "GET /networks/quarterdeck": {
        "Id": "quarterdeck",
        "Options": {"com.docker.network.bridge.enable_icc": "false"},
        "IPAM": {"Config": [{"Gateway": "10.89.0.1"}]},
    },
    "GET /images/image/json": {
        "Id": "sha256:1",
        "Config": {"Labels": {"quarterdeck.version": None}},
    },
    "GET /containers/json": [{"Id": ID, "Labels": {"quarterdeck.owner": "other"}}],
    "GET /containers/json of one": CONTAINER,
    "POST /containers/create": {"Id": ID, "Warnings": []},
    "POST /containers/wait": {"StatusCode": 0},
    "POST /volumes/create": {"Name": "qd-w"},
    "GET /volumes": {"Name": "qd-w"},
}
"""The answers of a good engine that are JSON, by the method and the path without names and versions."""


class FakeEngine:
    """`output` is what a command prints; `damages` are sent instead of what a good engine answers."""

    def __init__(self) -> None:
        self.output = frame(1, b"printed\n")
        self.log = frame(2, b"a line\n")
        self.damages: dict[str, bytes | Answer] = {}
        self.asked: list[str] = []
        self.bodies: list[Any] = []
        self.started = asyncio.Event()
        """Set with the start of a container: before it nothing is printed."""
        self.sent = 0
        """Bytes that were taken from an answer without an end."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                await self._answer(line.decode(), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # it was given up
        finally:
            writer.close()

    async def _answer(
        self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, target, _ = line.split()
        headers: dict[str, str] = {}
        while (header := (await reader.readline()).decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if body and target.partition("?")[0].endswith("/create"):
            self.bodies.append(json.loads(body))
        key = f"{method} {_plain(target)}"
        self.asked.append(key)
        if key == "POST /containers/create":
            self.started.clear()
        elif key == "POST /containers/start":
            self.started.set()
        damage = self.damages.get(key)
        if callable(damage):
            await damage(writer)
        elif damage is not None:
            writer.write(damage)
        elif key == "POST /containers/attach":
            writer.write(UPGRADED)
            await self.started.wait()
            writer.write(self.output)
        elif key in ("GET /containers/logs", "GET /services/logs"):
            writer.write(http(self.log, kind="application/vnd.docker.raw-stream"))
        else:
            good = GOOD.get(key)
            writer.write(b"HTTP/1.1 204 X\r\n\r\n" if good is None else answered(good))
        await writer.drain()
        if callable(damage) or key == "POST /containers/attach":
            raise ConnectionResetError  # nothing follows

    async def endless(
        self, writer: asyncio.StreamWriter, head: bytes, part: bytes, first: bytes = b""
    ) -> None:
        """Send a part again and again, until the other side has gone."""
        writer.write(head)
        if head == UPGRADED:
            await self.started.wait()
        writer.write(first)
        while True:
            writer.write(part)
            await writer.drain()
            self.sent += len(part)


def _plain(target: str) -> str:
    path = target.partition("?")[0]
    if path.startswith("/v1."):
        path = path[path.index("/", 1) :]
    if path == "/containers/json":
        return path
    if named := _NAMED.match(path):
        rest = path[named.end() :]
        of_one = rest == "/json" or named[1] == "nodes"
        return f"/{named[1]}{rest} of one" if of_one else f"/{named[1]}{rest}"
    return path


def cut(data: bytes) -> Answer:
    """An answer after which the connection is closed."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return send


@asynccontextmanager
async def fake_engine(directory: Path) -> AsyncGenerator[tuple[FakeEngine, str]]:
    """A fake engine, and its address."""
    engine = FakeEngine()
    path = directory / "engine.sock"
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(engine.serve(reader, writer))
        serving.add(task)

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield engine, f"unix://{path}"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def variants(value: Any) -> list[Any]:
    """A JSON value without each of its keys, and with another type in each place."""
    found: list[Any] = [None, [], {}, "text", 7, True, [value]]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for key, inner in fields.items():
            found.append({name: one for name, one in fields.items() if name != key})
            found += [{**fields, key: one} for one in variants(inner)]
    elif isinstance(value, list):
        parts = cast("list[Any]", value)
        for place, inner in enumerate(parts):
            found += [[*parts[:place], one, *parts[place + 1 :]] for one in variants(inner)]
    return found
