"""What an engine that is not ours can do to the service, and to other replicas: nothing."""

import asyncio
import json
import resource
import signal
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.engine import link as link_module
from quarterdeck.engine.errors import EngineProtocolError
from quarterdeck.engine.framing import VALUES_LIMIT, LineReader, decode
from quarterdeck.engine.link import UNREADABLE, EngineLink
from quarterdeck.service import event_rows
from quarterdeck.service.chats import history
from quarterdeck.service.chats import routes as chat_routes
from quarterdeck.service.chats.history import TurnFold
from quarterdeck.service.errors import DatabaseFullError
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet import transitions
from quarterdeck.service.fleet.engine_lifecycle import NOT_UNDERSTOOD
from quarterdeck.service.replicas.file_indexes import BadIndexError, unpack
from quarterdeck.wire.engine import LARGEST_INDEX, LINE_LIMIT
from quarterdeck.wire.files import INDEX_LIMIT
from tests.fleet.conftest import World
from tests.security.forged_engine import MOMENT, Forged, chat, forged, journal, line
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database


async def errors(world: World, made: str) -> list[str]:
    return [one["message"] for one in await world.events(made, "error")]


async def marked(world: World, made: str, number: int) -> None:
    """Waits for the entry that a forged journal ends with."""

    async def stored() -> bool:
        return {"n": number} in [one["payload"] for one in await world.events(made)]

    await eventually(stored, f"entry {number}")


async def test_the_queue_of_another_replica_is_neither_changed_nor_shown(world: World) -> None:
    victim, made = await world.create(), await world.create()
    world.driver.fault(victim, "refuse")
    sent = [await world.send(victim, text) for text in ("wait", "one", "two")]
    chat_id, ids = sent[0]["chat_id"], [one["message_id"] for one in sent]
    canceled = (await world.send(victim, "canceled"))["message_id"]
    answer = await world.client.delete(f"/v1/replica/{victim}/chats/{chat_id}/queue/{canceled}")
    assert answer.status_code == 200, answer.text
    before = await world.queue(victim, chat_id)

    def prepare(engine: Forged) -> None:
        at = engine.last
        engine.sends = [
            journal(at + 1, "chat.updated", chat=chat(chat_id), queue=[*reversed(ids)]),
            journal(at + 2, "chat.updated", chat=chat(chat_id), canceledMessageIds=ids),
            journal(at + 3, "chat.deleted", chatId=chat_id),
            journal(
                at + 4,
                "chat.turn.delta",
                chatId=chat_id,
                event={"timestamp": "2026-01-02T00:00:00Z", "type": "note", "payload": {}},
            ),
            journal(
                at + 5, "chat.created", chat=chat(str(uuid4()), title="x", parentChatId=chat_id)
            ),
            journal(at + 6, "mark", n=1),
        ]
        engine.answers |= {
            "queue.held": {"held": True, "queues": {chat_id: [*ids, canceled]}, "open": {}},
            "queue.order": {"index": 0},
            "queue.cancel": {"index": 0},
            "queue.release": None,
        }

    async with forged(world, made, prepare) as engine:
        await marked(world, made, 1)
        await eventually(lambda: any(c["method"] == "queue.release" for c in engine.calls))
        told = json.dumps([c["params"] for c in engine.calls if c["method"].startswith("queue.o")])
        assert not any(c["method"] == "queue.cancel" for c in engine.calls)
        assert not any(id in told for id in (*ids, canceled))
    assert await world.queue(victim, chat_id) == before
    (created,) = [c for c in (await world.get(made))["chats"] if c["title"] == "x"]
    assert created["parent_chat_id"] is None
    history = await world.client.get(f"/v1/replica/{victim}/history?chat_id={chat_id}")
    assert "note" not in [one["type"] for one in history.json()["events"]]


