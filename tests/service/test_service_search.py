"""Search in all chats: whole messages of finished turns, on both databases."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text, update

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import chats, workspaces
from quarterdeck.service.event_rows import NewEvent, StoredEvent
from quarterdeck.service.search import indexer
from quarterdeck.service.search.indexer import SearchIndexer
from quarterdeck.service.search.query import SearchQuery
from quarterdeck.wire.search import SearchHits
from tests.support.waiting import eventually

New = Callable[..., Awaitable[str]]


def user(words: str) -> dict[str, Any]:
    return _event("user-message", {"messageId": str(uuid4()), "text": words})


def agent(words: str, message: str | None = "a") -> dict[str, Any]:
    content = {"type": "text", "text": words}
    chunk = {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": message}
    return _event("acp-session_update", chunk)


def tool(title: str, call: str = "t") -> dict[str, Any]:
    update = {"sessionUpdate": "tool_call", "toolCallId": call, "title": title}
    return _event("acp-session_update", update)


END = {"messageId": "m", "stopReason": "end_turn"}


def _event(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}


class Place:
    """A chat, whose turns are indexed."""

    def __init__(self, context: ServiceContext, workspace: str, chat: str) -> None:
        self.context, self.workspace, self.chat = context, workspace, chat

    async def add(self, *events: dict[str, Any], ends: bool = True) -> None:
        new = [
            NewEvent("chat.turn.delta", {"chatId": self.chat, "messageId": "m", "event": event})
            for event in [*events, *([_event("turn-result", END)] if ends else [])]
        ]
        if ends:
            new.append(NewEvent("chat.turn.completed", {"chatId": self.chat, "messageId": "m"}))
        await self.context.event_log.append(self.workspace, new)
        if ends:
            await self.indexed()

    async def indexed(self) -> None:
        """Wait until all of its history is."""
        query = text("SELECT searched_index = next_history_index FROM chats WHERE id = :id")

        async def done() -> bool:
            return bool(
                await self.context.database.read(
                    lambda c: c.execute(query, {"id": self.chat}).scalar()
                )
            )

        await eventually(done)


@pytest.fixture
async def running(context: ServiceContext) -> AsyncIterator[SearchIndexer]:
    made = SearchIndexer(context)
    context.event_log.observe(made.hear)
    made.start()
    yield made
    await made.close()


@pytest.fixture
async def place(
    context: ServiceContext, running: SearchIndexer, new_workspace: New, new_chat: New
) -> Place:
    return await _place(context, new_workspace, new_chat, name="fix-login")


async def _place(context: ServiceContext, workspace: New, chat: New, **values: Any) -> Place:
    of = await workspace(context.database, home_id=context.home_id, **values)
    return Place(context, of, await chat(context.database, of))


async def found(client: httpx.AsyncClient, q: str, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/v1/search", params={"q": q, **query})
    assert answer.status_code == 200, answer.text
    SearchHits.model_validate(answer.json())
    return answer.json()["hits"]


async def test_whole_messages_are_found_with_where_they_are(
    client: httpx.AsyncClient, place: Place
) -> None:
    await place.add(
        user("Fix the login time-out"),
        agent("The session coo"),
        agent("kie has "),
        tool("pytest -q tests/test_login.py"),
        agent("no expiry_date."),
    )
    (one,) = await found(client, "cookie")
    assert one["workspace_id"] == place.workspace and one["chat_id"] == place.chat
    assert (one["workspace_name"], one["role"], one["history_index"]) == ("fix-login", "agent", 1)
    assert one["excerpt"] == "The session cookie has no expiry_date."
    assert [one["excerpt"][slice(*match)] for match in one["matches"]] == ["cookie"]
    for query, roles in {
        "login": ["tool", "user"],  # the newest first
        "LOGIN time": ["user"],
        '"login time out"': ["user"],
        '"time login"': [],
        "test_login.py": ["tool"],
        "expiry": ["agent"],
        "expir": ["agent"],  # the last word may go on
        "expir ": [],
        "expir cookie": [],
        "cookie pytest": [],  # in different texts
    }.items():
        assert [hit["role"] for hit in await found(client, query)] == roles, query
    assert [hit["history_index"] for hit in await found(client, "login")] == [3, 0]


@pytest.mark.parametrize(
    "words",
    [
        "½ cup",
        "x² y",
        "İstanbul",
        "ΟΔΟΣ",
        "Cafe\u0301",
        "हिन्दी",
        "ไทย",
        "한국어",
        "日本語",
        "٣٤",
        "ﬁle",
        "Ⅷ",
        "1e5 -5",
    ],
)
async def test_a_text_is_found_by_itself(
    client: httpx.AsyncClient, place: Place, words: str
) -> None:
    await place.add(user(f"({words})"), agent("cup x y e5"))
    for query in (words, f'"{words}"', f"{words} "):
        assert [one["role"] for one in await found(client, query)] == ["user"], query


async def test_a_long_word_is_found_by_its_beginning(
    client: httpx.AsyncClient, place: Place
) -> None:
    await place.add(user("ab" * 4_000))
    assert len(await found(client, "ab" * 100)) == 1
    assert await found(client, "ab" * 99 + " ") == []


async def test_a_phrase_is_found_in_a_long_list(client: httpx.AsyncClient, place: Place) -> None:
    names = " ".join(f"{n}.py" for n in range(1_000))
    await place.add(user(names))
    for name in ("0.py", "500.py", "999.py"):
        assert len(await found(client, name)) == 1, name


async def test_a_turn_is_found_when_it_has_ended(client: httpx.AsyncClient, place: Place) -> None:
    await place.add(user("early"), agent("unfinished"), ends=False)
    assert await found(client, "unfinished") == []
    await place.add(agent(" business"))
    assert [hit["excerpt"] for hit in await found(client, "unfinished")] == ["unfinished business"]
    assert len(await found(client, "early")) == 1


async def test_what_an_earlier_service_left_is_indexed_at_the_start(
    client: httpx.AsyncClient,
    context: ServiceContext,
    new_workspace: New,
    new_chat: New,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexer, "EVENTS_AT_ONCE", 2)
    place = await _place(context, new_workspace, new_chat)
    for words in ("first", "second"):
        await place.add(user(words), agent("reply to the "), agent(words), ends=False)
        new = {"chatId": place.chat, "messageId": "m", "event": _event("turn-result", END)}
        await context.event_log.append(place.workspace, [NewEvent("chat.turn.delta", new)])
    starting = SearchIndexer(context)
    starting.start()
    await place.indexed()
    await starting.close()
    assert [hit["excerpt"] for hit in await found(client, "second reply")] == [
        "reply to the second"
    ]
    assert len(await found(client, "reply")) == 2


async def test_ends_of_turns_that_are_none_cost_nothing_more(
    context: ServiceContext,
    client: httpx.AsyncClient,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An engine may report the end of a turn that goes on, as often as it likes."""
    monkeypatch.setattr(indexer, "EVENTS_AT_ONCE", 10)
    read, calls, usual = 0, 0, indexer._events

    def counted(*of: Any) -> list[Any]:
        nonlocal read, calls
        rows = usual(*of)
        read, calls = read + len(rows), calls + 1
        return rows

    monkeypatch.setattr(indexer, "_events", counted)
    await place.add(*(agent(f"part {n} ") for n in range(100)), ends=False)
    for n in range(20):
        before = calls
        ended = NewEvent("chat.turn.completed", {"chatId": place.chat, "messageId": str(n)})
        await context.event_log.append(place.workspace, [ended])
        await eventually(lambda before=before: calls > before)
    assert read == 100
    await place.add(agent("the last"))
    assert read < 220  # once more for the texts
    assert len(await found(client, "part 99 the last")) == 1


