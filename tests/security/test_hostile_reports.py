"""What an engine reports is bounded before it becomes a row or part of an answer."""

import json
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from quarterdeck.service import relay
from quarterdeck.service.chats import rows as chat_rows
from quarterdeck.service.db.tables import hook_logs, webhook_deliveries, workspaces
from quarterdeck.service.environments import rows as environment_rows
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.notifications import rows as notification_rows
from quarterdeck.service.notifications.notifier import _notice
from quarterdeck.service.replicas.rows import (
    MOST_PULL_REQUESTS,
    MOST_TOGETHER,
    find_workspace,
    work_of,
)
from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT
from quarterdeck.wire.terminals import EXEC_OUTPUT_LIMIT
from tests.fleet.conftest import World
from tests.security.forged_engine import MOMENT, Forged, chat, forged, journal
from tests.security.test_hostile_engine import LOG, errors, marked
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

LONG = "x" * 1_000_000


async def report(world: World, made: str, *entries: tuple[str, dict[str, Any]]) -> None:
    """Let an engine report these entries, and wait until they are stored."""

    number = 0

    def prepare(engine: Forged) -> None:
        nonlocal number
        at, number = engine.last, engine.last + len(entries) + 1
        engine.sends = [
            journal(at + n, type, **payload) for n, (type, payload) in enumerate(entries, 1)
        ]
        engine.sends.append(journal(number, "mark", n=number))

    async with forged(world, made, prepare):
        await marked(world, made, number)


async def test_a_report_of_repositories_is_cut(world: World) -> None:
    made = await world.create()
    repositories = [
        {
            "name": f"{number}{LONG[:10_000]}",
            "path": f"/{LONG[:100_000]}",
            "currentBranch": LONG[:10_000],
            "base_branch": LONG[:10_000],
            "prUrls": [f"https://host/{number}/pull/{one}" for one in range(100)]
            + [f"https://host/{LONG[:5_000]}/pull/1"],
            "conflicts": ["c" * 10] * 2_000 if number == 0 else [],
            "extra": {str(one): "x" * 10 for one in range(1_000)},
        }
        for number in range(150)
    ]
    await report(world, made, ("repo.status.changed", {"repos": repositories}))
    statuses = (await world.get(made))["repository_statuses"]
    assert len(statuses) == 100
    first = statuses[0]
    assert len(first["repository"]) == 200 and len(first["branch"]) == 4_096
    assert len(first["base_branch"]) == 4_096 and len(first["conflicts"]) == 1_000
    assert [len(one["pr_urls"]) for one in statuses[:5]] == [MOST_PULL_REQUESTS] * 4 + [0]
    assert first["pr_urls"][-1] == "https://host/0/pull/99"
    urls = [url for one in statuses for url in one["pr_urls"]]
    assert len(urls) == MOST_TOGETHER and max(map(len, urls)) < 100
    (event,) = [
        one for one in await world.events(made, "repo.status.changed") if len(one["repos"]) == 100
    ]
    assert len(event["repos"][0]["path"]) == 4_096
    stored = select(func.length(workspaces.c.repository_statuses_json)).filter_by(id=made)
    size = await world.context.database.read(lambda c: c.execute(stored).scalar_one())
    assert size < 4 << 20


async def test_a_report_that_is_too_long_even_when_cut_is_left_out(world: World) -> None:
    made = await world.create()
    before = (await world.get(made))["repository_statuses"]
    files = ["x" * 4_000] * 1_000
    repositories = [{"name": str(one), "path": "/", "conflicts": files} for one in range(5)]
    await report(world, made, ("repo.status.changed", {"repos": repositories}))
    assert (await world.get(made))["repository_statuses"] == before
    assert len(await errors(world, made)) == 1