LOG = {
    "hookType": "start",
    "hookName": "a",
    "output": "",
    "outputTruncated": False,
    "outputTotalChars": 0,
    "exitCode": 0,
    "timedOut": False,
    "executedAt": "2026-01-02T00:00:00Z",
}
BAD: list[tuple[str, dict[str, Any]]] = [
    ("hooks.status", {"log": "text"}),
    ("hooks.status", {"log": [1]}),
    ("hooks.status", {"log": {**LOG, "executedAt": "0001-01-01T00:00:00+14:00"}}),
    ("chat.updated", {"chat": "no chat"}),
    ("chat.updated", {"chat": chat(str(uuid4())), "queue": 7}),
    ("chat.updated", {"chat": chat(str(uuid4())), "canceledMessageIds": 7}),
    ("chat.updated", {"chat": {**chat(str(uuid4())), "updatedAt": "9999-12-31T23:59:59-14:00"}}),
    # In UTC of the years 1 and 9999.
    ("chat.updated", {"chat": {**chat(str(uuid4())), "createdAt": "0002-01-01T00:00:00+14:00"}}),
    ("chat.updated", {"chat": {**chat(str(uuid4())), "updatedAt": "9998-12-31T23:59:59-14:00"}}),
    ("chat.turn.delta", {"chatId": "x", "event": "text"}),
    ("chat.turn.delta", {"chatId": ["x"]}),
    ("chat.turn.completed", {"chatId": "x", "messageId": {}, "isComplete": True}),
    ("engine.status.changed", {"status": "x"}),
    ("engine.ready", {"version": [1]}),
    ("repo.status.changed", {"repos": [{"name": 1}]}),
]
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("hooks.status", {"log": {**LOG, "hookType": "\0" * 40}}),
    (
        "chat.turn.delta",
        {"chatId": "y" * 5_000, "event": {"timestamp": "2026-01-02T00:00:00Z", "type": "note"}},
    ),
    ("x" * 5_000, {"deep": [[[[[]]]]], "number": int("9" * 4_000)}),
]


async def test_what_is_well_formed_but_absurd_breaks_no_answer(world: World) -> None:
    made = await world.create()
    id = str(uuid4())

    def prepare(engine: Forged) -> None:
        says = {"timestamp": MOMENT, "type": "user-message", "payload": {"messageId": []}}
        page = "https://host/" + "9" * 5_000
        engine.sends = [
            journal(engine.last + 1, "chat.created", chat=chat(id)),
            journal(engine.last + 2, "chat.turn.delta", chatId=id, event=says),
            journal(
                engine.last + 3,
                "repo.status.changed",
                repos=[{"name": "a", "path": "/a", "prUrls": [page]}],
            ),
            journal(engine.last + 4, "mark", n=1),
        ]

    async with forged(world, made, prepare):
        await marked(world, made, 1)
        for path in ("", f"/{made}", f"/{made}/history", f"/{made}/history?chat_id={id}"):
            assert (await world.client.get(f"/v1/replica{path}")).status_code == 200, path


async def test_a_chat_of_another_replica_is_announced_though_an_engine_names_it(
    world: World,
) -> None:
    other, made = await world.create(), await world.create()
    sent = await world.send(other, "begin")
    await world.done(other, sent["message_id"])
    asking = chat(sent["chat_id"], awaitingInput=True)

    def prepare(engine: Forged) -> None:
        engine.sends = [
            journal(engine.last + 1, "chat.updated", chat=asking),
            journal(engine.last + 2, "mark", n=1),
        ]

    async with forged(world, made, prepare):
        await marked(world, made, 1)
    waiting = world.service.notifications.notifier._waiting
    waiting.clear()
    await world.context.event_log.append(other, [NewEvent("chat.updated", {"chat": asking})])
    assert list(waiting) == [other]


