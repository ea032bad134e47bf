"""The directory in which an engine keeps its state is lost; what the service accepted is not."""

import signal
from typing import Any

import pytest

from quarterdeck.service.relay import public_payload
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.wire.engine import JournalEntry
from tests.fleet.conftest import World
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

LOST = "The engine's state was lost in the middle of this turn."


async def chat_of(world: World, made: str) -> dict[str, Any]:
    return (await world.get(made))["chats"][0]


async def busy(world: World, **body: Any) -> tuple[str, str, list[str]]:
    """A replica in the middle of a turn with two messages queued in its engine."""
    made = await world.create(message="wait", **body)
    chat = (await chat_of(world, made))["id"]
    await eventually(lambda: world.events(made, "chat.turn.started"), "the turn")
    queued = [(await world.send(made, text))["message_id"] for text in ("first", "second")]

    async def delivered() -> bool:
        accepted = await world.events(made, "chat.turn.accepted")
        return set(queued) <= {one["messageId"] for one in accepted}

    await eventually(delivered, "the messages in the engine")
    return made, chat, queued


def lose_state(world: World, made: str) -> None:
    (world.driver.place(made) / "journal.jsonl").unlink()


async def history(world: World, made: str, type: str) -> list[dict[str, Any]]:
    events = (await world.client.get(f"/v1/replica/{made}/history")).json()["events"]
    return [one["payload"] for one in events if one["type"] == type]


async def said(world: World, made: str) -> list[str]:
    return [one["text"] for one in await history(world, made, "user-message")]


async def rested(world: World, made: str) -> dict[str, Any]:
    """The chat, once a turn has ended, nothing runs in it and nothing waits.

    Between being given to the engine and its turn, the first message is neither in a queue nor run.
    """
    await eventually(lambda: world.events(made, "chat.turn.completed"), "the end of a turn")

    async def there() -> dict[str, Any] | None:
        chat = await chat_of(world, made)
        busy = chat["processing"] or (await world.queue(made, chat["id"]))["queue"]
        return None if busy else chat

    return await eventually(there, "the end of all turns")


@pytest.mark.long
async def test_a_message_of_which_the_engine_has_lost_only_that_keeps_its_place(
    scripted: World,
) -> None:
    world = scripted
    made, _, (first, second) = await busy(world)
    journal = world.driver.place(made) / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.unlink()  # a running engine writes on into the removed file
    journal.write_text("".join(line for line in lines if first not in line))
    world.driver.signal(made, signal.SIGKILL)
    await world.done(made, second)
    await rested(world, made)
    assert await said(world, made) == ["wait", "first", "second"]


@pytest.mark.long
@pytest.mark.parametrize("how", ["killed", "asleep"])
async def test_what_was_queued_runs_in_its_order(scripted: World, how: str) -> None:
    world = scripted
    made, _, queued = await busy(world)
    lose_state(world, made)
    if how == "killed":
        world.driver.signal(made, signal.SIGKILL)
    else:
        assert (await world.post(made, "/sleep")).status_code == 200
    last = (await world.send(made, "third"))["message_id"]
    await world.done(made, last)
    await rested(world, made)
    assert await said(world, made) == ["wait", "first", "second", "third"]
    ended = [one["messageId"] for one in await world.events(made, "chat.turn.completed")]
    assert ended[1:] == [*queued, last]
    started = [one["messageId"] for one in await world.events(made, "chat.turn.started")]
    assert started == ended, "a turn began twice"


async def test_a_turn_that_ran_ends_with_a_result_that_says_so(scripted: World) -> None:
    world = scripted
    made, chat, _ = await busy(world)
    (running,) = await world.events(made, "chat.turn.started")
    lose_state(world, made)
    world.driver.signal(made, signal.SIGKILL)
    (end,) = await world.done(made, running["messageId"])
    assert end["isComplete"] is False and end["chatId"] == chat
    result = (await history(world, made, "turn-result"))[0]
    assert (result["messageId"], result["stopReason"]) == (running["messageId"], "failed")
    assert result["error"].startswith(LOST)
    assert not (await rested(world, made))["processing"]


@pytest.mark.long
async def test_nothing_that_the_next_engine_tells_is_missed(scripted: World) -> None:
    world, made = scripted, await scripted.create(message="one")
    await rested(world, made)
    lose_state(world, made)
    world.driver.signal(made, signal.SIGKILL)
    path = world.driver.place(made) / "journal.jsonl"
    sent = await world.send(made, "two")
    await world.done(made, sent["message_id"])
    await rested(world, made)

    async def caught_up() -> list[JournalEntry] | None:
        lines = [
            JournalEntry.model_validate_json(line)
            for line in path.read_text().splitlines()
            if line[0] != "#"
        ]
        row = await world.context.database.read(lambda c: find_workspace(c, made))
        return lines if row is not None and row.journal_index == lines[-1].index else None

    lines = await eventually(caught_up, "the whole journal")
    stored = [one["payload"] for one in await world.events(made)]
    assert all(public_payload(one) in stored for one in lines)
    assert len(await world.events(made, "engine.ready")) == 2


async def next_engine(world: World, made: str) -> None:
    """Loses the state and the engine, and waits for the next one."""
    lose_state(world, made)
    world.driver.signal(made, signal.SIGKILL)

    async def ready() -> bool:
        return len(await world.events(made, "engine.ready")) == 2

    await eventually(ready, "the next engine")


@pytest.mark.long
async def test_the_chat_is_as_it_was(scripted: World) -> None:
    world, made = scripted, await scripted.create(message="hello")
    before = await rested(world, made)
    assert before["last_message_text"]
    await next_engine(world, made)
    path = f"/v1/replica/{made}/chats/{before['id']}"
    await eventually(lambda: renamed(world, path), "an engine that takes the name")
    after = await chat_of(world, made)
    assert after == {**before, "title": "Named", "updated_at": after["updated_at"]}


async def renamed(world: World, path: str) -> bool:
    answer = await world.client.patch(path, json={"display_name": "Named"})
    return answer.status_code == 200


@pytest.mark.long
async def test_a_goal_is_worked_towards_as_before(scripted: World) -> None:
    world, made = scripted, await scripted.create(message="hello")
    chat = (await rested(world, made))["id"]
    path = f"/v1/replica/{made}/chats/{chat}"
    await world.client.patch(f"{path}/goal", json={"objective": "goal 9999"})
    await eventually(lambda: tokens_above(world, made, 0), "the goal's first turns")
    await next_engine(world, made)
    used = (await chat_of(world, made))["goal"]["tokens_used"]
    await eventually(lambda: tokens_above(world, made, used), "the goal's next turns")
    await world.post(made, f"/chats/{chat}/interrupt")
    chat = await rested(world, made)
    assert (chat["goal"]["objective"], chat["goal"]["status"]) == ("goal 9999", "paused")


async def tokens_above(world: World, made: str, used: int) -> bool:
    return (await chat_of(world, made))["goal"]["tokens_used"] > used


@pytest.mark.long
async def test_a_state_that_was_not_lost_runs_nothing_twice(scripted: World) -> None:
    world = scripted
    made, _, queued = await busy(world)
    (running,) = await world.events(made, "chat.turn.started")
    world.driver.signal(made, signal.SIGKILL)
    for message_id in (running["messageId"], *queued):
        assert len(await world.done(made, message_id)) == 1
    await rested(world, made)
    assert await said(world, made) == ["wait", "first", "second"]
    started = [one["messageId"] for one in await world.events(made, "chat.turn.started")]
    assert started == [running["messageId"], *queued]
    assert not [one for one in await history(world, made, "turn-result") if LOST in str(one)]
