"""A deck over a service that is played: what it answers is what the test put there."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from quarterdeck.client.client import Client
from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.error_mapping import Backoff
from quarterdeck.store.app_state import AppState
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.signals import Change

NOW = "2026-11-20T12:00:00.000Z"


class PlayedService(httpx.AsyncBaseTransport):
    """Answers by path. `down` refuses connections, `cut` breaks the line after a request came in."""

    def __init__(self) -> None:
        self.replicas: dict[str, dict[str, Any]] = {}
        self.messages: list[dict[str, Any]] = []
        self.queue: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.streams: dict[str, asyncio.Queue[bytes]] = {}
        self.down = False
        self.added: Callable[[], None] = lambda: None
        self.cut: Callable[[httpx.Request], bool] = lambda request: False
        self.held: dict[str, asyncio.Event] = {}
        """Events that answers wait for, once they are made, by the end of their paths."""

    def add(self, name: str, status: str = "active") -> UUID:
        id, chat = str(uuid4()), str(uuid4())
        chats = [{"id": chat, "provider": "builtin", "created_at": NOW, "updated_at": NOW}]
        self.replicas[id] = {
            "id": id,
            "name": name,
            "status": status,
            "created_at": NOW,
            "chats": chats,
            "log_index": 0,
        }
        self.added()
        return UUID(id)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("refused")
        path = request.url.path
        self.asked.append(f"{request.method} {path}")
        if request.method == "POST" and path.endswith("/messages"):
            self._take(await request.aread())
        if self.cut(request):
            raise httpx.ReadError("broken")
        answer = self._answer(request.method, path)
        for end, event in self.held.items():
            if path.endswith(end):
                await event.wait()
        return answer

    def _take(self, body: bytes) -> None:
        import json

        sent = json.loads(body)
        self.messages.append(sent)
        self.queue.append({"id": str(uuid4()), "message": sent["message"], "queuedAt": NOW_LATE})

    def _answer(self, method: str, path: str) -> httpx.Response:
        parts = path.strip("/").split("/")
        match method, parts[1:]:
            case "GET", ["health"]:
                return _json({"status": "ok", "version": "1"})
            case "GET", ["replica"]:
                found = list(self.replicas.values())
                page = {"page": 1, "limit": 100, "total_pages": 1, "total": len(found)}
                return _json({"replicas": found, **page})
            case "GET", ["replica", id] if id in self.replicas:
                return _json({"replica": self.replicas[id]})
            case "DELETE", ["replica", id] if id in self.replicas:
                del self.replicas[id]
                return _json({"success": True})
            case "GET", ["replica", id, "events"] if id in self.replicas:
                return httpx.Response(
                    200, headers={"content-type": "text/event-stream"}, stream=self._stream(id)
                )
            case "GET", ["replica", id, "chats", chat, "queue"] if id in self.replicas:
                return _json({"chatId": chat, "processing": True, "queue": self.queue})
            case "GET", ["replica", id, "history"] if id in self.replicas:
                return _json({"thread_id": "t", "events": [], "total": 0, "has_more": False})
            case "POST", ["replica", id, "messages"] if id in self.replicas:
                chat = self.replicas[id]["chats"][0]["id"]
                return _json({"status": "sent", "message_id": str(uuid4()), "chat_id": chat})
            case _:
                return _json({"error": f"No {method} {path}.", "code": "NOT_FOUND"}, 404)

    def _stream(self, id: str) -> "Stream":
        queue = self.streams[id] = asyncio.Queue()
        return Stream(queue)


NOW_LATE = "2126-11-20T12:00:00.000Z"
"""Later than any message that a test makes."""


class Stream(httpx.AsyncByteStream):
    """What the test puts into a queue."""

    def __init__(self, queue: "asyncio.Queue[bytes]") -> None:
        self._queue = queue

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self._queue.get():
            yield data


def _json(content: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=content)


class Watched:
    """A running deck and what it told."""

    def __init__(self, service: PlayedService, disk: ClientDisk) -> None:
        self.service = service
        self.told: list[Change] = []
        self.deck = AppState(self._client, endpoint="test", disk=disk)
        self.deck.changed.watch(self.told.append)
        service.added = self.deck.reconnect_now

    def _client(self) -> Client:
        pace = Backoff(first=0.001, longest=0.01)
        return Client(HttpConnection("http://test", "key", transport=self.service, pace=pace))

    async def until(self, check: Callable[[], Any], what: str = "the condition") -> Any:
        """The first true result of a check."""
        try:
            async with asyncio.timeout(60):
                while True:
                    if found := check():
                        return found
                    await asyncio.sleep(0.005)
        except TimeoutError:
            pytest.fail(f"waited in vain for {what}; told: {self.told[-5:]}")


@pytest.fixture
def service() -> PlayedService:
    return PlayedService()


@pytest.fixture
async def watched(service: PlayedService, tmp_path: Path) -> AsyncIterator[Watched]:
    """A deck that runs while the test does; `service` may be filled before the first `await`."""
    async with watching(service, tmp_path) as made:
        yield made


@asynccontextmanager
async def watching(service: PlayedService, tmp_path: Path) -> AsyncGenerator[Watched]:
    made = Watched(service, ClientDisk(tmp_path / "client"))
    running = asyncio.create_task(made.deck.run())
    yield made
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
