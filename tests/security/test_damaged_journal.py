"""A journal that a disk or a person has damaged: what can be read is read, nothing comes twice."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.engine.chat_state import ChatFold
from quarterdeck.engine.journal import FILE_NAME, Journal, JournalFile
from quarterdeck.engine.setup.hooks import SetupMemory
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.wire.engine import LARGEST_INDEX
from tests.fleet.conftest import SETTINGS, World
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

MOMENT = "2026-01-02T00:00:00.000Z"


@pytest.fixture
def settings() -> FleetSettings:
    return replace(SETTINGS, restarts=20)


def small_journal() -> list[bytes]:
    """The lines of a journal with two chats and six turns."""
    lines: list[bytes] = []
    index = 0

    def note(kind: str, **data: Any) -> None:
        lines.append(b"#" + json.dumps({"kind": kind, "data": data}).encode() + b"\n")

    def entry(type: str, **payload: Any) -> None:
        nonlocal index
        index += 1
        text = json.dumps({"ts": MOMENT, "type": type, "payload": payload}, separators=(",", ":"))
        lines.append(b'{"index":%d,%s\n' % (index, text[1:].encode()))

    note("boot", id="first")
    note("warmed")
    entry("engine.ready", version="1")
    for chat in (str(UUID(int=1)), str(UUID(int=2))):
        record = {"id": chat, "provider": "builtin", "createdAt": MOMENT, "updatedAt": MOMENT}
        note("chat", chat=record)
        for n in range(3):
            message = str(UUID(int=100 * int(chat[-1]) + n))
            note(
                "message", chatId=chat, messageId=message, text=f'say {{"index":{n}, "é": "\\"" }}'
            )
            entry("chat.turn.accepted", chatId=chat, messageId=message)
            entry("chat.turn.started", chatId=chat, messageId=message)
            entry("chat.updated", chat={**record, "title": f"title {n} ü", "processing": True})
            event = {"timestamp": MOMENT, "type": "user-message", "payload": {"text": '#{"kind":'}}
            entry("chat.turn.delta", chatId=chat, messageId=message, event=event)
            entry("chat.turn.completed", chatId=chat, messageId=message, isComplete=True)
            note("session", chatId=chat, sessionId=f"s{n}", model=None)
    return lines


def opened(path: Path) -> tuple[JournalFile, list[tuple[int, bytes]]]:
    fold, memory = ChatFold(), SetupMemory()

    def visit(type: str, line: bytes) -> None:
        fold.visit(type, line)
        memory.visit(type, line)

    file = JournalFile(path, visit)
    return file, file.read(0, 1 << 30)


@pytest.mark.parametrize(
    ("damage", "kept", "lost"),
    [
        (lambda lines: lines[:-1], 31, 0),
        (lambda lines: [*lines[:-2], lines[-2][:-7], lines[-1]], 30, 1),  # two lines became one
        (lambda lines: [*lines[:-1], lines[-1][:-7]], 31, 0),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], 31, 0),
        (lambda lines: [*lines[:10], b"\xff\xfe\n", *lines[10:]], 31, 1),
        (lambda lines: [*lines[:4], lines[4].replace(b"say", b"\xff"), *lines[5:]], 31, 1),
        # A wrong number hides only its own line.
        (
            lambda lines: [lines[0], lines[1], lines[2].replace(b":1,", b":900,", 1), *lines[3:]],
            30,
            1,
        ),
        (
            lambda lines: [
                *lines[:-2],
                lines[-2].replace(b'{"index":31', b'{"index":3'),
                lines[-1],
            ],
            30,
            1,
        ),
        # The start of an entry and all of the next but its brace: neither is taken for the other.
        (
            lambda lines: [
                *lines[:-3],
                lines[-3][: lines[-3].index(b'"type"')] + lines[-2][1:],
                lines[-1],
            ],
            29,
            1,
        ),
        (lambda lines: [*lines, *lines], 31, 31),
        (lambda lines: [b"\0" * 4096 + b"\n", *lines], 31, 1),
    ],
)
def test_what_is_kept(
    tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]], kept: int, lost: int
) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"".join(damage(small_journal())))
    file, entries = opened(path)
    file.close()
    assert (len(entries), file.lost) == (kept, lost)
    assert path.with_suffix(".damaged").exists() == bool(lost)


def test_the_copy_of_a_damaged_journal_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"\xff\n" + b"".join(small_journal()))
    copy, elsewhere = path.with_suffix(".damaged"), tmp_path / "elsewhere"
    elsewhere.write_text("as it was")
    copy.symlink_to(elsewhere)
    before = os.umask(0)
    try:
        opened(path)[0].close()
    finally:
        os.umask(before)
    assert copy.stat().st_mode & 0o777 == 0o600 and not copy.is_symlink()
    assert copy.read_bytes().startswith(b"\xff\n")
    assert elsewhere.read_text() == "as it was"


def test_the_largest_number_is_the_last_that_counts(tmp_path: Path) -> None:
    """A larger one at the end would leave none for the entries that follow."""
    path = tmp_path / FILE_NAME
    line = b'{"index":%d,"ts":"x","type":"y","payload":{}}\n'
    path.write_bytes(line % 1 + line % LARGEST_INDEX + line % (LARGEST_INDEX + 1))
    file, entries = opened(path)
    file.close()
    assert (len(entries), file.lost, file.last_index) == (2, 1, LARGEST_INDEX)


def test_a_pipe_in_the_place_of_a_journal_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    os.mkfifo(path)
    with pytest.raises(OSError, match="Not a file"):
        opened(path)


async def test_numbers_stay_below_the_largest(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    line = b'{"index":%d,"ts":"x","type":"y","payload":{}}\n'
    path.write_bytes(line % 1 + line % (LARGEST_INDEX + 1) + line % 2)
    journal = await Journal.open(tmp_path, lambda type, line: None, 7)
    assert (journal.last_index, journal.lost_lines, journal.lost_end) == (7, 1, True)
    await journal.close()


def half(lines: list[bytes]) -> bytes:
    whole = b"".join(lines)
    return whole[: len(whole) // 2]


def in_a_turn(lines: list[bytes]) -> bytes:
    """Without everything after the start of the second turn."""
    starts = [n for n, line in enumerate(lines) if b'"chat.turn.started"' in line]
    return b"".join(lines[: starts[1] + 1])


def queued(lines: list[bytes]) -> bytes:
    """Without everything after the last message was accepted."""
    accepted = [n for n, line in enumerate(lines) if b'"chat.turn.accepted"' in line]
    return b"".join(lines[: accepted[-1] + 1])


def merged(lines: list[bytes]) -> bytes:
    """As if the engine had gone on after the end was cut off a line."""
    return b"".join(lines[:-4]) + lines[-4][:-7] + b"".join(lines[-3:])


CUTS: list[Callable[[list[bytes]], bytes]] = [
    lambda lines: b"".join(lines)[:-7],
    half,
    in_a_turn,
    queued,
    merged,
    lambda lines: b"",
    lambda lines: b"\xff" * 5_000,
]


async def test_a_journal_that_is_cut_doubles_nothing(scripted: World) -> None:
    """One replica for all: each cut follows two more turns."""
    world = scripted
    made = await world.create(message="first")
    ids: list[str] = []
    for number, cut in enumerate(CUTS):
        for text in ("one", "two"):
            sent = await world.send(made, f"{text} {number}")
            ids.append(sent["message_id"])
        await world.done(made, ids[-1])

        async def rested() -> bool:
            return not (await world.get(made))["chats"][0]["processing"]

        await eventually(rested)
        path = world.driver.place(made) / FILE_NAME
        world.driver.signal(made, signal.SIGSTOP)
        data = path.read_bytes()
        path.unlink()  # what the engine still writes goes into the removed file
        path.write_bytes(cut(data.splitlines(keepends=True)))
        starts = len(await world.events(made, "engine.ready"))
        world.driver.signal(made, signal.SIGKILL)

        async def again(starts: int = starts) -> bool:
            return len(await world.events(made, "engine.ready")) > starts

        await eventually(again, f"the engine after cut {number}")
        errors = [one["message"] for one in await world.events(made, "error")]
        assert "journal was damaged" in errors[-1] and len(errors) == number + 1
    last = (await world.send(made, "last"))["message_id"]
    await world.done(made, last)
    for type in ("chat.turn.accepted", "chat.turn.started", "chat.turn.completed"):
        told = [one["messageId"] for one in await world.events(made, type)]
        assert len(told) == len(set(told)) == len(ids) + 2, type
    deltas = [one["event"] for one in await world.events(made, "chat.turn.delta")]
    for type in ("user-message", "turn-result"):
        of_type = [one["payload"] for one in deltas if one["type"] == type]
        assert len(of_type) == len(ids) + 2, type
        assert all(one.get("stopReason", "end_turn") == "end_turn" for one in of_type)
