"""Several stores as one list."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.store.app_state import AppState
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.list_view import Grouping, SortKey
from quarterdeck.store.replica_list import ReplicaFilter
from quarterdeck.store.services import Services
from quarterdeck.store.signals import Change, ConnectionChanged, ListChanged
from quarterdeck.store.status import ConnectionPhase, ConnectionState
from quarterdeck.tui.widgets.status_line import fitting_words, problem_words, service_words
from quarterdeck.wire.replicas import Replica

AT = datetime(2026, 11, 20, tzinfo=UTC)


def store(disk: Path, name: str, *, beside: bool = False) -> AppState:
    def nobody() -> Any:
        raise AssertionError("nothing is asked")

    return AppState(nobody, endpoint=name, disk=ClientDisk(disk / name), name=name, beside=beside)


def listed(state: AppState, *numbers: int, name: str = "fix") -> None:
    records = (
        Replica.model_validate(
            {"id": UUID(int=number), "name": name, "status": "sleeping", "created_at": AT}
        )
        for number in numbers
    )
    state.take_list(records, list(state.replicas))


@pytest.fixture
def services(tmp_path: Path) -> Services:
    found = Services(store(tmp_path, "local"))
    found.add(store(tmp_path, "work", beside=True))
    return found


def full_names(services: Services) -> list[str]:
    return [state.full_name for state in services.ordered()]


def test_equal_names_are_told_apart_and_each_replica_has_its_store(services: Services) -> None:
    current, beside = services.stores
    listed(current, 1)
    listed(beside, 2)
    assert sorted(full_names(services)) == ["fix", "work/fix"]
    assert services.of(UUID(int=1)) is current and services.of(UUID(int=2)) is beside
    assert services.of(None) is current
    services.filter_by(ReplicaFilter.of("service:work"))
    assert [one.id.int for one in services.filtered(services.ordered())] == [2]
    services.arrange(group=Grouping.SERVICE, sort=SortKey.SERVICE)
    groups = [services.list_view.group_of(state) for state in services.ordered()]
    assert groups == ["local", "work"]


def test_a_replica_that_two_profiles_show_is_there_once(services: Services) -> None:
    for one in services.stores:
        listed(one, 1)
    assert full_names(services) == ["fix"]
    current, beside = services.stores
    listed(beside, 1, 2)
    assert (services.repeated(current), services.repeated(beside)) == (0, 1)


def test_changes_of_a_hidden_service_are_heard_no_longer(services: Services) -> None:
    beside = services.stores[1]
    listed(services.current, 1)
    listed(beside, 2)
    heard: list[Change] = []
    services.changed.watch(heard.append)
    services.remove(beside)
    assert heard == [ListChanged(), ConnectionChanged()] and full_names(services) == ["fix"]
    beside.publish(ListChanged())
    assert len(heard) == 2


def test_pins_of_a_service_that_has_not_answered_are_kept(services: Services) -> None:
    current, beside = services.stores
    listed(current, 1)
    services.arrange(pinned=[UUID(int=2)])
    services.pin({UUID(int=1)})
    assert services.list_view.pinned == [UUID(int=1), UUID(int=2)]
    listed(beside, 3)
    services.pin({UUID(int=3)})
    assert services.list_view.pinned == [UUID(int=1), UUID(int=3)]


def connection(name: str, phase: ConnectionPhase, **fields: Any) -> ConnectionState:
    return ConnectionState(f"https://{name}.example", name, phase, **fields)


@pytest.mark.parametrize(
    ("room", "with_name", "words"),
    [
        (70, True, ["local ● 2 ms", "laboratory ✗ offline, retry every 2 s"]),
        (56, False, ["local ● 2 ms", "laboratory ✗ offline, retry every 2 s"]),
        (40, False, ["local ●", "laboratory ✗ offline"]),
        (26, False, ["local ●", "laboratory ✗"]),
        (20, False, ["local ●", "laborat… ✗"]),
    ],
)
def test_the_states_of_all_connections_are_shortened_to_the_room(
    room: int, with_name: bool, words: list[str]
) -> None:
    states = [
        connection("local", ConnectionPhase.ONLINE, latency_ms=2.0),
        connection("laboratory", ConnectionPhase.RECONNECTING, retry_in=2.0),
    ]
    named, found = fitting_words(service_words(states), room)
    assert (named, [" ".join(one) for one in found]) == (with_name, words)


def test_since_when_a_service_is_offline_is_told() -> None:
    now = datetime.now(UTC)
    lost = connection("local", ConnectionPhase.RECONNECTING, problem="No answer.", down_since=now)
    assert f"No answer. Offline since {now.astimezone():%H:%M}. Your" in problem_words(lost)
    lost.down_since = None
    assert "No answer. Your input is kept." in problem_words(lost)


def test_the_want_of_a_key_is_told_from_a_refusal() -> None:
    states = [
        connection("local", ConnectionPhase.REFUSED),
        connection("work", ConnectionPhase.REFUSED, needs_login=True),
    ]
    assert [one.words[0] for one in service_words(states)] == ["✗ refused", "✗ login needed"]