async def test_replicas_take_turns_and_wait_with_few_chats(
    context: ServiceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "MOST_WAITING", 3)
    waiting = SearchIndexer(context)
    ends = [StoredEvent(n, "", "", "chat.turn.completed", f'{{"chatId":"{n}"}}') for n in range(9)]
    waiting.hear("hostile", ends)
    waiting.hear("other", ends[:2])
    taken = []
    while waiting._waiting:
        taken.append(waiting._next())
    assert taken == [
        *[("hostile", "0"), ("other", "0"), ("hostile", "1"), ("other", "1"), ("hostile", "2")]
    ]


async def test_pages_and_bad_queries(client: httpx.AsyncClient, place: Place) -> None:
    await place.add(*(agent(f"number {n}", str(n)) for n in range(5)))
    seen, cursor = [], None
    while cursor != "":
        query = {"q": "number", "limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/v1/search", params=query)).json()
        seen += [hit["excerpt"] for hit in page["hits"]]
        cursor = page["next_cursor"] or ""
    assert seen == [f"number {n}" for n in (4, 3, 2, 1, 0)]
    for query in ({"q": "--"}, {"q": "x", "cursor": "?"}, {"q": ""}, {}, {"q": "x", "limit": 0}):
        assert (await client.get("/v1/search", params=query)).status_code == 400, query
    for q in ("'", '"', '"; DROP', "a' & b", "NEAR(a b)", "text:a", "é ß 漢字", "a\tb", "-a OR b*"):
        assert (await client.get("/v1/search", params={"q": q})).status_code in (200, 400), q