async def test_entries_of_another_shape_are_left_out_and_reported_once(world: World) -> None:
    made = await world.create()
    whole = len(await world.events(made))

    def prepare(engine: Forged) -> None:
        entries = [*BAD, *GOOD, ("infinite", {"n": 1})]
        at = engine.last
        engine.sends = [journal(at + n, t, **p) for n, (t, p) in enumerate(entries, 1)]
        engine.sends[-1] = engine.sends[-1].replace(b'"n": 1', b'"n": 1e999, "m": NaN')
        at += len(entries)
        engine.sends += [
            # Damaged lines of a journal, whose numbers can still be read.
            journal(at + 1, "strange", ts="never"),
            journal(at + 2, "strange", text="here").replace(b"here", b"\xff\xfe"),
            journal(at + 3, "strange", text="here").replace(b"}}}", b"}"),
            journal(at + 4, "strange", text=[[]] * VALUES_LIMIT),
            journal(at + 5, "mark", n=2),
        ]

    async with forged(world, made, prepare):
        await marked(world, made, 2)
        assert (await errors(world, made)).count(
            UNREADABLE
        ) == 5  # one by the relay, four by the link
        stored = (await world.events(made))[whole:]
        assert {"n": None, "m": None} in [one["payload"] for one in stored]
        assert [one["index"] for one in stored] == list(range(whole + 1, whole + 1 + len(stored)))
        for path in ("", "/history", "/hooks", "/chats"):
            assert (await world.client.get(f"/v1/replica/{made}{path}")).status_code == 200, path
    world.driver.signal(made, signal.SIGKILL)  # the next one numbers above what is stored
    sent = await world.send(made, "still here")
    assert await world.done(made, sent["message_id"])


@pytest.mark.parametrize("answer", ["text", [], {"index": "x"}, {"index": -1}, {"index": 2**63}])
async def test_a_confirmation_of_another_shape_is_the_engines_fault(
    world: World, answer: Any
) -> None:
    made = await world.create()
    id = str(uuid4())

    def prepare(engine: Forged) -> None:
        engine.sends = [
            journal(engine.last + 1, "chat.created", chat=chat(id)),
            journal(engine.last + 2, "mark", n=1),
        ]
        engine.answers["chat.respond"] = answer

    async with forged(world, made, prepare):
        await marked(world, made, 1)
        choice = {"requestId": "r", "optionId": "yes"}
        said = await world.post(made, f"/chats/{id}/respond", choice)
    assert (said.status_code, said.json()["code"]) == (502, "ENGINE_UNREACHABLE"), said.text


@pytest.mark.parametrize("packed", ["\u0301", "x", "eA==", "\0"])
async def test_files_that_cannot_be_unpacked_are_none(world: World, packed: str) -> None:
    made = await world.create()

    def prepare(engine: Forged) -> None:
        engine.sends = [journal(engine.last + 1, "mark", n=1)]
        engine.answers["files.index"] = {"truncated": False, "packed": packed}

    async with forged(world, made, prepare) as engine:
        await marked(world, made, 1)
        found = await world.client.get(f"/v1/replica/{made}/repo-files/search?refresh=true")
        assert any(call["method"] == "files.index" for call in engine.calls)
    assert (found.status_code, found.json()["files"]) == (200, []), found.text


UNNUMBERED = {
    "garbage": b"\xff\xfe garbage\n",
    "an endless line": b"x" * (LINE_LIMIT + 1),
    "2^63": journal(2**63, "strange"),
    "2^53": journal(LARGEST_INDEX + 1, "strange"),
    "negative": journal(-1, "strange"),
    "zero": journal(0, "strange"),
    "a text": journal("x", "strange"),
    "a list": line([1, 2]),
    "deep": b'{"jsonrpc":"2.0","result":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n",
    "no version": line({"method": "journal"}),
}


@pytest.mark.long
async def test_garbage_is_met_with_pauses_and_one_error(world: World) -> None:
    made = await world.create()
    for name, data in UNNUMBERED.items():
        async with forged(
            world, made, lambda engine, data=data: engine.sends.append(data)
        ) as engine:
            await eventually(lambda engine=engine: engine.opened > 2, name)
    assert (await errors(world, made)).count(NOT_UNDERSTOOD) == 1

    def repeat(engine: Forged) -> None:
        engine.sends = [b"garbage\n"]

    async with forged(world, made, repeat) as engine:
        await asyncio.sleep(1)  # what is measured: 350 connections in this time without a pause
        assert engine.opened < 30
    sent = await world.send(made, "still here")
    assert await world.done(made, sent["message_id"])