async def test_chats_of_an_engine_are_bounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "MOST_CHATS", 5)
    monkeypatch.setattr(relay, "MOST_STORED_CHATS", 7)
    made = await world.create()
    (own,) = [one["id"] for one in (await world.get(made))["chats"]]
    setting = {"id": "i" * 300, "name": LONG, "more": LONG}
    values = {"title": LONG, "lastMessageText": LONG, "last_message_text": LONG, "model": setting}
    goal = {"objective": LONG, "status": "active", "more": LONG}
    extra = [str(uuid4()) for _ in range(8)]
    await report(
        world,
        made,
        *(("chat.created", {"chat": chat(str(uuid4()), **values, goal=goal)}) for _ in range(3)),
        *(
            entry
            for id in extra
            for entry in (("chat.created", {"chat": chat(id)}), ("chat.deleted", {"chatId": id}))
        ),
        ("chat.updated", {"chat": chat(own, **values)}),
    )
    shown = (await world.get(made))["chats"]
    assert len(shown) == 4 and own in [one["id"] for one in shown]  # what is known goes on
    for one in shown:
        assert len(one["title"]) == 100 and len(one["last_message_text"]) == 500
        assert len(one["model"]["name"]) == 200 and "more" not in one["model"]
        assert one["goal"] is None or len(one["goal"]["objective"]) == 20_000
    stored = await world.context.database.read(lambda c: relay.count_chats(c, made))
    assert stored[0] == 4 and stored[1] <= 7


async def test_runs_of_hooks_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_rows, "MOST_HOOK_LOGS", 3)
    made = await world.create()
    long = {
        "output": LONG + "the end",
        "hookScript": LONG,
        "hookCommands": [LONG[:10_000]] * 100,
        "more": LONG,
    }
    logs = [LOG | {"hookName": f"{number}{LONG[:1_000]}"} | long for number in range(8)]
    logs += [LOG | {"hookType": kind} for kind in ("warm", "other")]
    await report(world, made, *(("hooks.status", {"log": log}) for log in logs))
    answer = (await world.client.get(f"/v1/replica/{made}/hooks")).json()
    assert len(answer["warm_hooks"]["logs"]) == 1
    kept = answer["start_hooks"]["logs"]
    assert [one["hookName"][0] for one in kept] == ["5", "6", "7"]
    for one in kept:
        assert len(one["output"]) == HOOK_OUTPUT_LIMIT and one["output"].endswith("the end")
        assert one["outputTruncated"] and "more" not in one and len(one["hookName"]) == 300
        assert len(one["hookScript"]) == 65_536 and len("".join(one["hookCommands"])) == 65_536
    count = select(func.count()).select_from(hook_logs).filter_by(workspace_id=made)
    assert await world.context.database.read(lambda c: c.execute(count).scalar_one()) == 4


async def test_a_queue_of_the_engine_costs_what_it_names_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await world.create()
    ended = await world.send(made, "one")
    await world.done(made, ended["message_id"])
    chat_id, id = ended["chat_id"], ended["message_id"]
    strange = [str(uuid4()) for _ in range(10_000)]
    moved: list[str] = []
    monkeypatch.setattr(relay, "move_message", lambda c, w, message, state: moved.append(message))

    def prepare(engine: Forged) -> None:
        at = engine.last
        canceled = {"canceledMessageIds": strange, "steeredMessageIds": [id, *strange]}
        engine.sends = [
            journal(at + 1, "chat.updated", chat=chat(chat_id), **canceled),
            journal(at + 2, "mark", n=1),
        ]
        queue = [*strange, *[id] * 20_000]
        engine.answers |= {
            "queue.held": {"held": True, "queues": {chat_id: queue}, "open": {}, "index": at + 2},
            "queue.cancel": {"index": 0},
            "queue.order": {"index": 0},
        }

    async with forged(world, made, prepare) as engine:
        await marked(world, made, 1)
        await eventually(lambda: any(c["method"] == "queue.release" for c in engine.calls))
    (cancel,) = [c["params"] for c in engine.calls if c["method"] == "queue.cancel"]
    assert cancel["messageIds"] == [id]
    assert moved == []


async def test_an_engine_cannot_keep_others_from_being_put_to_rest(world: World) -> None:
    """It may name more chats than a statement of the database may have parameters."""
    made, other = await world.create(), await world.create()
    manager, theirs = world.fleet.of(made), world.fleet.of(other)
    for one in (manager, theirs):
        await eventually(lambda one=one: one.site.pulse.report is not None)
    report = manager.site.pulse.report
    assert report is not None
    many = [uuid4() for _ in range(300_000)]
    manager.site.pulse.report = report.model_copy(update={"chats_held_back": many})
    work = await world.context.database.read(lambda c: work_of(c, made, [str(id) for id in many]))
    assert work is not None and not work.pending
    await world.fleet.upkeep._look(world.context.clock())  # raises when one cannot be checked


