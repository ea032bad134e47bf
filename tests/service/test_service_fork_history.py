"""A fork takes along as much of a history as fits, and never holds all of it."""

import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest
from sqlalchemy import Connection

from quarterdeck.sandboxes.port import Layout, SandboxDriver
from quarterdeck.service import event_rows
from quarterdeck.service.chats.history import find_thread, newest_within
from quarterdeck.service.chats.rows import change_chat
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet import fork
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.wire.history import AgentEventType

New = Callable[..., Awaitable[str]]


def said(text: Any) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


async def add(context: ServiceContext, workspace: str, chat: str, *updates: dict[str, Any]) -> None:
    new = [
        NewEvent("chat.turn.delta", {"chatId": chat, "event": event})
        for update in updates
        for event in [
            {
                "timestamp": "2026-01-01T00:00:00.000Z",
                "type": AgentEventType.SESSION_UPDATE,
                "payload": update,
            }
        ]
    ]
    await context.event_log.append(workspace, new)


@pytest.fixture
async def workspace(context: ServiceContext, new_workspace: New) -> str:
    return await new_workspace(context.database)


@pytest.fixture
async def chat(context: ServiceContext, workspace: str, new_chat: New) -> str:
    return await new_chat(context.database, workspace)


async def transcript(context: ServiceContext, workspace: str) -> str:
    history = await context.database.read(lambda c: find_thread(c, workspace, None))
    return await fork.transcript(context.database, history)


async def test_a_transcript_reads_the_same_in_pieces(
    context: ServiceContext, workspace: str, chat: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"sessionUpdate": "tool_call", "title": "make"}
    odd = [{"sessionUpdate": "agent_message_chunk", "content": [1]}, said("\ud800!")]
    await add(context, workspace, chat, said("one "), said("two\n"), call, *odd, said("three"))
    whole = await transcript(context, workspace)
    assert whole == "## Agent\n\none two\n\nmake\n\n## Agent\n\n\ufffd!three\n"
    monkeypatch.setattr(event_rows, "READ_CHARACTERS", 1)
    in_pieces = await transcript(context, workspace)
    assert in_pieces.split() == whole.split()


@pytest.mark.one_database
async def test_a_long_history_is_never_held_as_a_whole(
    context: ServiceContext, workspace: str, chat: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_rows, "READ_CHARACTERS", 1 << 18)
    monkeypatch.setattr(fork, "TRANSCRIPT_CHARACTERS", 1 << 18)
    await add(context, workspace, chat, *[said("x" * (1 << 18))] * 64)
    tracemalloc.start()
    try:
        text = await transcript(context, workspace)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert text.startswith("(The beginning of this conversation is left out.)\n\n")
    assert 1 << 18 <= len(text) < 1 << 20


async def test_only_the_newest_events_that_fit_are_copied(
    context: ServiceContext,
    workspace: str,
    chat: str,
    new_workspace: New,
    new_chat: New,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await add(context, workspace, chat, *(said("x" * 10_000) for _ in range(8)), said("last"))

    def first(characters: int, count: int = 100) -> Callable[[Connection], int]:
        def read(connection: Connection) -> int:
            thread = find_thread(connection, workspace, chat)
            assert thread is not None
            return newest_within(connection, thread, count, characters)

        return read

    assert await context.database.read(first(1 << 20)) == 0
    assert await context.database.read(first(1 << 20, 3)) == 6
    assert await context.database.read(first(25_000)) == 6
    assert await context.database.read(first(1)) == 9
    monkeypatch.setattr(event_rows, "READ_CHARACTERS", 1)
    monkeypatch.setattr(fork, "EVENT_CHARACTERS", 25_000)
    await context.database.write(
        lambda c: change_chat(c, workspace, chat, last_message_text="last")
    )
    made = await new_workspace(context.database, forked_from=workspace)
    own = await new_chat(context.database, made)
    row = await context.database.read(lambda c: find_workspace(c, made))
    assert row is not None
    sandboxes = Files()
    driver = cast(SandboxDriver, sandboxes)
    await fork.take_files(driver, context.database, context.event_log, row, [])
    monkeypatch.undo()
    log = [json.loads(e.payload_json) for e in await context.event_log.read_after(made, 0, 100)]
    deltas = [one for one in log if "event" in one]
    assert {one["chatId"] for one in deltas} == {own}
    texts = [one["event"]["payload"].get("content", {}).get("text") for one in deltas]
    assert texts == ["x" * 10_000, "x" * 10_000, "last", None]
    assert deltas[-1]["event"]["payload"]["operation"] == "fork"
    (transcript_of,) = sandboxes.written.values()
    assert transcript_of.count(b"x") == 80_000


class Files:
    """The files of two workspaces, with a session of an agent that can be copied."""

    def __init__(self) -> None:
        self.written: dict[str, bytes] = {}

    async def copy_files(self, source_id: str, workspace_id: str) -> bool:
        return True

    async def provision(self, *_: Any) -> list[Any]:
        return []

    async def layout(self, workspace_id: str) -> Layout:
        return Layout("/workspace", "/home", "/state", "/run")

    async def stream_command(
        self, workspace_id: str, command: tuple[str, ...], *, directory: str, data: bytes = b""
    ) -> AsyncIterator[bytes]:
        if "take" in command:
            yield b"session"
        elif command[0] == "/bin/sh":
            self.written[command[-1]] = data