async def test_what_is_deleted_or_not_theirs_is_not_found(
    client: httpx.AsyncClient,
    context: ServiceContext,
    place: Place,
    new_workspace: New,
    new_chat: New,
    database_kind: str,
) -> None:
    await place.add(agent("secret plan"))
    chat = await new_chat(context.database, place.workspace)
    await Place(context, place.workspace, chat).add(agent("secret chat"))
    pool = await _place(context, new_workspace, new_chat, warm_state="ready")
    await pool.add(agent("secret warm"))

    async def left() -> list[str]:
        return [hit["excerpt"] for hit in await found(client, "secret")]

    assert await left() == ["secret chat", "secret plan"]
    gone = update(chats).where(chats.c.id == chat).values(deletion="asked")
    await context.database.write(lambda c: c.execute(gone))
    assert await left() == ["secret plan"]
    delete = workspaces.delete().where(workspaces.c.id == place.workspace)
    await context.database.write(lambda c: c.execute(delete))
    assert await left() == []
    if database_kind == "sqlite":  # its words are gone with its rows
        check = text("SELECT count(*) FROM search_words WHERE search_words MATCH 'plan'")
        assert await context.database.read(lambda c: c.execute(check).scalar()) == 0


def test_a_long_text_is_indexed_in_pieces() -> None:
    turn = indexer.TurnTexts()
    words = " ".join(f"word{n}" for n in range(6_000))
    turn.add(7, "2026-01-01T00:00:00.000Z", agent(words))
    texts = turn.texts()
    assert len(texts) > 2 and "".join(one.text for one in texts) == words
    assert {one.history_index for one in texts} == {7}
    assert all(len(one.text) <= indexer.PIECE for one in texts)


def test_a_listing_is_not_cut_within_a_name() -> None:
    turn = indexer.TurnTexts()
    listing = "".join(f"mod{n}/core.py\n" for n in range(300))
    turn.add(7, "2026-01-01T00:00:00.000Z", agent(listing.rstrip()))
    texts = [one.text for one in turn.texts()]
    assert len(texts) > 1
    assert [name for text in texts for name in text.split()] == listing.split()


def test_an_excerpt_shows_the_first_match_on_one_line() -> None:
    query = SearchQuery.read("needle hay")
    line, matches = query.excerpt("much\n" * 50 + "the  Needle\nin haystack" + " more" * 99)
    assert line.startswith("much") and "the Needle in haystack more" in line
    assert [line[begin:end] for begin, end in matches] == ["Needle", "haystack"]
