"""What a person types to see some replicas only."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.store.replica_list import ReplicaFilter
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.replicas import ReplicaDetail

AT = datetime(2026, 11, 20, tzinfo=UTC)
STAGING = UUID(int=7)
NAMES = {STAGING: "Staging"}


def replica(name: str, status: str = "active", **fields: Any) -> ReplicaState:
    record = ReplicaDetail.model_validate(
        {"id": UUID(int=1), "name": name, "status": status, "created_at": AT, **fields}
    )
    return ReplicaState(record)


def asking() -> ReplicaState:
    state = replica("fix-login", environment_id=STAGING, source="automation")
    chat = Chat(
        id=UUID(int=2),
        provider="codex",
        title="Session cookies",
        created_at=AT,
        updated_at=AT,
        awaiting_input=True,
    )
    state.take_chat(chat)
    return state


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "   ",
        "LOGIN",
        "log fix",
        "cookies",
        "is:asking",
        "is:active",
        "env:stag",
        "from:auto",
        "agent:codex",
        "is:",
        "!",
        "!flaky",
        "!is:sleeping login",
    ],
)
def test_it_is_shown(typed: str) -> None:
    assert ReplicaFilter.of(typed).shows(asking(), NAMES)


@pytest.mark.parametrize(
    "typed",
    [
        "flaky",
        "login flaky",
        "is:sleeping",
        "env:prod",
        "!login",
        "!is:asking",
        "staging",
        "is:log",
    ],
)
def test_it_is_not_shown(typed: str) -> None:
    assert not ReplicaFilter.of(typed).shows(asking(), NAMES)


def test_a_plain_word_is_also_a_state() -> None:
    asleep = replica("one", "sleeping")
    for typed in ("sleeping", "Sleep", "one sleeping", "!asking"):
        assert ReplicaFilter.of(typed).shows(asleep, {}), typed
        assert not ReplicaFilter.of(typed).shows(asking(), NAMES), typed
    for typed in ("!sleeping", "leep", "asking"):
        assert not ReplicaFilter.of(typed).shows(asleep, {}), typed
    assert ReplicaFilter.of("asking").shows(asking(), NAMES)


def test_plans_that_wait_are_asked_for() -> None:
    state = asking()
    (chat,) = state.chats.values()
    assert not ReplicaFilter.of("is:plan").shows(state, NAMES)
    chat.record = chat.record.model_copy(update={"awaiting_input": False, "plan_ready": True})
    assert ReplicaFilter.of("is:plan").shows(state, NAMES)
    assert not ReplicaFilter.of("is:asking").shows(state, NAMES)


def test_an_unknown_key_is_text() -> None:
    assert ReplicaFilter.of("b:c").shows(replica("a-b:c"), {})
    assert not ReplicaFilter.of("b:c").shows(replica("abc"), {})


def test_a_repository_is_found_by_name_address_and_branch() -> None:
    url = "https://example.invalid/shop.git"
    state = replica(
        "one",
        repositories=[{"id": UUID(int=3), "name": "shop", "url": url}],
        repository_statuses=[{"repository": "shop", "branch": "qd/one"}],
    )
    for typed in ("shop", "repo:example.invalid", "repo:qd/one"):
        assert ReplicaFilter.of(typed).shows(state, {}), typed
    assert not ReplicaFilter.of("repo:two").shows(state, {})


def test_names_of_environments_are_read_only_for_words_that_ask_for_them() -> None:
    assert ReplicaFilter.of("x env:y").needs_names
    assert not ReplicaFilter.of("x is:asking").needs_names
    assert not ReplicaFilter.of("env:").needs_names
