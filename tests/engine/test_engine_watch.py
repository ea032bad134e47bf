"""An engine that nobody can reach, or nobody needs, ends by itself."""

import asyncio
import shutil
from typing import Any
from uuid import UUID, uuid4

import pytest

from quarterdeck.engine import daemon as watch
from quarterdeck.wire.engine import ChangeGoal, OpenChat

HOUR = 3600.0


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "WATCH_SECONDS", 0.01)


async def ends(place: Any, engine: "asyncio.Task[None]", hours: float = 0) -> None:
    """Waits for an engine's end, while hours pass."""
    async with asyncio.timeout(60):
        while not engine.done():
            place.ahead += hours * HOUR
            await asyncio.wait({engine}, timeout=0.02)
    await engine


async def looks(place: Any, monkeypatch: pytest.MonkeyPatch, hours: float = 0) -> None:
    """Returns after some looks, each of which may end an engine; before each, hours pass."""
    seen, enough = [0], asyncio.Event()
    check = watch.FileWatcher.check

    async def counted(self: watch.FileWatcher) -> None:
        place.ahead += hours * HOUR
        await check(self)
        seen[0] += 1
        if seen[0] > 3:
            enough.set()

    monkeypatch.setattr(watch.FileWatcher, "check", counted)
    await enough.wait()


async def alone(place: Any, *links: Any) -> None:
    """Nobody is connected any more, and an hour passes."""
    for link in links:
        await link.close()
    place.ahead += HOUR


@pytest.mark.parametrize("lost", ["all", "run", "state"])
async def test_its_directory_was_removed(place, lost: str) -> None:
    engine = await place.start()
    link = await place.link()
    shutil.rmtree(place.root if lost == "all" else place.root / lost)
    await ends(place, engine)
    assert link.closed or await link.wait_closed() is None
    place.root.mkdir(exist_ok=True)


async def test_one_that_was_made_anew_is_anothers(place) -> None:
    engine = await place.start()
    await (await place.link()).status()
    shutil.rmtree(place.run_dir)
    place.configure()
    (place.run_dir / "engine.sock").touch()
    await ends(place, engine)


async def test_unused_and_alone_it_ends_as_when_it_is_put_to_sleep(place, agents, message) -> None:
    place.auto_stop = HOUR
    engine = await place.start(agents.FakeCatalog())
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "say hello"))
    await entries.wait("chat.turn.completed")
    place.ahead += HOUR
    assert (await link.status()).idle_seconds >= HOUR  # somebody is there to decide
    await alone(place, entries.link, link)
    await ends(place, engine, hours=1)
    # The next one knows, so that whoever comes back may let it sleep.
    again = await place.start(agents.FakeCatalog())
    link = await place.link()
    assert (await link.status()).idle_seconds >= HOUR
    await link.chat_send(message(chat, "say again"))
    assert (await link.status()).idle_seconds < HOUR
    await link.shutdown()
    await ends(place, again)
    # One that was started on purpose begins to count.
    await place.start(agents.FakeCatalog())
    assert (await (await place.link()).status()).idle_seconds < HOUR


async def new_chat(link) -> UUID:
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    return chat


@pytest.mark.parametrize("busy", ["link", "turn", "goal", "no limit"])
async def test_what_keeps_it_running(
    place, agents, message, monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    place.auto_stop = None if busy == "no limit" else HOUR
    engine = await place.start(agents.FakeCatalog())
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    if busy == "turn":
        await link.chat_send(message(chat, "wait"))
        await entries.wait("chat.turn.delta", 2)
    elif busy == "goal":
        await link.chat_goal(ChangeGoal(chat_id=chat, objective="goal wait"))
        await entries.wait("chat.turn.started", 2)
    await alone(place, *([] if busy == "link" else [entries.link, link]))
    await looks(place, monkeypatch, hours=1)
    assert not engine.done()


async def test_one_that_is_used_is_not_idle(place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.auto_stop = 2 * HOUR
    engine = await place.start()
    await alone(place, await place.link())
    await looks(place, monkeypatch)
    assert not engine.done()
    await ends(place, engine, hours=1)


async def test_a_service_that_left_just_now_may_come_back(
    place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.auto_stop = HOUR
    engine = await place.start()
    link = await place.link()
    place.ahead += HOUR
    await link.close()
    await looks(place, monkeypatch)
    assert not engine.done()
    await ends(place, engine, hours=1)
