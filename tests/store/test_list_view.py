"""How the list of replicas is arranged, and that this is kept."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.store.app_state import AppState
from quarterdeck.store.chats import TokenUse
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.list_view import Grouping, ListView, SortKey, group_name
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.services import Services
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.replicas import ReplicaDetail

AT = datetime(2026, 11, 20, tzinfo=UTC)
STAGING = UUID(int=7)


def replica(name: str, number: int, *, agent: str = "", **fields: Any) -> ReplicaState:
    fields.setdefault("last_activity_at", AT - timedelta(hours=number))
    record = ReplicaDetail.model_validate(
        {"id": UUID(int=number), "name": name, "status": "active", "created_at": AT, **fields}
    )
    state = ReplicaState(record)
    if agent:
        chat = Chat(id=UUID(int=90 + number), provider=agent, created_at=AT, updated_at=AT)
        state.take_chat(chat)
    return state


def repository(name: str, branch: str, added: int, ahead: int) -> dict[str, Any]:
    status = {"repository": name, "branch": branch, "ahead": ahead, "git_diff": {"added": added}}
    return {
        "repositories": [{"id": UUID(int=3), "name": name, "url": f"https://host/{name}"}],
        "repository_statuses": [status],
    }


def three() -> list[ReplicaState]:
    """The first one asks, the second has changes and a pull request, the third no repository."""
    pull = {"repository": "shop", "number": 4, "url": "https://host/4"}
    first = replica("one", 1, agent="codex", environment_id=STAGING, **repository("web", "a", 1, 0))
    (chat,) = first.chats.values()
    chat.record.awaiting_input = True
    second = replica("Two", 2, pull_requests=[pull], **repository("shop", "b", 9, 3))
    second.record.source = "automation"
    third = replica("three", 3, agent="builtin", last_activity_at=AT + timedelta(hours=1))
    (chat,) = third.chats.values()
    chat.tokens = TokenUse(context=50, window=100)
    return [first, second, third]


def names(states: list[ReplicaState]) -> list[str]:
    return [state.name for state in states]


@pytest.mark.parametrize(
    ("sort", "order", "turned"),
    [
        (SortKey.ATTENTION, ["one", "three", "Two"], ["Two", "three", "one"]),
        (SortKey.NAME, ["one", "three", "Two"], ["Two", "three", "one"]),
        (SortKey.AGENT, ["three", "one", "Two"], ["one", "three", "Two"]),
        (SortKey.BRANCH, ["Two", "one", "three"], ["one", "Two", "three"]),
        (SortKey.CHANGES, ["Two", "one", "three"], ["one", "Two", "three"]),
        (SortKey.AHEAD, ["Two", "one", "three"], ["Two", "one", "three"]),
        (SortKey.PULL, ["Two", "one", "three"], ["Two", "one", "three"]),
        (SortKey.CONTEXT, ["three", "one", "Two"], ["three", "one", "Two"]),
        (SortKey.AGE, ["three", "one", "Two"], ["Two", "one", "three"]),
    ],
)
def test_each_column_has_its_order_and_what_has_no_value_is_last(
    sort: SortKey, order: list[str], turned: list[str]
) -> None:
    assert names(ListView(sort=sort).ordered(three())) == order
    assert names(ListView(sort=sort, reverse=True).ordered(three())) == turned


@pytest.mark.parametrize("several", [True, False])
def test_every_column_is_reached_in_both_directions(several: bool) -> None:
    keys = [key for key in SortKey if several or key is not SortKey.SERVICE]
    view, seen = ListView(reverse=True), []
    for _ in keys:
        view = view.model_copy(update=view.sort_by(1, several=several))
        assert not view.reverse
        seen.append(view.sort)
    assert set(seen) == set(keys) and view.sort is SortKey.ATTENTION
    assert view.sort_by(1, several=several)["sort"] is seen[0]
    assert view.sort_by(-1, several=several)["sort"] is seen[-2]


def test_pinned_ones_come_first_in_the_usual_order() -> None:
    view = ListView(pinned=[UUID(int=2), UUID(int=3)])
    assert names(view.ordered(three())) == ["three", "Two", "one"]
    by_name = ListView(pinned=[UUID(int=2)], sort=SortKey.NAME)
    assert names(by_name.ordered(three())) == ["Two", "one", "three"]


def test_groups_are_in_the_order_of_their_first_ones() -> None:
    states = [*three(), replica("four", 4, environment_id=STAGING, **repository("web", "c", 0, 0))]
    view = ListView(group=Grouping.REPOSITORY)
    found = view.ordered(states)
    assert names(found) == ["one", "four", "three", "Two"]
    assert [view.group_of(state) for state in found] == ["web", "web", "no repository", "shop"]
    by_environment = ListView(group=Grouping.ENVIRONMENT)
    heads = [
        group_name(by_environment.group_of(state), {STAGING: "Staging"})
        for state in by_environment.ordered(states)
    ]
    assert heads == ["Staging", "Staging", "no environment", "no environment"]
    by_source = ListView(group=Grouping.SOURCE, pinned=[UUID(int=4)])
    found = by_source.ordered(states)
    assert [by_source.group_of(state) for state in found] == ["Pinned", "api", "api", "automation"]


def state_on(disk: ClientDisk) -> Services:
    def nobody() -> Any:
        raise AssertionError("nothing is asked")

    store = AppState(nobody, endpoint="local", disk=disk)
    store.listed = True
    return Services(store)


def test_the_arrangement_is_kept(tmp_path: Path) -> None:
    services = state_on(ClientDisk(tmp_path))
    services.arrange(table=True, sort=SortKey.AGE, group=Grouping.SOURCE)
    for state in three():
        services.current.replicas[state.id] = state
    services.pin({UUID(int=1), UUID(int=2)})
    again = state_on(ClientDisk(tmp_path)).list_view
    assert again == services.list_view
    assert again.table and again.pinned == [UUID(int=1), UUID(int=2)]


def test_pins_are_removed_from_all_or_added_to_all_and_those_of_deleted_ones_go(
    tmp_path: Path,
) -> None:
    services = state_on(ClientDisk(tmp_path))
    for state in three():
        services.current.replicas[state.id] = state
    one, two, three_ = (UUID(int=number) for number in (1, 2, 3))
    services.pin({one})
    services.pin({one, two})
    assert services.list_view.pinned == [one, two]
    services.current.remove(two)
    services.pin({three_})
    assert services.list_view.pinned == [one, three_]
    services.pin({one, three_})
    assert services.list_view.pinned == []


@pytest.mark.parametrize("text", ["", "{", '{"sort": "shoes"}', '{"pinned": [1]}', "[]"])
def test_an_arrangement_that_cannot_be_read_is_the_usual_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.json").write_text(text)
    assert ClientDisk(tmp_path).list_view() == ListView()
