"""`kill -9` of the service or the engine in the midst of changes of the queue, of a chat's end, of a goal."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from quarterdeck.local.home import Home
from tests.fleet.scripted import ScriptedDriver
from tests.fleet.test_service_killed import Killable
from tests.support.waiting import eventually

pytestmark = pytest.mark.long


class Scripted(Killable):
    """A service in a process of its own, over real engines and agents with a script."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.driver = ScriptedDriver(home.workspaces)

    async def start(self) -> None:
        await self.run_module("tests.fleet.scripted", str(self.home.root))

    async def ask(self, method: str, path: str, **body: Any) -> httpx.Response:
        async with self.client() as client:
            return await client.request(method, path, json=body or None)

    async def send(self, made: str, text: str) -> dict[str, Any]:
        answer = await self.ask("POST", f"/v1/replica/{made}/messages", message=text)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def service(home: Home) -> AsyncIterator[Scripted]:
    made = Scripted(home)
    try:
        await made.start()
        yield made
    finally:
        await made.kill()
        made.driver.kill_all()


async def busy(service: Scripted, count: int) -> tuple[str, str, list[str]]:
    made = await service.create("wait")
    await service.reach(made, "active")
    sent = [await service.send(made, f"say {n}") for n in range(count)]
    chat = sent[0]["chat_id"]

    async def running() -> bool:
        return len(await service.history(made, "user-message")) == 1

    await eventually(running)
    return made, chat, [one["message_id"] for one in sent]


async def queue(service: Scripted, made: str, chat: str) -> list[str]:
    async def read() -> list[str] | None:
        found = await service.get(made, f"/chats/{chat}/queue")
        return [[one["id"] for one in found["queue"]]]

    return (await eventually(read))[0]


@pytest.mark.long
@pytest.mark.parametrize("victim", ["service", "engine"])
@pytest.mark.parametrize("delay", [0.0, 0.01, 0.05])
async def test_killed_while_the_queue_is_changed(
    service: Scripted, victim: str, delay: float
) -> None:
    made, chat, sent = await busy(service, 5)
    base = f"/v1/replica/{made}/chats/{chat}/queue"
    chance = random.Random(f"{victim}{delay}")
    gone = chance.sample(sent, 2)
    moved = next(one for one in sent if one not in gone)
    asked = [
        asyncio.create_task(service.ask("DELETE", f"{base}/{gone[0]}")),
        asyncio.create_task(service.ask("PATCH", f"{base}/reorder", messageId=moved, position=2)),
        asyncio.create_task(service.ask("DELETE", f"{base}/{gone[1]}")),
    ]
    await asyncio.sleep(delay)  # where in the change it dies is the point
    if victim == "service":
        await service.kill()
    else:
        service.driver.signal(made, signal.SIGKILL)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    if victim == "service":
        await service.start()
    service.driver.let_go(made)

    async def all_done() -> bool:
        history = await service.get(made, "/history")
        ended = {
            one["payload"]["messageId"] for one in history["events"] if one["type"] == "turn-result"
        }
        return ended | set(history["canceledMessageIds"]) >= set(sent)

    await eventually(all_done, "every message run or canceled")
    history = await service.get(made, "/history")
    ran = [
        one["payload"]["messageId"] for one in history["events"] if one["type"] == "user-message"
    ]
    assert len(ran) == len(set(ran)), "a message ran twice"
    assert not set(ran) & set(history["canceledMessageIds"]), "a canceled message ran"
    assert set(history["canceledMessageIds"]) <= set(gone)
    for answer, message in ((answers[0], gone[0]), (answers[2], gone[1])):
        if isinstance(answer, httpx.Response) and answer.status_code == 200:
            assert message in history["canceledMessageIds"], "an accepted cancel was lost"
    assert await queue(service, made, chat) == []


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.05])
async def test_killed_while_a_chat_is_deleted(service: Scripted, delay: float) -> None:
    made, chat, sent = await busy(service, 3)
    asked = asyncio.create_task(service.ask("DELETE", f"/v1/replica/{made}/chats/{chat}"))
    await asyncio.sleep(delay)
    await service.kill()
    await asyncio.gather(asked, return_exceptions=True)
    await service.start()
    chats = [one["id"] for one in (await service.get(made, "/chats"))["chats"]]
    if chat in chats:
        return  # not begun

    async def ended() -> bool:
        return [type for _, type in await service.log(made)].count("chat.deleted") == 1

    await eventually(ended, "the chat's end")
    service.driver.let_go(made)
    fresh = await service.send(made, "say more")
    assert fresh["chat_id"] != chat

    async def ran() -> list[str]:
        return [one["messageId"] for one in await service.history(made, "user-message")]

    await eventually(lambda: _has(ran, fresh["message_id"]))
    assert not set(await ran()) & set(sent), "a message of a deleted chat ran"


async def _has(read: Any, wanted: str) -> bool:
    return wanted in await read()


@pytest.mark.long
async def test_a_goal_goes_on_without_the_service(service: Scripted) -> None:
    made = await service.create("/goal goal 20")

    async def begun() -> bool:
        return len(await service.history(made, "turn-result")) >= 2

    await eventually(begun)
    await service.kill()
    turns = service.driver.place(made) / "turns"
    seen = len(turns.read_text())

    async def further() -> bool:
        return len(turns.read_text()) > min(seen + 2, 19)

    await eventually(further, "turns without a service")
    await service.start()

    async def complete() -> bool:
        goal = (await service.get(made, "/chats"))["chats"][0]["goal"]
        return goal is not None and goal["status"] == "complete"

    await eventually(complete)
    said = [one["messageId"] for one in await service.history(made, "user-message")]
    assert len(said) == len(set(said)) == 20
