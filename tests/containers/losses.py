"""Replicas that lose their volume, whatever runs their containers."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.wire.events import EventType
from tests.containers.deck import Deck
from tests.support.waiting import WAIT_SECONDS, eventually

Lose = Callable[[str], Awaitable[None]]
"""Ends a replica's container, if it has one, and removes its volume."""

PREPARE = (
    "cd shop && git commit -q --allow-empty -m mine && git branch other && git tag own"
    " && for n in 1 2; do echo $n >> README && git stash -q; done"
    " && echo edited >> README && echo new > new && ln -s new link"
    " && echo ignored > .gitignore && echo ignored > ignored"
    " && mkdir -p ~/.quarterdeck/canvas && echo a plan > ~/.quarterdeck/canvas/plan.md"
)
STATE = (
    "cd shop && git status --short --branch && git log --format=%s -1 other && git tag --list own"
    " && git stash list && git diff && cat new turn && readlink link"
)


def block(*commands: str) -> dict[str, str]:
    lines = "\n".join(commands)
    return {"message": f"```sh\n{lines}\n```"}


def save_of(deck: Deck, id: str) -> Path:
    return deck.home.saves / f"{id}.git"


async def until_saved(deck: Deck, id: str, path: str, text: str) -> None:
    """Wait until a file of the repository is saved with this text."""
    (source,) = await repositories(deck, id)
    ref = f"refs/saves/{source}/qd/saved:{path}"
    show = ["git", "--git-dir", str(save_of(deck, id)), "show", ref]

    def there() -> bool:
        done = subprocess.run(show, capture_output=True, text=True)
        return done.returncode == 0 and done.stdout == text

    await eventually(there, f"a save of {path}")


async def until_all_saved(deck: Deck, id: str) -> None:
    """Wait until no save runs or is due, also of the turns whose results are in the history.

    The save of the connection may be the one that has a turn's file, and that of the turn come later.
    """
    context, site = deck.service.context, deck.service.fleet.of(id).site

    async def completed() -> bool:
        results = await history(deck, id, "turn-result")
        types = [one.type for one in await context.event_log.read_after(id, 0, 100_000)]
        return types.count(EventType.CHAT_TURN_COMPLETED) >= len(results)

    await eventually(completed, "the ends of the turns")
    row = await context.database.read(lambda c: find_workspace(c, id))
    assert row is not None
    async with asyncio.timeout(WAIT_SECONDS):
        await site.mark.reached(row.journal_index)
    await eventually(lambda: not site.unsaved.is_set() and not site.saving.locked(), "the save")


async def repositories(deck: Deck, id: str) -> list[str]:
    """Return the ids of a replica's repositories."""
    return await deck.service.context.database.read(lambda c: _repositories(c, id))


def _repositories(connection: Connection, id: str) -> list[str]:
    row = find_workspace(connection, id)
    assert row is not None
    return [one["id"] for one in json.loads(row.repositories_json)]


async def history(deck: Deck, id: str, type: str) -> list[dict[str, Any]]:
    events = (await deck.get(f"/v1/replica/{id}/history?limit=1000"))["events"]
    return [one["payload"] for one in events if one["type"] == type]


async def ended(deck: Deck, id: str, turns: int) -> list[dict[str, Any]]:
    async def there() -> list[dict[str, Any]] | None:
        results = await history(deck, id, "turn-result")
        return results if len(results) >= turns else None

    return await eventually(there, f"the end of {turns} turns")


async def restored(deck: Deck, id: str) -> str:
    """Wait until the chat says what was restored, which it does once; return that.

    It says so when it is opened, after the replica has become active.
    """
    (note,) = await eventually(lambda: history(deck, id, "git-operation"), "the note")
    assert note["operation"] == "restore"
    return note["text"]


async def rest(deck: Deck, id: str) -> None:
    await deck.post(f"/v1/replica/{id}/sleep")


async def wake(deck: Deck, id: str) -> None:
    await deck.post(f"/v1/replica/{id}/wake", status=202)
    await deck.reach(id, "active")


