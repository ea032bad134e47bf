"""Saves of work in containers, and what is restored from them when a volume is lost."""

import asyncio
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from quarterdeck.service import relay
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.wire.engine import JournalEntry
from quarterdeck.wire.events import EventType
from tests.containers.deck import Deck
from tests.containers.losses import (
    block,
    ended,
    forked_from_its_save,
    history,
    lost_in_a_turn,
    lost_in_sleep,
    repositories,
    rest,
    restored,
    save_of,
    until_all_saved,
    until_saved,
    wake,
)
from tests.containers.processes import ProcessContainers
from tests.support.git import git, make_repository
from tests.support.waiting import WAIT_SECONDS


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


@pytest.mark.long
async def test_a_volume_that_is_lost_in_sleep_is_restored(deck: Deck, repository: Path) -> None:
    await lost_in_sleep(deck, await deck.environment(str(repository)), deck.containers.destroy)


@pytest.mark.long
async def test_a_volume_that_is_lost_in_a_turn_is_restored(deck: Deck, repository: Path) -> None:
    await lost_in_a_turn(deck, await deck.environment(str(repository)), deck.containers.destroy)


@pytest.mark.long
async def test_numbers_go_on_after_a_lost_journal(deck: Deck, repository: Path) -> None:
    """The service's rows know them, and what has run: no save of the journal is needed."""
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    id = await deck.create(await deck.environment(str(repository)))
    await deck.post(f"/v1/replica/{id}/messages", block("echo first >> ran"))
    await ended(deck, id, 1)
    await rest(deck, id)
    journal = containers.place(id) / "state/journal.jsonl"
    known = await _journal_index(deck, id)
    assert _indexes(journal)[-1] == known > 10
    await containers.destroy(id)
    await wake(deck, id)
    await deck.post(f"/v1/replica/{id}/messages", block("echo second >> ran"))
    await ended(deck, id, 2)
    await rest(deck, id)
    assert _indexes(journal)[0] == known + 1
    assert _indexes(journal)[-1] == await _journal_index(deck, id)
    await wake(deck, id)
    assert await deck.run(id, "cat shop/ran") == "first\nsecond\n"
    assert len(await history(deck, id, "user-message")) == 2


def _indexes(journal: Path) -> list[int]:
    lines = journal.read_text().splitlines()
    return [json.loads(line)["index"] for line in lines if not line.startswith("#")]


async def _journal_index(deck: Deck, id: str) -> int:
    row = await deck.service.context.database.read(lambda c: find_workspace(c, id))
    assert row is not None
    return row.journal_index


