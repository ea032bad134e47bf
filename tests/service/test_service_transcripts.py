"""The native transcript: every turn once over all pages, built from the stored events."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.wire.history import History

New = Callable[..., Awaitable[str]]
AT = "2026-01-01T00:00:00.000Z"


def event(type: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": type, "payload": payload}


def update(kind: str, /, **payload: Any) -> dict[str, Any]:
    return event("acp-session_update", sessionUpdate=kind, **payload)


def chunk(kind: str, text: str, message_id: str | None, **more: Any) -> dict[str, Any]:
    named = {"messageId": message_id} if message_id else {}
    return update(kind, content={"type": "text", "text": text}, **named, **more)


def turn(n: int, *inside: dict[str, Any], end: dict[str, Any] | None = None) -> list[Any]:
    last = end or {"stopReason": "end_turn"}
    return [
        event("user-message", messageId=f"m{n}", text=f"do {n}"),
        *inside,
        event("turn-result", messageId=f"m{n}", **last),
    ]


@pytest.fixture
async def workspace(context: ServiceContext, new_workspace: New) -> str:
    return await new_workspace(context.database, coding_agent="codex")


@pytest.fixture
async def chat(context: ServiceContext, workspace: str, new_chat: New) -> str:
    return await new_chat(context.database, workspace, provider="codex")


async def add(context: ServiceContext, workspace: str, chat: str, events: list[Any]) -> None:
    new = [
        NewEvent("chat.turn.delta", {"chatId": chat, "messageId": "m", "event": e}) for e in events
    ]
    await context.event_log.append(workspace, new)


async def page(client: httpx.AsyncClient, workspace: str, **query: Any) -> dict[str, Any]:
    response = await client.get(f"/v1/replica/{workspace}/history", params=query)
    assert response.status_code == 200, response.text
    History.model_validate(response.json())
    return response.json()


def ids(answer: dict[str, Any]) -> list[str]:
    return [one["id"] for one in answer["agentAspTranscript"]["turns"]]


async def test_a_turn_has_codexs_own_items(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str
) -> None:
    native = {
        "type": "commandExecution",
        "id": "c",
        "command": "ls",
        "cwd": "/w",
        "status": "completed",
        "aggregatedOutput": "a\n",
        "exitCode": 0,
        "durationMs": 3,
    }
    events = turn(
        1,
        chunk("agent_thought_chunk", "H", "r.0"),
        chunk("agent_thought_chunk", "m.", "r.0"),
        chunk("agent_thought_chunk", "So.", "r.1"),
        update("tool_call", toolCallId="c", kind="execute", title="ls", rawInput={"command": "ls"}),
        update("tool_call_update", toolCallId="c", status="completed", rawOutput=native),
        chunk("agent_message_chunk", "Do", "a"),
        chunk("agent_message_chunk", "ne.", "a"),
        chunk("agent_message_chunk", "- one", "p", _meta={"item": "plan"}),
    )
    await add(context, workspace, chat, events)
    for query in ({"chat_id": chat}, {}):
        answer = await page(client, workspace, **query)
        assert answer["turnsStartIndex"] == 0
        [found] = answer["agentAspTranscript"]["turns"]
        assert found == {
            "id": "m1",
            "status": "completed",
            "startedAt": "2026-01-01T00:00:00.000Z",
            "completedAt": "2026-01-01T00:00:00.000Z",
            "items": [
                {"type": "userMessage", "id": "m1", "content": [{"type": "text", "text": "do 1"}]},
                {"type": "reasoning", "id": "r", "summary": ["Hm.", "So."], "content": []},
                native,
                {"type": "agentMessage", "id": "a", "text": "Done."},
                {"type": "plan", "id": "p", "text": "- one"},
            ],
        }


async def test_turns_that_failed_stopped_and_go_on(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str
) -> None:
    running = {"command": "sleep 9", "cwd": "/w"}
    shown = [{"type": "content", "content": {"type": "text", "text": "so far"}}]
    events = [
        *turn(1, end={"stopReason": "failed", "error": "No more."}),
        *turn(2, end={"stopReason": "cancelled"}),
        event("user-message", messageId="m3", text="do 3"),
        update("tool_call", toolCallId="c", kind="execute", rawInput=running, status="in_progress"),
        update("tool_call_update", toolCallId="c", content=shown),
    ]
    await add(context, workspace, chat, events)
    turns = (await page(client, workspace, chat_id=chat))["agentAspTranscript"]["turns"]
    assert [one["status"] for one in turns] == ["failed", "interrupted", "inProgress"]
    assert turns[0]["error"] == {"message": "No more."}
    assert "completedAt" not in turns[2]
    assert turns[2]["items"][1] == {
        "type": "commandExecution",
        "id": "c",
        "status": "inProgress",
        **running,
        "exitCode": None,
        "durationMs": None,
        "aggregatedOutput": "so far",
    }


@pytest.mark.one_database
@pytest.mark.parametrize("by", ["cursor", "indices"])
@pytest.mark.parametrize("limit", [1, 3, 4, 7, 100])
async def test_pages_have_each_turn_once_and_whole(
    client: httpx.AsyncClient,
    context: ServiceContext,
    workspace: str,
    chat: str,
    by: str,
    limit: int,
) -> None:
    for n in range(9):
        said = [chunk("agent_message_chunk", f"{k},", f"a{n}") for k in range(n)]
        await add(context, workspace, chat, turn(n, *said))
    got: list[dict[str, Any]] = []
    answer = await page(client, workspace, chat_id=chat, limit=limit)
    while True:
        turns = answer["agentAspTranscript"]["turns"]
        assert answer["turnsStartIndex"] == 9 - len(got) - len(turns)
        got = turns + got
        if answer["beforeCursor"] is None:
            break
        query = (
            {"beforeCursor": answer["beforeCursor"]}
            if by == "cursor"
            else {
                "beforeEvent": answer["eventsStartIndex"],
                "beforeTurn": answer["turnsStartIndex"],
            }
        )
        answer = await page(client, workspace, chat_id=chat, limit=limit, **query)
    assert [one["id"] for one in got] == [f"m{n}" for n in range(9)]
    texts = [one["items"][1]["text"] if one["items"][1:] else "" for one in got]
    assert texts == ["".join(f"{k}," for k in range(n)) for n in range(9)]


async def test_turns_alone_are_paged_by_their_index(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str
) -> None:
    for n in range(5):
        await add(context, workspace, chat, turn(n))
    newest = await page(client, workspace, chat_id=chat, limit=2)
    assert ids(newest) == ["m4"] and newest["turnsStartIndex"] == 4
    earlier = await page(client, workspace, chat_id=chat, limit=2, beforeTurn=4)
    assert ids(earlier) == ["m2", "m3"] and earlier["turnsStartIndex"] == 2
    assert ids(await page(client, workspace, chat_id=chat, beforeTurn=2, limit=9)) == ["m0", "m1"]
    assert ids(await page(client, workspace, chat_id=chat, beforeTurn=0, limit=9)) == []


async def test_words_about_messages_are_no_turn(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str
) -> None:
    odd = update("tool_call", toolCallId="c", rawInput={"type": "user-message"}, kind="other")
    await add(context, workspace, chat, turn(1, odd))
    answer = await page(client, workspace, chat_id=chat)
    assert ids(answer) == ["m1"]
    await add(context, workspace, chat, turn(2))
    assert ids(await page(client, workspace, chat_id=chat)) == ["m1", "m2"]


async def test_chats_of_other_agents_have_none(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str, new_chat: New
) -> None:
    other = await new_chat(context.database, workspace)
    await add(context, workspace, other, turn(1))
    assert "agentAspTranscript" not in await page(client, workspace, chat_id=other)
    assert "agentAspTranscript" not in await page(client, workspace)
    assert ids(await page(client, workspace, chat_id=chat)) == []