async def forked_from_its_save(deck: Deck, environment: str, asleep: bool) -> None:
    """A replica whose files cannot be reached."""
    id = await deck.create(environment)
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    await deck.run(id, PREPARE)
    name = (await deck.get(f"/v1/replica/{id}"))["replica"]["name"]
    seen = await deck.run(id, STATE)
    assert all(text in seen for text in ("?? new", " M README", "own", "stash@{1}", "+edited"))
    if asleep:
        await rest(deck, id)
    fork = (await deck.post(f"/v1/replica/{id}/fork", {}, 201))["replica"]
    await deck.reach(fork["id"], "active")
    there = await deck.run(fork["id"], STATE)
    assert there == seen.replace(f"qd/{name}", f"qd/{fork['name']}", 1)
    # Its chat goes on where the other one's was, and they are independent.

    async def told() -> list[dict[str, Any]] | None:
        notes = await history(deck, fork["id"], "git-operation")
        return notes if len(notes) > 1 else None

    notes = await eventually(told, "the notes")
    assert [one["operation"] for one in notes] == ["fork", "restore"]
    assert notes[1]["text"].startswith("The files are those of the other replica's save of ")
    await deck.post(f"/v1/replica/{fork['id']}/messages", block("echo fork > fork"))
    assert len(await ended(deck, fork["id"], 2)) == 2
    await until_saved(deck, fork["id"], "fork", "fork\n")
    if not asleep:
        assert await deck.run(id, STATE) == seen
    for one in (fork["id"], id):
        await deck.client.delete(f"/v1/replica/{one}")
        assert not save_of(deck, one).exists()


async def lost_in_sleep(deck: Deck, environment: str, lose: Lose) -> None:
    id = await deck.create(environment)
    await deck.run(id, PREPARE)
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    before = await deck.run(id, STATE)
    assert all(text in before for text in ("?? new", " M README", "own", "stash@{1}", "+edited"))
    checkpoints = (await deck.get(f"/v1/replica/{id}/checkpoints"))["checkpoints"]
    await rest(deck, id)
    await lose(id)
    await wake(deck, id)
    assert await deck.run(id, STATE) == before
    assert (await deck.get(f"/v1/replica/{id}/checkpoints"))["checkpoints"] == checkpoints != []
    assert "ignored" not in (await deck.run(id, "ls shop")).split()
    assert (await deck.get(f"/v1/replica/{id}/canvas/plan.md"))["content"] == "a plan\n"
    assert "shop" in await restored(deck, id)
    # The agent's session goes on, its next turn is saved, and nobody is told again.
    await deck.post(f"/v1/replica/{id}/messages", block("echo after > after"))
    assert len(await ended(deck, id, 2)) == 2
    await until_saved(deck, id, "after", "after\n")
    await rest(deck, id)
    await wake(deck, id)
    assert len(await history(deck, id, "git-operation")) == 1
    await deck.client.delete(f"/v1/replica/{id}")
    assert not save_of(deck, id).exists()


async def lost_in_a_turn(deck: Deck, environment: str, lose: Lose) -> None:
    """The turn has failed, the queue runs, and nothing runs twice."""
    id = await deck.create(environment)
    work = ("echo first >> ran", "git add ran", "git commit -qm first", "echo more >> README")
    await deck.post(f"/v1/replica/{id}/messages", block(*work))
    await ended(deck, id, 1)
    await until_saved(deck, id, "ran", "first\n")
    await until_all_saved(deck, id)
    unfinished = ("echo second >> ran", "touch running", "sleep 1000")
    await deck.post(f"/v1/replica/{id}/messages", block(*unfinished))
    for text in ("third", "fourth"):
        await deck.post(f"/v1/replica/{id}/messages", block(f"echo {text} >> ran"))
    await deck.run(id, "while ! [ -e shop/running ]; do sleep 0.05; done")
    await lose(id)
    results = await ended(deck, id, 4)
    assert [one["stopReason"] for one in results] == ["end_turn", "failed", "end_turn", "end_turn"]
    assert "lost with its node" in results[1]["error"]
    show = "cd shop && cat ran; tail -1 README; git log --format=%s -1; ls"
    seen = (await deck.run(id, show)).split()
    assert seen == ["first", "third", "fourth", "more", "first", "README", "ran"]
    said = [one["text"] for one in await history(deck, id, "user-message")]
    assert [one.split()[2] for one in said] == ["first", "second", "third", "fourth"]
    await restored(deck, id)
    await until_saved(deck, id, "ran", "first\nthird\nfourth\n")