@pytest.mark.long
async def test_no_save_has_the_work_of_a_turn_that_is_not_known(
    deck: Deck, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn runs again, because its start was lost with the volume, but not on its own work."""
    id = await deck.create(await deck.environment(str(repository)))
    await deck.post(f"/v1/replica/{id}/messages", block("echo first >> ran"))
    await ended(deck, id, 1)
    await until_saved(deck, id, "ran", "first\n")
    await until_all_saved(deck, id)
    site = deck.service.fleet.of(id).site
    store, reached = relay._store, site.mark.reached  # pyright: ignore[reportPrivateUsage]
    waiting = asyncio.Event()

    async def hold(
        event_log: EventLog, id: str, entries: Sequence[JournalEntry], earlier: int
    ) -> None:
        if any(entry.type == EventType.CHAT_TURN_STARTED for entry in entries):
            await asyncio.Event().wait()
        await store(event_log, id, entries, earlier)

    async def noted(index: int) -> None:
        waiting.set()
        await reached(index)

    monkeypatch.setattr(relay, "_store", hold)
    monkeypatch.setattr(site.mark, "reached", noted)
    work = ("echo second >> ran", "touch running", "until [ -e go ]; do sleep 0.02; done")
    await deck.post(f"/v1/replica/{id}/messages", block(*work))
    await deck.run(id, "until [ -e shop/running ]; do sleep 0.02; done")
    site.unsaved.set()
    async with asyncio.timeout(WAIT_SECONDS):
        await waiting.wait()
    await deck.stop()
    monkeypatch.undo()
    await deck.containers.destroy(id)
    await deck.start()
    begun = "until [ -e shop/running ]; do sleep 0.02; done; touch shop/go; echo begun"
    assert await deck.running(id, begun) == "begun\n"
    results = await ended(deck, id, 2)
    assert [one["stopReason"] for one in results] == ["end_turn", "end_turn"]
    assert await deck.run(id, "cat shop/ran") == "first\nsecond\n"


@pytest.mark.long
@pytest.mark.parametrize("asleep", [False, True])
async def test_a_replica_whose_files_are_elsewhere_is_forked(
    deck: Deck, repository: Path, asleep: bool
) -> None:
    assert isinstance(deck.containers, ProcessContainers)
    deck.containers.moves = True
    await forked_from_its_save(deck, await deck.environment(str(repository)), asleep)


@pytest.mark.long
async def test_a_replica_that_lost_its_volume_is_forked(deck: Deck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    for text in ("one", "other"):
        made = await deck.post(f"/v1/replica/{id}/chats", {"provider": "builtin"}, 201)
        message = {**block(f"echo {text} > {text}"), "chat_id": made["chat"]["id"]}
        await deck.post(f"/v1/replica/{id}/messages", message)
    await ended(deck, id, 2)
    await until_saved(deck, id, "other", "other\n")
    await rest(deck, id)
    await deck.containers.destroy(id)
    fork = (await deck.post(f"/v1/replica/{id}/fork", {}, 201))["replica"]["id"]
    await deck.reach(fork, "active")
    assert await deck.run(fork, "cat shop/one shop/other") == "one\nother\n"
    # Of two chats one goes along; all of both is in the transcript.
    told = await deck.run(fork, "cat transcript-of-r1.md")
    assert "echo one" in told and "echo other" in told
    await deck.client.delete(f"/v1/replica/{id}")
    await deck.client.delete(f"/v1/replica/{fork}")
    assert [*deck.home.saves.iterdir()] == []


@pytest.mark.long
async def test_a_fork_without_a_save_says_why(deck: Deck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    await rest(deck, id)
    await deck.containers.destroy(id)
    await deck.driver.saved_work.remove(id)
    fork = (await deck.post(f"/v1/replica/{id}/fork", {}, 201))["replica"]["id"]
    assert "The other replica has no save" in (await deck.reach(fork, "error"))["error"]


@pytest.mark.long
async def test_a_volume_that_was_left_behind_is_not_used_again(
    deck: Deck, repository: Path
) -> None:
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    containers.moves = True
    id = await deck.create(await deck.environment(str(repository)))
    place = containers.place(id)
    old, newer = (place.with_name(name) for name in ("old", "newer"))
    await deck.run(id, "cd shop && echo old > old && echo ignored > .gitignore && echo 1 > ignored")
    await deck.run(id, "mkdir ~/closed && touch ~/closed/file && chmod 0 ~/closed")
    await rest(deck, id)
    # Awake on the same volume it has everything.
    await wake(deck, id)
    assert await deck.run(id, "cat shop/ignored") == "1\n"
    await rest(deck, id)
    place.rename(old)
    await wake(deck, id)
    assert (await deck.run(id, "ls -A shop")).split() == [".git", ".gitignore", "README", "old"]
    await deck.run(id, "cd shop && rm old && git add -A && git commit -qm newer && echo new > new")
    await rest(deck, id)
    place.rename(newer)
    old.rename(place)
    await wake(deck, id)
    assert (await deck.run(id, "ls -A shop")).split() == [".git", ".gitignore", "README", "new"]
    assert await deck.run(id, "cd shop && git log --format=%s -1; ls ~") == "newer\n"


@pytest.mark.long
async def test_a_missing_archive_is_replaced_by_the_save(deck: Deck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    await deck.run(id, "cd shop && git commit -q --allow-empty -m mine && echo new > new")
    await rest(deck, id)
    await deck.post(f"/v1/replica/{id}/archive")
    (deck.home.archives / f"{id}.tar.gz").unlink()
    await wake(deck, id)
    assert (
        await deck.run(id, "cd shop && cat new turn && git log --format=%s -1")
        == "new\nturn\nmine\n"
    )
    assert "shop" in await restored(deck, id)


@pytest.mark.long
async def test_a_save_that_fails_is_told_and_made_later(deck: Deck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    await until_saved(deck, id, "README", "A shop.\nOpen.\n")
    await until_all_saved(deck, id)
    aside = deck.home.saves.rename(deck.home.saves.with_name("aside"))
    deck.home.saves.touch()
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await told(deck, id, "could not be saved")
    deck.home.saves.unlink()
    aside.rename(deck.home.saves)
    await deck.post(f"/v1/replica/{id}/messages", block("echo again > again"))
    await until_saved(deck, id, "again", "again\n")


async def told(deck: Deck, id: str, text: str) -> list[str]:
    """Wait until an error with this text is in the replica's log; return all errors by then."""
    errors: list[str] = []
    headers = {"Last-Event-ID": "0"}
    async with deck.client.stream("GET", f"/v1/replica/{id}/events", headers=headers) as events:
        async for line in events.aiter_lines():
            if line.startswith("data:") and '"message"' in line and '"code"' in line:
                errors.append(line)
                if text in line:
                    break
    return errors


async def test_a_damaged_save_is_told_once_and_made_again(deck: Deck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    await until_saved(deck, id, "turn", "turn\n")
    await until_all_saved(deck, id)
    for pack in save_of(deck, id).glob("objects/pack/*.pack"):
        pack.chmod(0o600)
        os.truncate(pack, pack.stat().st_size // 2)
    for number in (1, 2):
        await deck.post(f"/v1/replica/{id}/messages", block(f"echo {number} > later"))
        await until_saved(deck, id, "later", f"{number}\n")
        await ended(deck, id, number + 1)
    await rest(deck, id)
    assert len([*deck.home.saves.glob(f"{id}.damaged-*.git")]) == 1
    await deck.containers.destroy(id)
    await wake(deck, id)
    assert await deck.run(id, "cat shop/turn shop/later") == "turn\n2\n"
    note = await restored(deck, id)
    assert "damaged" not in note
    # The restored files are told of last.
    errors = await told(deck, id, note)
    assert len([one for one in errors if f"{id}.damaged-1.git" in one]) == 1
    await deck.client.delete(f"/v1/replica/{id}")
    assert [*deck.home.saves.iterdir()] == []


@pytest.mark.long
async def test_what_can_be_read_of_a_damaged_save_is_restored(deck: Deck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    await deck.run(id, "cd shop && git commit -q --allow-empty -m mine && echo new > new")
    await rest(deck, id)
    (source,) = await repositories(deck, id)
    name = git(save_of(deck, id), "rev-parse", f"refs/saves/{source}/qd/saved:new").strip()
    # Into files of their own, to remove one of them.
    packs = [*save_of(deck, id).glob("objects/pack/*.pack")]
    moved = [pack.rename(deck.home.root / pack.name) for pack in packs]
    for pack in moved:
        unpack = ["git", "--git-dir", str(save_of(deck, id)), "unpack-objects", "-q"]
        await asyncio.to_thread(subprocess.run, unpack, input=pack.read_bytes(), check=True)
    (save_of(deck, id) / "objects" / name[:2] / name[2:]).unlink()
    await deck.containers.destroy(id)
    await wake(deck, id)
    seen = await deck.run(id, "cd shop && ls && git status --short && git log --format=%s -1")
    assert seen.split() == ["README", "turn", "??", "turn", "mine"]
    note = await restored(deck, id)
    assert "The save was damaged. Lost are: shop/new." in note
    await until_saved(deck, id, "turn", "turn\n")
    await deck.run(id, "echo again > shop/new")
    await rest(deck, id)
    await until_saved(deck, id, "new", "again\n")


@pytest.mark.long
async def test_a_restore_that_was_cut_off_is_done_again(deck: Deck, repository: Path) -> None:
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    id = await deck.create(await deck.environment(str(repository)))
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    await rest(deck, id)
    place = containers.place(id)
    # As far as it came: the repository is there, the engine's files are not.
    (place / "state" / "journal.jsonl").unlink()
    for path in (place / "state" / "agents").rglob("*"):
        if path.is_file():
            path.unlink()
    await wake(deck, id)
    assert [*(place / "state" / "agents").rglob("session*")]
    note = await restored(deck, id)
    assert "restored" in note
    # The agent reads it before the next message.
    lines = (place / "state" / "journal.jsonl").read_text().splitlines()
    notices = [
        json.loads(line[1:])["data"] for line in lines if line.startswith('#{"kind":"notices"')
    ]
    assert [one["notices"] for one in notices] == [[note]]


@pytest.mark.long
async def test_a_save_is_bounded(
    deck: Deck, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no longer needed is removed, and what is too large is left out and named."""
    monkeypatch.setattr("quarterdeck.sandboxes.saves.MOST_PACKS", 1)
    id = await deck.create(await deck.environment(str(repository)))
    await deck.run(id, "cd shop && truncate -s 210M large && echo small > small")
    await deck.run(id, "mkdir -p ~/.quarterdeck/canvas && cd ~/.quarterdeck/canvas && echo 1 > one")
    await deck.run(id, "truncate -s 70M ~/.quarterdeck/canvas/two")
    for number in range(3):
        await deck.post(f"/v1/replica/{id}/messages", block(f"echo {number} > number"))
        await ended(deck, id, number + 1)
        await until_saved(deck, id, "number", f"{number}\n")
    await rest(deck, id)
    assert len([*save_of(deck, id).glob("objects/pack/*.pack")]) <= 2
    assert int(git(save_of(deck, id), "count-objects").split()[0]) < 100
    await deck.containers.destroy(id)
    await wake(deck, id)
    assert sorted((await deck.run(id, "ls shop")).split()) == ["README", "number", "small"]
    assert (await deck.run(id, "ls ~/.quarterdeck/canvas")).split() == ["one"]
    note = await restored(deck, id)
    assert "shop/large" in note and "canvas/two" in note


@pytest.mark.long
async def test_a_replica_reads_no_save_but_its_own(deck: Deck, repository: Path) -> None:
    environment = await deck.environment(str(repository))
    one, other = await deck.create(environment), await deck.create(environment)
    for id in (one, other):
        await until_saved(deck, id, "README", "A shop.\nOpen.\n")
    ask = (
        "curl -sS -o /dev/null -w '%{http_code} '"
        ' -H "Authorization: Bearer $QD_ENGINE_SECRET" -H "X-Workspace-Id: $QD_WORKSPACE_ID"'
        " $QD_URL/v1/origin/{}/info/refs?service=git-upload-pack;"
    )
    asked = await deck.run(one, "".join(ask.replace("{}", id) for id in (one, other)))
    assert asked.split() == ["200", "404"]
