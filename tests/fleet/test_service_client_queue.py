"""The client's methods on queue, goal, commands, models and chats, over a real server."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import pytest

from quarterdeck.client import Client, HttpConnection
from quarterdeck.client.errors import ConflictError, NotFoundError
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.wire.chats import SendMessage, UpdateGoal
from tests.fleet.conftest import World
from tests.support.waiting import WAIT_SECONDS, eventually


@pytest.fixture
async def client(scripted: World) -> AsyncIterator[Client]:
    ready = asyncio.Event()
    running = asyncio.create_task(
        serve(scripted.service, [UnixListener(scripted.home.socket)], lambda _: ready.set())
    )
    async with asyncio.timeout(WAIT_SECONDS):
        await ready.wait()
    transport = httpx.AsyncHTTPTransport(uds=str(scripted.home.socket))
    key = scripted.home.key.read_text().strip()
    async with Client(HttpConnection("http://test", key, transport=transport)) as opened:
        yield opened
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.long
async def test_queue_goal_and_the_end_of_a_chat(scripted: World, client: Client) -> None:
    made = UUID(await scripted.create())
    first = await client.messages.send(made, SendMessage(message="wait"))
    chat = first.chat_id
    a, b = [
        (await client.messages.send(made, SendMessage(message=f"say {n}"))).message_id
        for n in range(2)
    ]

    async def running() -> bool:
        return bool(await scripted.events(str(made), "chat.turn.started"))

    await eventually(running)
    moved = await client.messages.reorder_queue(made, chat, b, 0)
    assert [one.id for one in moved] == [b, a]
    assert [one.id for one in await client.messages.remove_queued(made, chat, a)] == [b]
    with pytest.raises(ConflictError):
        await client.messages.remove_queued(made, chat, first.message_id)
    assert await client.messages.clear_queue(made, chat) == []
    goal = await client.chats.update_goal(made, chat, UpdateGoal(objective="goal 1"))
    assert goal is not None and goal.status == "active"
    commands = await client.chats.slash_commands(made, chat)
    assert commands[0].command == "/plan"
    page = await client.history.page(made, chat_id=chat, limit=1)
    assert sorted(page.canceled_message_ids) == sorted([str(a), str(b)])

    async def announced() -> bool:
        return bool((await client.agents.models("builtin")).models)

    await eventually(announced)
    offered = (await client.agents.models("builtin")).models
    assert [(one.id, one.display_name) for one in offered] == [("a", "A"), ("b", "B")]
    with pytest.raises(NotFoundError):
        await client.agents.models("nobody/x")
    await client.chats.delete(made, chat)
    assert await client.chats.list(made) == []
    with pytest.raises(NotFoundError):
        await client.chats.delete(made, chat)
