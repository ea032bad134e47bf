"""History: pages from the end, with stable indices, until nothing is left."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import insert, update

from quarterdeck.service.chats import history
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import messages, workspaces
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.formats import now_text
from quarterdeck.wire.history import History

New = Callable[..., Awaitable[str]]


def said(n: int, message_id: str) -> dict[str, Any]:
    payload = {"messageId": message_id, "text": str(n), "planMode": False, "goalMode": False}
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": "user-message", "payload": payload}


def note(n: int) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": "note", "payload": {"n": n}}


@pytest.fixture
async def workspace(context: ServiceContext, new_workspace: New) -> str:
    return await new_workspace(context.database, coding_agent="codex")


@pytest.fixture
async def chat(context: ServiceContext, workspace: str, new_chat: New) -> str:
    return await new_chat(context.database, workspace)


async def add(context: ServiceContext, workspace: str, chat: str, *events: dict[str, Any]) -> None:
    new = [
        NewEvent("chat.turn.delta", {"chatId": chat, "messageId": "m", "event": event})
        for event in events
    ]
    await context.event_log.append(workspace, new)


async def page(client: httpx.AsyncClient, workspace: str, **query: Any) -> dict[str, Any]:
    response = await client.get(f"/v1/replica/{workspace}/history", params=query)
    assert response.status_code == 200, response.text
    History.model_validate(response.json())
    return response.json()


def numbers(answer: dict[str, Any]) -> list[int]:
    return [event["payload"]["n"] for event in answer["events"]]


async def test_the_whole_history(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str
) -> None:
    await context.event_log.append(workspace, [NewEvent("error", {"code": "X", "message": "x"})])
    await add(context, workspace, chat, note(0), note(1))
    answer = await page(client, workspace)
    assert answer == {
        "thread_id": workspace,
        "events": [note(0), note(1)],
        "total": 2,
        "has_more": False,
        "beforeCursor": None,
        "senders": [],
        "canceledMessageIds": [],
        "coding_agent": "codex",
        "waking": False,
        "logIndex": 3,
    }
    filtered = await page(client, workspace, chat_id=chat)
    assert filtered["thread_id"] == chat and filtered["coding_agent"] == "builtin"


async def test_an_empty_history(client: httpx.AsyncClient, workspace: str) -> None:
    answer = await page(client, workspace, limit=10)
    assert answer["events"] == [] and answer["total"] == 0 and not answer["has_more"]
    assert "eventsStartIndex" not in answer and answer["beforeCursor"] is None
    assert answer["logIndex"] == 0


@pytest.mark.parametrize("by", ["cursor", "index"])
async def test_pages_from_the_end_are_the_whole(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str, by: str
) -> None:
    await add(context, workspace, chat, *(note(n) for n in range(25)))
    got: list[int] = []
    answer = await page(client, workspace, chat_id=chat, limit=10)
    while True:
        got = numbers(answer) + got
        assert answer["total"] >= 25
        assert answer["eventsStartIndex"] == numbers(answer)[0]
        assert answer["has_more"] == (answer["beforeCursor"] is not None)
        if not answer["has_more"]:
            break
        await add(context, workspace, chat, note(100))  # what is appended moves no index
        query = (
            {"beforeCursor": answer["beforeCursor"]}
            if by == "cursor"
            else {"beforeEvent": answer["eventsStartIndex"]}
        )
        answer = await page(client, workspace, chat_id=chat, limit=10, **query)
    assert got == list(range(25))


async def test_chats_are_told_apart(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str, new_chat: New
) -> None:
    other = await new_chat(context.database, workspace)
    for n in range(4):
        await add(context, workspace, chat if n % 2 else other, note(n))
    assert numbers(await page(client, workspace)) == [0, 1, 2, 3]
    assert numbers(await page(client, workspace, chat_id=chat)) == [1, 3]
    last = await page(client, workspace, chat_id=other, limit=1)
    assert numbers(last) == [2] and last["eventsStartIndex"] == 1
    assert numbers(await page(client, workspace, beforeEvent=3, limit=2)) == [1, 2]
    assert numbers(await page(client, workspace, beforeEvent=0)) == []
    assert numbers(await page(client, workspace, beforeEvent=10**12)) == [0, 1, 2, 3]


async def test_a_long_history_is_streamed_whole(
    client: httpx.AsyncClient,
    context: ServiceContext,
    workspace: str,
    chat: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "EVENTS_AT_ONCE", 10)
    await add(context, workspace, chat, *(note(n) for n in range(95)))
    answer = await page(client, workspace)
    assert numbers(answer) == list(range(95)) and answer["total"] == 95


async def test_senders_and_canceled_messages(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str
) -> None:
    first, second, canceled = str(uuid4()), str(uuid4()), str(uuid4())
    rows = [
        {
            "id": message_id,
            "workspace_id": workspace,
            "chat_id": chat,
            "position": position,
            "state": "canceled" if message_id == canceled else "done",
            "text": "x",
            "delivery_json": "{}",
            "sender_email": f"{position}@example.com",
            "created_at": now_text(),
        }
        for position, message_id in enumerate((first, second, canceled))
    ]
    await context.database.write(lambda c: c.execute(insert(messages), rows))
    await add(context, workspace, chat, said(0, first), note(1), said(2, second), note(3))
    answer = await page(client, workspace, chat_id=chat)
    assert [s["messageId"] for s in answer["senders"]] == [first, second]
    assert answer["senders"][0]["senderEmail"] == "0@example.com"
    assert answer["senders"][0]["senderUserId"] is None and answer["senders"][0]["recordedAt"]
    assert answer["canceledMessageIds"] == [canceled]
    short = await page(client, workspace, limit=2)
    assert [s["messageId"] for s in short["senders"]] == [second]


async def test_a_woken_workspace_is_flagged(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str
) -> None:
    values = {"status": "preparing", "wake_wanted": True}
    statement = update(workspaces).values(**values)
    await context.database.write(lambda c: c.execute(statement))
    assert (await page(client, workspace))["waking"] is True


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"beforeEvent": "-1"}, "beforeEvent"),
        ({"beforeTurn": "-1"}, "beforeTurn"),
        ({"beforeCursor": "nonsense"}, "beforeCursor"),
        ({"beforeCursor": "\u00e9"}, "beforeCursor"),
        ({"chat_id": "no-uuid"}, "chat_id"),
    ],
)
async def test_a_bad_query_is_refused(
    client: httpx.AsyncClient, workspace: str, query: dict[str, str], field: str
) -> None:
    response = await client.get(f"/v1/workspaces/{workspace}/history", params=query)
    assert response.status_code == 400
    assert response.json()["details"].startswith(field)


async def test_a_cursor_belongs_to_its_thread(
    client: httpx.AsyncClient, context: ServiceContext, workspace: str, chat: str
) -> None:
    await add(context, workspace, chat, note(0), note(1))
    cursor = (await page(client, workspace, limit=1))["beforeCursor"]
    query = {"beforeCursor": cursor, "chat_id": chat}
    response = await client.get(f"/v1/replica/{workspace}/history", params=query)
    assert response.status_code == 400
    unknown = {"chat_id": str(uuid4())}
    response = await client.get(f"/v1/replica/{workspace}/history", params=unknown)
    assert response.status_code == 404
