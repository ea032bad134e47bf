"""The connection on the screen is that of now: a service that hangs is noticed, and noise changes nothing."""

import asyncio
from datetime import UTC, datetime

import pytest

from quarterdeck.client.errors import StoppedError
from quarterdeck.store import connection_monitor
from quarterdeck.store.connection_monitor import is_news
from quarterdeck.store.status import ConnectionPhase
from tests.store.conftest import PlayedService, Watched


@pytest.mark.parametrize(
    ("told", "taken"), [(None, 50), (50, 4), (4, 50), (40, 70), (200, 120), (300, 20)]
)
def test_a_latency_that_is_another_one_is_told(told: float | None, taken: float) -> None:
    assert is_news(told, taken)


@pytest.mark.parametrize(
    ("told", "taken"),
    [(None, 3), (2, 2), (2, 14), (14, 2), (39, 2), (19, 22), (40, 50), (200, 170), (300, 350)],
)
def test_noise_is_not(told: float | None, taken: float) -> None:
    assert not is_news(told, taken)


async def test_a_service_that_hangs_between_two_reads_of_the_list_is_noticed(
    watched: Watched, service: PlayedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_monitor, "CHECK_PERIOD", 0.001)
    monkeypatch.setattr(connection_monitor, "ANSWER_SECONDS", 0.05)
    connection = watched.deck.connection
    await watched.until(lambda: connection.phase == ConnectionPhase.ONLINE, "a connection")
    answers = service.held["/health"] = asyncio.Event()
    await watched.until(lambda: connection.phase == ConnectionPhase.RECONNECTING, "its loss")
    assert connection.problem == "test does not answer."
    lost = connection.down_since
    assert lost is not None and lost <= datetime.now(UTC)
    answers.set()
    await watched.until(lambda: connection.phase == ConnectionPhase.ONLINE, "its return")
    assert connection.down_since is None


async def test_a_service_that_the_person_stopped_is_started_when_they_want_it(
    watched: Watched, service: PlayedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    async def revive(wanted: bool) -> str | None:
        asked.append(wanted)
        if not wanted:
            raise StoppedError("It was stopped.")
        service.down = False
        return None

    connection = watched.deck.connection
    await watched.until(lambda: connection.phase == ConnectionPhase.ONLINE, "a connection")
    monkeypatch.setattr(watched.deck.lookout, "_revive", revive)
    phases: list[ConnectionPhase] = []
    watched.deck.changed.watch(lambda _: phases.append(connection.phase))
    service.down = True
    watched.deck.refresh_soon()
    await watched.until(lambda: asked.count(False) > 1, "the second try")
    assert ConnectionPhase.RECONNECTING not in phases
    assert connection.phase == ConnectionPhase.STOPPED
    assert connection.problem == "It was stopped."
    delays: list[float | None] = []
    watched.deck.changed.watch(lambda _: delays.append(connection.retry_in))
    watched.deck.reconnect_now()
    await watched.until(lambda: connection.phase == ConnectionPhase.ONLINE, "its start")
    assert asked.count(True) == 1
    assert connection_monitor.FIRST_DELAY in delays, "the delay of earlier tries is not kept"
    service.down = True
    watched.deck.refresh_soon()
    await watched.until(lambda: connection.phase == ConnectionPhase.STOPPED, "another stop")


async def test_there_are_three_small_requests_from_one_list_to_the_next(
    watched: Watched, service: PlayedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_monitor, "CHECK_PERIOD", 0.001)
    await watched.until(lambda: service.asked.count("GET /v1/replica") >= 4, "the fourth list")
    at = [n for n, asked in enumerate(service.asked) if asked == "GET /v1/replica"]
    between = service.asked[at[2] + 1 : at[3]]
    assert between == ["GET /v1/health"] * 3