@pytest.mark.parametrize(
    ("hello", "answers"),
    [
        ({"workspaceId": str(uuid4())}, {}),
        ({"lastIndex": 2**63}, {}),
        ({}, {"queue.held": {"held": True, "queues": {"not an id": []}}}),
        ({}, {"queue.held": {"held": True, "open": {"x": "y"}}}),
        ({}, {"queue.held": {"held": True, "index": 2**70}}),
        ({}, {"status": {"idleSeconds": 1e300}}),
        ({}, {"status": "text"}),
    ],
)
async def test_answers_of_another_shape(
    world: World, hello: dict[str, Any], answers: dict[str, Any]
) -> None:
    made = await world.create()

    def prepare(engine: Forged) -> None:
        engine.hello = hello
        engine.answers |= answers

    async with forged(world, made, prepare):

        async def reported() -> bool:
            return NOT_UNDERSTOOD in await errors(world, made)

        await eventually(reported)
        assert (await world.get(made))["status"] == "active"


def peak() -> int:
    """The most memory that this process ever had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.parametrize("ends", [b"", b"\n"])
async def test_a_line_that_is_too_long_is_refused_though_it_arrives_at_once(ends: bytes) -> None:
    for size in (10, 11):
        reader = asyncio.StreamReader()
        reader.feed_data(b"x" * size + ends + b"next\n")
        lines = LineReader(reader, limit=10 if ends else 14)
        if size == 10:
            assert await lines.line() == b"x" * 10 + (b"" if ends else b"next")
        else:
            with pytest.raises(EngineProtocolError, match="longer than"):
                await lines.line()


@pytest.mark.parametrize("value", [b"[]", b"{}", b'""', b'{"":[{}]}'])
def test_a_line_of_many_small_values_costs_little_memory(value: bytes) -> None:
    head = b'{"jsonrpc":"2.0","result":['
    count = (LINE_LIMIT - len(head)) // (len(value) + 1) - 2
    text = head + (value + b",") * count + value + b"]}"
    before = peak()
    with pytest.raises(EngineProtocolError):
        decode(text)
    assert peak() - before < 64
    many = b'{"jsonrpc":"2.0","result":"' + b'[,\\"' * (LINE_LIMIT // 8) + b'"}'
    assert len(decode(many).result) == LINE_LIMIT // 8 * 3


def files(count: int) -> bytes:
    return b'["shop",[%s],"%s"]' % (b",".join([b'"x"'] * count), b"u" * count)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b",".join([b'["",[],""]'] * 200_000) + b"]",
        b"[" + b",".join([files(INDEX_LIMIT // 2)] * 3) + b"]",
        b'[["shop",["' + b"x" * (65 << 20) + b'"],"u"]]',
    ],
    ids=["repositories", "files", "name"],
)
def test_an_index_of_files_that_unpacks_to_much_is_refused(text: bytes) -> None:
    packed = zlib.compress(text)
    assert len(packed) < 1 << 20
    with pytest.raises(BadIndexError):
        unpack(packed)


def test_the_largest_index_of_files_is_read() -> None:
    assert len(unpack(zlib.compress(b"[%s]" % files(INDEX_LIMIT)))[0][1]) == INDEX_LIMIT


async def test_unread_entries_and_frames_are_bounded_in_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what is read of one link in a second."""
    monkeypatch.setattr(link_module, "LINES_BURST", 30)
    monkeypatch.setattr(link_module, "LINES_PER_SECOND", 200)
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        engine = Forged(str(uuid4()), 0)
        engine.sends = [journal(n, "x", text="y" * (2 << 20)) for n in range(1, 21)]
        engine.sends += [journal(n, "x") for n in range(21, 121)]
        await engine.serve(reader, writer)

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        link = await EngineLink.open(*streams, "x", after=0)
        await eventually(lambda: link._entries._size > 4 << 20)
        for _ in range(50):
            await asyncio.sleep(0)
        assert link._entries._size <= link_module.JOURNAL_BYTES
        start = asyncio.get_running_loop().time()
        taken: list[int] = []
        while len(taken) < 120:
            batch = await link.journal_batch(512)
            taken += [entry.index for entry in batch]
        assert taken == list(range(1, 121))
        assert asyncio.get_running_loop().time() - start > 90 / 200 / 2
        await link.close()


