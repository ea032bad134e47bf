"""An engine that says what a test wants it to, to the service of a `World`."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from quarterdeck import __version__
from quarterdeck.service.replicas.rows import find_workspace
from tests.fleet.conftest import World

MOMENT = "2026-01-02T00:00:00.000Z"
Connect = Callable[[str], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def journal(index: Any, type: str, /, ts: Any = MOMENT, **payload: Any) -> bytes:
    entry = {"index": index, "ts": ts, "type": type, "payload": payload}
    return line({"jsonrpc": "2.0", "method": "journal", "params": entry})


def chat(id: str, **values: Any) -> dict[str, Any]:
    return {"id": id, "provider": "builtin", "createdAt": MOMENT, "updatedAt": MOMENT, **values}


USUAL = {"status": {}, "queue.held": {"held": False}, "chat.open": chat(str(UUID(int=0)))}


@dataclass
class Forged:
    """`sends` follows the opening of the journal's link; `answers` are those of calls."""

    workspace_id: str
    last: int
    """The newest entry that the service has stored."""
    sends: list[bytes] = field(default_factory=list)
    hello: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=lambda: dict(USUAL))
    calls: list[dict[str, Any]] = field(default_factory=list)
    """What the service called."""
    opened: int = 0
    """How many links carried the journal."""
    ends: bool = False
    """Whether the journal's link is closed after what is sent."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except OSError:
            return
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opening = json.loads(await reader.readline() or "{}")
        hello = {
            "version": __version__,
            "workspaceId": self.workspace_id,
            "lastIndex": self.last,
            "bootTimeMs": 1,
            "pid": os.getpid(),
            **self.hello,
        }
        writer.write(line({"jsonrpc": "2.0", "id": opening["id"], "result": hello}))
        if opening["params"].get("after") is not None:
            self.opened += 1
            for data in self.sends:
                writer.write(data)
                await writer.drain()
            if self.ends:
                return
        while text := await reader.readline():
            call = json.loads(text)
            self.calls.append(call)
            answer = self.answers.get(call["method"])
            writer.write(line({"jsonrpc": "2.0", "id": call["id"], "result": answer}))
            await writer.drain()


@asynccontextmanager
async def forged(
    world: World, made: str, prepare: Callable[[Forged], None]
) -> AsyncIterator[Forged]:
    """Put a forged engine in the place of a replica's, whose process goes on without links."""
    row = await world.context.database.read(lambda c: find_workspace(c, made))
    assert row is not None
    engine = Forged(made, row.journal_index)
    prepare(engine)
    path = Path(world.home.workspaces) / made / "forged.sock"
    server = await asyncio.start_unix_server(engine.serve, path)
    real: Connect = world.driver.connect

    async def connect(id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await (asyncio.open_unix_connection(path) if id == made else real(id))

    world.driver.connect = connect  # type: ignore[method-assign]
    world.driver.signal(made, signal.SIGUSR1)  # its links end
    try:
        yield engine
    finally:
        world.driver.connect = real  # type: ignore[method-assign]
        server.close()
