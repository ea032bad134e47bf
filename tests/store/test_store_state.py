"""Replicas and chats as state: names, joins of page and stream."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from quarterdeck.store.chats import ChatState
from quarterdeck.store.creation import suggest_name
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import Chat, QueuedMessage
from quarterdeck.wire.events import TurnDelta
from quarterdeck.wire.history import AgentEvent, History
from quarterdeck.wire.replicas import Replica


def replica(**fields: Any) -> Replica:
    base = {"id": uuid4(), "name": "one", "status": "active", "created_at": utc_now()}
    return Replica.model_validate({**base, **fields})


def said(text: str) -> AgentEvent:
    return AgentEvent(
        timestamp=utc_now(),
        type="user-message",
        payload={"messageId": str(uuid4()), "text": text},
    )


def chat_state() -> ChatState:
    now = utc_now()
    return ChatState(Chat(id=uuid4(), provider="builtin", created_at=now, updated_at=now))


def delta(chat: ChatState, event: AgentEvent) -> TurnDelta:
    return TurnDelta(chat_id=str(chat.id), event=event)


def texts(chat: ChatState) -> list[str]:
    assert chat.transcript is not None
    return [getattr(block, "text", "") for block in chat.transcript.blocks]


def page(events: list[AgentEvent], log_index: int | None) -> History:
    return History(
        thread_id="t", events=events, total=len(events), has_more=False, log_index=log_index
    )


@pytest.mark.parametrize("numbered", [True, False])
def test_what_arrives_while_a_page_is_read_is_neither_lost_nor_repeated(numbered: bool) -> None:
    chat = chat_state()
    first, second, third = said("first"), said("second"), said("third")
    chat.begin_loading()
    chat.add_delta(8 if numbered else None, delta(chat, second))
    chat.add_delta(9 if numbered else None, delta(chat, third))
    chat.finish_loading(page([first, second], 8 if numbered else None))
    assert texts(chat) == ["first", "second", "third"]


def test_an_abandoned_page_leaves_the_transcript() -> None:
    chat = chat_state()
    chat.begin_loading()
    chat.finish_loading(page([said("kept")], 1))
    chat.begin_loading()
    chat.abandon_loading()
    assert texts(chat) == ["kept"]


def test_older_pages_come_in_front() -> None:
    chat = chat_state()
    chat.begin_loading()
    chat.finish_loading(page([said("new")], 2))
    chat.add_older(page([said("old")], None))
    assert texts(chat) == ["old", "new"]


def test_a_summary_that_says_nothing_new_changes_nothing() -> None:
    record = replica(repositories=[{"id": str(uuid4()), "name": "r", "url": "/r"}])
    state = ReplicaState.from_summary(record, None)
    assert not state.take_summary(record)
    assert state.take_summary(record.model_copy(update={"status": "sleeping"}))
    assert state.status == "sleeping"


def test_what_happened_since_the_last_look_is_unseen() -> None:
    now = utc_now()
    record = replica(last_activity_at=now)
    assert ReplicaState.from_summary(record, now - timedelta(minutes=1)).unseen
    assert not ReplicaState.from_summary(record, now + timedelta(minutes=1)).unseen
    assert not ReplicaState.from_summary(record, None).unseen


def test_a_list_is_ordered_by_need_then_activity() -> None:
    now = utc_now()
    idle_old = ReplicaState.from_summary(replica(name="a", last_activity_at=now), None)
    idle_new = ReplicaState.from_summary(
        replica(name="b", last_activity_at=now + timedelta(seconds=1)), None
    )
    failed = ReplicaState.from_summary(replica(name="c", status="error"), None)
    ordered = sorted([idle_old, idle_new, failed], key=ReplicaState.sort_key)
    assert [state.name for state in ordered] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("message", "fallback", "taken", "expected"),
    [
        ("Fix the login time-out, please!", "repo", [], "fix-the-login-time"),
        ("```sh\nmake test\n```", "repo", [], "repo"),
        ("", "my repo", [], "my-repo"),
        ("", "", [], "replica"),
        ("fix it", "repo", ["fix-it", "fix-it-2"], "fix-it-3"),
        ("日本語", "repo", [], "repo"),
        ("deadbeef", "repo", [], "replica-deadbeef"),
        ("", "Me & you/..", [], "Me---you"),
    ],
)
def test_names_have_no_white_space_and_are_free(
    message: str, fallback: str, taken: list[str], expected: str
) -> None:
    assert suggest_name(message, fallback, taken) == expected


def test_a_chat_that_is_gone_from_the_record_is_dropped() -> None:
    state = ReplicaState.from_summary(replica(), None)
    kept, gone = chat_state().record, chat_state().record
    state.take_chat(gone)
    detail = state.record.model_copy(update={"chats": [kept]})
    state.take_detail(detail)
    assert set(state.chats) == {UUID(str(kept.id))}


def test_a_queue_read_before_a_turn_began_does_not_bring_its_message_back() -> None:
    chat = chat_state()
    waiting = QueuedMessage(id=uuid4(), message="go", queued_at=utc_now())
    chat.start_turn(str(waiting.id), utc_now())
    chat.take_queue([waiting])
    assert chat.queue == []