@pytest.mark.parametrize("second", [1, 2])
async def test_entries_that_are_not_in_order_end_the_link(second: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine = Forged(str(uuid4()), 0)
        engine.sends = [journal(2, "x"), journal(second, "x"), journal(3, "x")]
        await engine.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        link = await EngineLink.open(*streams, "x", after=0)
        await link.wait_closed()
        assert [entry.index for entry in await link.journal_batch(512)] == [2]
        with pytest.raises(EngineProtocolError, match="unknown shape"):
            await link.journal_batch(512)
        await link.close()


@pytest.mark.parametrize("unit", ["lines", "bytes"])
async def test_a_link_is_not_read_faster_than_its_rates(
    monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    """Of lines and of bytes: an engine that exceeds one of both waits."""
    per_second = {"lines": link_module.LINES_PER_SECOND, "bytes": link_module.BYTES_PER_SECOND}
    counted: list[float] = []

    def delay(rate: Any, amount: float) -> float:
        if rate._per_second != per_second[unit]:
            return 0.0
        counted.append(amount)
        return 3600.0 if len(counted) == 4 else 0.0

    monkeypatch.setattr(link_module._Rate, "delay", delay)
    entries = [journal(n, "x", text="y" * n) for n in range(1, 11)]

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine = Forged(str(uuid4()), 0)
        engine.sends = entries
        await engine.serve(reader, writer)

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        link = await EngineLink.open(*streams, "x", after=0)
        await eventually(lambda: len(counted) == 4)
        for _ in range(50):
            await asyncio.sleep(0)
        taken = await link.journal_batch(512)
        await link.close()
    assert [entry.index for entry in taken] == [1, 2, 3]  # the first line is the answer of `open`
    assert counted[1:] == ([1, 1, 1] if unit == "lines" else [len(one) - 1 for one in entries[:3]])


async def test_values_that_are_read_of_a_link_are_bounded() -> None:
    """A line of half a megabyte may have 400,000, which take the service's loop half a second."""
    server = await asyncio.start_server(Forged(str(uuid4()), 0).serve, "127.0.0.1", 0)
    async with server:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        link = await EngineLink.open(*streams, "x", after=0)
        many, text = journal(1, "x", t=[[]] * 200_000), journal(1, "x", t="a, [b" * 200_000)
        assert [link._delay(text) for _ in range(20)] == [0] * 20
        delays = [link._delay(many) for _ in range(10)]
        await link.close()
    values = link_module.VALUES_BURST // 400_000
    assert delays[:values] == [0] * values
    assert (
        delays[-1] > (10 * 400_000 - link_module.VALUES_BURST) / link_module.VALUES_PER_SECOND / 2
    )


async def test_long_events_are_read_a_few_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history of gigabytes is passed on without being held: an engine says how long it is."""
    monkeypatch.setattr(event_rows, "READ_CHARACTERS", 30_000)
    monkeypatch.setattr(chat_routes, "SHORT_BYTES", 30_000)
    made = await world.create()
    sent = await world.send(made, "begin")
    await world.done(made, sent["message_id"])
    chat_id, log = sent["chat_id"], world.context.event_log
    stamp = "2026-01-02T00:00:00Z"
    for number in range(20):
        event = {"timestamp": stamp, "type": "note", "payload": {"n": number, "text": "x" * 20_000}}
        await log.append(made, [NewEvent("chat.turn.delta", {"chatId": chat_id, "event": event})])
    largest, usual = 0, event_rows.first_rows

    def counted(rows: Any) -> list[Any]:
        nonlocal largest
        read = usual(rows)
        largest = max(largest, sum(len(row.payload_json) for row in read))
        return read

    for module in (event_rows, history):
        monkeypatch.setattr(module, "first_rows", counted)
    for query in (f"?chat_id={chat_id}", "", "?limit=15"):
        answer = await world.client.get(f"/v1/replica/{made}/history{query}")
        notes = [one["payload"]["n"] for one in answer.json()["events"] if one["type"] == "note"]
        assert notes == list(range(20))[-15 if "limit" in query else 0 :]
    stored = await log.last_index(made)
    read: list[int] = []
    while read[-1:] != [stored]:
        read += [one.index for one in await log.read_after(made, read[-1] if read else 0, 64)]
    assert read == list(range(1, stored + 1))
    assert 30_000 < largest < 60_000


async def test_a_long_history_is_removed_in_parts_and_leaves_no_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fills the disk can be removed without as much more, and the disk has room again."""
    made = await world.create()
    before = world.home.database.stat().st_size
    for number in range(60):
        payload = {"n": number, "text": "x" * 1_000_000}
        await world.context.event_log.append(made, [NewEvent("strange", payload)])
    log = world.home.database.with_name(world.home.database.name + "-wal")
    assert world.home.database.stat().st_size > 40 << 20
    monkeypatch.setattr(event_rows, "REMOVED_CHARACTERS", 4 << 20)
    assert (await world.client.delete(f"/v1/replica/{made}")).status_code == 200
    assert log.stat().st_size < 24 << 20
    with closing(sqlite3.connect(world.home.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert world.home.database.stat().st_size < before + (4 << 20)


async def test_the_files_go_also_where_the_database_keeps_its_size(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To make it smaller takes some room, which a full disk may not have."""
    made = await world.create()
    for _ in range(3):
        await world.context.event_log.append(made, [NewEvent("strange", {"text": "x" * 2_000_000})])
    monkeypatch.setattr(event_rows, "REMOVED_CHARACTERS", 1 << 20)

    def full(_: object) -> bool:
        raise DatabaseFullError("The disk is full.")

    monkeypatch.setattr(transitions, "give_back", full)
    destroyed = asyncio.Event()
    destroy = world.driver.destroy

    async def noted(workspace_id: str) -> None:
        await destroy(workspace_id)
        destroyed.set()

    monkeypatch.setattr(world.driver, "destroy", noted)
    assert (await world.client.delete(f"/v1/replica/{made}")).status_code == 200
    assert destroyed.is_set()


@pytest.mark.parametrize(
    "payload",
    [
        {"sessionUpdate": "agent_thought_chunk", "messageId": "a." + "9" * 5_000},
        {"sessionUpdate": "agent_thought_chunk", "messageId": "t.1"},
        {"sessionUpdate": "agent_message_chunk", "messageId": "t"},
        {"sessionUpdate": "tool_call", "toolCallId": "t", "rawOutput": {"type": "x", "text": 1}},
    ],
)
def test_events_that_contradict_each_other_are_left_out_of_a_turn(payload: dict[str, Any]) -> None:
    fold = TurnFold()
    native = {"sessionUpdate": "tool_call", "toolCallId": "t", "rawOutput": {"type": "x"}}
    fold.add({"type": "acp-session_update", "payload": native})
    for _ in range(2):
        fold.add({"type": "acp-session_update", "payload": payload})
    fold.add({"type": "turn-result", "timestamp": "0001-01-01T00:00:00+14:00", "payload": {}})
    json.dumps(fold.turn())


MANY_PIECES = """
import resource
from quarterdeck.service.chats.history import TurnFold
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
fold = TurnFold()
for kind, id in (("agent_message_chunk", "m"), ("agent_thought_chunk", "t.0")):
    update = {"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": "a piece "}}
    for _ in range(150_000):
        fold.add({"type": "acp-session_update", "payload": update})
message, thought = fold.turn()["items"]
print(len(message["text"]), len(thought["summary"][0]))
"""


def test_a_turn_of_many_pieces_does_not_hold_up_the_service() -> None:
    """Of seconds of a processor; when each piece copied the text so far it was minutes."""
    told = subprocess.run([sys.executable, "-c", MANY_PIECES], capture_output=True, check=False)
    assert told.stdout.split() == [b"1200000", b"1200000"], told.stderr[-300:]