async def test_calls_of_one_replica_do_not_fill_the_queue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_rows, "MOST_CALLS", 5)
    made = await world.create(webhook_url="http://127.0.0.1:1/")
    turn = {"chatId": str(uuid4()), "messageId": str(uuid4()), "isComplete": True}
    await report(world, made, *[("chat.turn.completed", turn)] * 50)
    count = select(func.count()).select_from(webhook_deliveries)
    assert await world.context.database.read(lambda c: c.execute(count).scalar_one()) == 5


async def test_a_failure_that_only_the_engine_reports_is_not_announced(world: World) -> None:
    made = await world.create()
    row = await world.context.database.read(lambda c: find_workspace(c, made))
    assert row is not None
    failed = {"workspaceStatus": "error", "error": "all is lost"}
    notice = await world.context.database.read(
        lambda c: _notice(c, row, "engine.status.changed", failed)
    )
    assert notice is None


MANY_CHUNKS = """
import asyncio, resource
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.saves import read_header
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
async def chunks(start, chunk, count):
    yield start
    for _ in range(count):
        yield chunk
async def read(*of):
    try:
        await read_header(chunks(*of))
    except SandboxError as e:
        print(e, len(e.details or ""))
asyncio.run(read(b'{"leftOut":["' + b"x" * (8 << 20), b"x", 100_000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
asyncio.run(read(b'{"leftOut":[' + b"1," * (7 << 20) + b"1]}", b"\\n", 1))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10) - before < 200)
"""


def test_the_head_of_a_save_costs_little_in_whatever_chunks_it_comes() -> None:
    """Of seconds of a processor; when each chunk copied what came before it was minutes."""
    told = subprocess.run([sys.executable, "-c", MANY_CHUNKS], capture_output=True, check=False)
    assert told.stdout.decode().splitlines() == [
        "The replica sent no save. 0",
        "What the replica sent cannot be read. 31",
        "True",
    ], told.stderr[-300:]


async def test_few_events_are_read_for_the_commands_of_an_agent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that look like announcements may be any number, and megabytes each."""
    made = await world.create()
    (chat_id,) = [one["id"] for one in (await world.get(made))["chats"]]
    kept = {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "plan"}]}
    alike = {"sessionUpdate": "tool_call", "rawInput": kept}

    async def add(payload: dict[str, Any], count: int) -> None:
        event = {"timestamp": MOMENT, "type": "acp-session_update", "payload": payload}
        new = NewEvent("chat.turn.delta", {"chatId": chat_id, "event": event})
        await world.context.event_log.append(made, [new] * count)

    read = 0

    def counted(text: str) -> Any:
        nonlocal read
        read += 1
        return json.loads(text)

    monkeypatch.setattr(chat_rows, "from_json", counted)
    offered = chat_rows.offered_commands
    await add(kept, 1)
    await add(alike, 3)
    names = await world.context.database.read(lambda c: offered(c, chat_id))
    assert (names, read) == ([{"name": "plan"}], 4)
    await add(alike, 100)
    read = 0
    assert await world.context.database.read(lambda c: offered(c, chat_id)) == []
    assert read == chat_rows.UPDATES_READ


async def test_one_message_cannot_be_copied_by_joining_it(world: World) -> None:
    """A message has up to 8 MB, and an entry that joins it a few bytes."""
    made = await world.create()
    world.driver.fault(made, "refuse")
    (chat_id,) = {(await world.send(made, text))["chat_id"] for text in ("wait", "mine")}
    before = await world.queue(made, chat_id)
    waiting = [one["id"] for one in before["queue"]]
    joined = {"messageId": str(uuid4()), "messageIds": [waiting[-1], str(uuid4())]}
    await report(world, made, ("chat.updated", {"chat": chat(chat_id), "joined": joined}))
    assert [one["id"] for one in (await world.queue(made, chat_id))["queue"]] == waiting


async def test_the_output_of_a_command_is_cut(world: World) -> None:
    made = await world.create()
    told = {"output": LONG + "the end", "exit_code": 0, "timed_out": False, "truncated": False}

    def prepare(engine: Forged) -> None:
        engine.answers["exec"] = told

    async with forged(world, made, prepare) as engine:
        await eventually(lambda: any(c["method"] == "queue.held" for c in engine.calls))
        answer = (await world.post(made, "/exec", {"command": "true"})).json()
    assert answer["truncated"] and answer["output"].endswith("the end")
    assert len(answer["output"]) == EXEC_OUTPUT_LIMIT
