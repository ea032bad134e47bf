"""Idleness and policies with real engines: what goes on is really going on."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from tests.fleet.conftest import SETTINGS, Time, World
from tests.support.waiting import WAIT_SECONDS, eventually

pytestmark = pytest.mark.one_database


@pytest.fixture
def settings() -> FleetSettings:
    """Looks around all the time, so that nothing has to be asked for by hand."""
    return replace(SETTINGS, heartbeat=0.05, upkeep_interval=0.05, done_pause=0.2)


@pytest.fixture
async def time(scripted: World) -> Time:
    return Time(scripted)


@pytest.fixture
async def streams(scripted: World) -> AsyncIterator[httpx.AsyncClient]:
    """The same service on a real server, for streams."""
    ready = asyncio.Event()
    listeners = [UnixListener(scripted.home.socket)]
    running = asyncio.create_task(serve(scripted.service, listeners, lambda _: ready.set()))
    await ready.wait()
    transport = httpx.AsyncHTTPTransport(uds=str(scripted.home.socket))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers=scripted.headers, timeout=WAIT_SECONDS
    ) as client:
        yield client
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def stays_active(world: World, made: str) -> None:
    """Whole looks, in each of which the engine says that something goes on."""
    for _ in range(3):
        await world.fleet.upkeep.round()
        await world.fleet.upkeep.settled()
    assert (await world.get(made))["status"] == "active"


async def sleeps(world: World, time: Time, made: str) -> None:
    """Waits until it sleeps, while hours pass."""

    async def asleep() -> bool:
        time.move(hours=1)
        return (await world.get(made))["status"] == "sleeping"

    await eventually(asleep, "sleeping")


@pytest.mark.long
@pytest.mark.parametrize("minutes", [3, None, 1440])
async def test_it_sleeps_after_its_idle_time_and_not_before(
    scripted: World, time: Time, minutes: int | None
) -> None:
    config = None if minutes is None else {"auto_stop_minutes": minutes}
    made = await scripted.create(config=config)
    time.move(minutes=minutes or 60, seconds=-60)
    await stays_active(scripted, made)
    time.move(seconds=61)
    await scripted.reach(made, "sleeping")
    assert not scripted.driver.running(made)


@pytest.mark.long
async def test_a_processing_chat_is_not_idle(scripted: World, time: Time) -> None:
    made = await scripted.create(message="wait")
    await eventually(lambda: scripted.events(made, "chat.turn.started"), "the turn")
    time.move(days=2)
    await stays_active(scripted, made)
    scripted.driver.let_go(made)
    await eventually(lambda: scripted.events(made, "chat.turn.completed"), "the turn's end")
    await sleeps(scripted, time, made)
    (end,) = await scripted.events(made, "chat.turn.completed")
    assert end["isComplete"] is True


async def asked(world: World) -> str:
    """A replica with one chat whose agent waits for an answer."""
    made = await world.create(message="ask")

    async def awaited() -> bool:
        return (await world.get(made))["chats"][0]["awaiting_input"]

    await eventually(awaited, "the question")
    return made


@pytest.mark.long
async def test_a_question_is_not_idle_for_a_day(scripted: World, time: Time) -> None:
    made = await asked(scripted)
    queued = await scripted.send(made, "hello")
    time.move(hours=23, minutes=59)
    await stays_active(scripted, made)
    await sleeps(scripted, time, made)
    # What was queued behind the question is kept.
    await scripted.client.post(f"/v1/workspaces/{made}/wake")
    await scripted.done(made, queued["message_id"])


@pytest.mark.long
async def test_a_chat_that_works_beside_a_question_is_not_idle(scripted: World, time: Time) -> None:
    made = await asked(scripted)
    chat = await scripted.client.post(f"/v1/replica/{made}/chats", json={"provider": "builtin"})
    await scripted.send(made, "wait", chat_id=chat.json()["chat"]["id"])
    await eventually(lambda: _started(scripted, made, 2), "the second turn")
    time.move(days=2)
    await stays_active(scripted, made)


@pytest.mark.parametrize("policy", [None, "archive_when_done"])
async def test_what_a_cost_limit_holds_back_keeps_nothing_awake(
    scripted: World, time: Time, policy: str | None
) -> None:
    made = await scripted.create(**({"lifecycle_policy": policy} if policy else {}))
    path = f"/v1/replica/{made}"
    await scripted.client.patch(f"{path}/permissions", json={"cost_limit": 1})
    stopped = await scripted.send(made, "cost 1.5 wait")
    queued = await scripted.send(made, "hello")
    assert await scripted.done(made, stopped["message_id"])
    chat = await scripted.client.post(f"{path}/chats", json={"provider": "builtin"})
    chat_id = chat.json()["chat"]["id"]
    await scripted.client.patch(f"{path}/chats/{chat_id}/goal", json={"objective": "goal 2"})

    async def held_back() -> bool:
        chats = (await scripted.get(made))["chats"]
        return [chat["turn_failed"] for chat in chats] == [True, True]

    await eventually(held_back, "the limit")
    await sleeps(scripted, time, made)
    assert "archived" not in await scripted.states(made)
    await scripted.client.patch(f"{path}/permissions", json={"cost_limit": None})
    await scripted.client.post(f"/v1/workspaces/{made}/wake")
    await scripted.done(made, queued["message_id"])

    async def reached() -> bool:
        chats = (await scripted.get(made))["chats"]
        return [chat["goal"]["status"] for chat in chats if chat["goal"]] == ["complete"]

    await eventually(reached, "the goal")


async def _started(world: World, made: str, count: int) -> bool:
    return len(await world.events(made, "chat.turn.started")) == count


@pytest.mark.long
async def test_an_attached_terminal_is_not_idle(
    scripted: World, time: Time, streams: httpx.AsyncClient
) -> None:
    made = await scripted.create()
    sessions = f"/v1/workspaces/{made}/terminal/sessions"
    opened = await streams.post(sessions, json={"cols": 80, "rows": 24})
    path = f"{sessions}/{opened.json()['session']['id']}/stream"
    async with streams.stream("GET", path) as stream:
        lines = stream.aiter_lines()
        while not (await anext(lines)).startswith("data:"):
            pass
        time.move(days=2)
        await stays_active(scripted, made)
        assert len((await streams.get(sessions)).json()["sessions"]) == 1

    # Its shell still runs, but nobody looks.
    await sleeps(scripted, time, made)


@pytest.mark.long
async def test_a_running_hook_is_not_idle(scripted: World, time: Time) -> None:
    go = scripted.home.root / "go"
    go.touch()
    hook = {"content": f"until test -e {go}; do sleep 0.02; done"}
    saved = await scripted.client.post("/v1/environments/global/start-hooks/save", json=hook)
    assert saved.status_code == 200, saved.text
    made = await scripted.create()
    go.unlink()
    scripted.driver.signal(made, signal.SIGKILL)  # the next engine runs the hook again

    async def again() -> bool:
        return len(await scripted.events(made, "hooks.started")) == 2

    await eventually(again, "the hook")
    time.move(days=2)
    await stays_active(scripted, made)
    go.touch()
    await scripted.reach(made, "sleeping")


# Policies


@pytest.mark.parametrize(
    ("policy", "end"), [("sleep_when_done", "sleeping"), ("archive_when_done", "archived")]
)
async def test_work_that_is_done_ends_it(
    scripted: World, time: Time, policy: str, end: str
) -> None:
    made = await scripted.create(message="wait", lifecycle_policy=policy)
    await eventually(lambda: scripted.events(made, "chat.turn.started"), "the turn")
    queued = await scripted.send(made, "and this")
    time.move(minutes=1)
    await stays_active(scripted, made)
    scripted.driver.let_go(made)
    await scripted.reach(made, end)
    assert len(await scripted.done(made, queued["message_id"])) == 1
    states = (await scripted.states(made))[2:]
    assert states == ["sleeping", "archived"][: 2 if end == "archived" else 1]


@pytest.mark.long
async def test_a_goal_is_done_before_the_work_is(scripted: World, time: Time) -> None:
    made = await scripted.create(
        message="goal 5", goal_mode=True, lifecycle_policy="sleep_when_done"
    )
    replica = await scripted.reach(made, "sleeping")
    assert replica["chats"][0]["goal"]["status"] == "complete"
    assert len(await scripted.events(made, "chat.turn.completed")) == 5


async def status_of(world: World, made: str) -> int:
    return (await world.client.get(f"/v1/replica/{made}")).status_code


@pytest.mark.long
async def test_seven_days_asleep_then_archived_and_a_message_restores(
    scripted: World, time: Time
) -> None:
    made = await scripted.create(message="hello")
    await eventually(lambda: scripted.events(made, "chat.turn.completed"), "the turn")
    await scripted.post(made, "/sleep")
    time.move(days=6, hours=23)
    await scripted.fleet.upkeep.round()
    await scripted.fleet.upkeep.settled()
    assert (await scripted.get(made))["status"] == "sleeping"
    time.move(hours=2)
    await scripted.reach(made, "archived")
    sent = await scripted.send(made, "again")
    assert sent["status"] == "waking"
    await scripted.done(made, sent["message_id"])
    history: dict[str, Any] = (await scripted.client.get(f"/v1/replica/{made}/history")).json()
    said = [one["payload"]["text"] for one in history["events"] if one["type"] == "user-message"]
    assert said == ["hello", "again"]


@pytest.mark.long
async def test_delete_after_inactivity_leaves_nothing(scripted: World, time: Time) -> None:
    made = await scripted.create(lifecycle_policy="delete_after_inactivity")
    time.move(minutes=61)
    await scripted.reach(made, "sleeping")
    time.move(hours=25)

    async def gone() -> bool:
        return await status_of(scripted, made) == 404

    await eventually(gone, "the deletion")

    async def removed() -> bool:
        return not scripted.driver.place(made).exists()

    await eventually(removed, "the removal of its files")


# Without a service


async def ended_alone(world: World, time: Time, made: str) -> None:
    """Hours pass until the engine has ended by itself."""

    async def ended() -> bool:
        time.move(hours=1)
        return not world.driver.running(made)

    await eventually(ended, "the engine's end")


@pytest.mark.long
async def test_an_engine_that_nobody_uses_ends_without_a_service(
    scripted: World, time: Time
) -> None:
    made = await scripted.create(message="wait")
    await eventually(lambda: scripted.events(made, "chat.turn.started"), "the turn")
    queued = await scripted.send(made, "and this")

    async def delivered() -> bool:
        return len(await scripted.events(made, "chat.turn.accepted")) == 2

    await eventually(delivered, "the message in the engine")
    starts = scripted.driver.calls["start"]
    await scripted.stop()
    scripted.driver.let_go(made)  # what it has to do is done first
    await ended_alone(scripted, time, made)
    await scripted.start()
    scripted.context.clock = time
    await scripted.reach(made, "sleeping")
    assert scripted.driver.calls["start"] == starts + 1, "its journal was read"
    ends = await scripted.events(made, "chat.turn.completed")
    assert [end["isComplete"] for end in ends] == [True, True]
    assert ends[1]["messageId"] == queued["message_id"]
    assert await scripted.states(made) == ["preparing", "active", "sleeping"]
    sent = await scripted.send(made, "again")
    assert sent["status"] == "waking"
    assert len(await scripted.done(made, sent["message_id"])) == 1
    await stays_active(scripted, made)


@pytest.mark.long
async def test_one_that_ended_alone_goes_on_for_who_asks(scripted: World, time: Time) -> None:
    made = await scripted.create(message="hello")
    await eventually(lambda: scripted.events(made, "chat.turn.completed"), "the turn")
    await scripted.stop()
    await ended_alone(scripted, time, made)
    scripted.settings = replace(scripted.settings, upkeep_interval=3600)
    await scripted.start()
    scripted.context.clock = time
    sent = await scripted.send(made, "are you there?")
    assert len(await scripted.done(made, sent["message_id"])) == 1
    await stays_active(scripted, made)
