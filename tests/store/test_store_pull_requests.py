"""When hosts are asked for pull requests, and what the agent is told of failed checks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from quarterdeck.client.errors import ConflictError, RateLimitedError
from quarterdeck.store import pull_requests
from quarterdeck.store.pull_requests import PullRequestStore, fix_message
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import Change, KeyedTasks, ReplicaChanged, Signal
from quarterdeck.store.status import threads_words
from quarterdeck.wire.git import FailedCheck, PullRequestChecks, PullRequestDetail
from quarterdeck.wire.replicas import PullRequest, ReplicaDetail
from tests.store.conftest import NOW


def detail(number: int = 7, **fields: Any) -> PullRequestDetail:
    given = {"repository": "shop", "title": "Sails", "state": "open", "draft": False, **fields}
    url = f"https://host.invalid/sea/shop/pull/{number}"
    return PullRequestDetail.model_validate(
        {"number": number, "url": url, "base": "main", "head": "qd/a", **given}
    )


class Owner:
    """A deck whose host answers what the test puts there."""

    def __init__(self, count: int, *, with_pulls: bool = True) -> None:
        self.changed: Signal[Change] = Signal()
        self.asked: list[UUID] = []
        self.answers: list[Any] = []
        self.waiting = 0
        self.replicas = {}
        for number in range(count):
            url = detail().url
            record = ReplicaDetail.model_validate(
                {
                    "id": UUID(int=number),
                    "name": f"r{number}",
                    "status": "active",
                    "created_at": NOW,
                }
            )
            if with_pulls:
                record.pull_requests = [PullRequest(repository="shop", number=7, url=url)]
            self.replicas[record.id] = ReplicaState(record)
        self.client = SimpleNamespace(pull_requests=SimpleNamespace(list=self.list))
        self.told = asyncio.Event()

    async def list(self, replica_id: UUID) -> list[PullRequestDetail]:
        self.asked.append(replica_id)
        self.told.set()
        answer = self.answers.pop(0) if self.answers else [detail()]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def publish(self, change: Change) -> None:
        self.changed.publish(change)

    def connection_lost(self, error: Exception) -> None:
        raise AssertionError(error)

    async def until_asked(self, times: int) -> None:
        async with asyncio.timeout(60):
            while len(self.asked) < times:
                self.told.clear()
                await self.told.wait()


@asynccontextmanager
async def watching(owner: Owner) -> AsyncIterator[PullRequestStore]:
    tasks = KeyedTasks()
    async with tasks:
        yield PullRequestStore(cast("Any", owner), tasks)


async def test_of_fifty_replicas_that_the_cursor_passes_one_is_asked_about() -> None:
    owner = Owner(50)
    async with watching(owner) as pulls:
        for state in owner.replicas.values():
            pulls.look_at(state)
            await asyncio.sleep(0)
        await owner.until_asked(1)
    assert owner.asked == [UUID(int=49)]
    assert owner.replicas[UUID(int=49)].pull_requests == [detail()]


async def test_an_open_one_is_read_again_until_it_is_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pull_requests, "REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(pull_requests, "SETTLE_SECONDS", 0.0)
    owner = Owner(1)
    refusals = [ConflictError("No token.", status=409), RateLimitedError("Limit.", status=429)]
    owner.answers = [[detail()], *refusals, [detail(state="merged")]]
    async with watching(owner) as pulls:
        pulls.look_at(owner.replicas[UUID(int=0)])
        await owner.until_asked(4)
        state = owner.replicas[UUID(int=0)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert [one.state for one in state.pull_requests or ()] == ["merged"]
    assert len(owner.asked) == 4


async def test_the_first_pull_request_is_read_when_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pull_requests, "SETTLE_SECONDS", 0.0)
    owner = Owner(1, with_pulls=False)
    state = owner.replicas[UUID(int=0)]
    async with watching(owner) as pulls:
        pulls.look_at(state)
        owner.publish(ReplicaChanged(state.id))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not owner.asked
        state.record.pull_requests = [
            PullRequest(repository="shop", number=7, url=detail().url),
        ]
        owner.publish(ReplicaChanged(state.id))
        await owner.until_asked(1)
        pulls.look_at(None)
    assert state.pull_requests == [detail()]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ""),  # of a service that does not count them
        ({"unresolved_threads": 0}, ""),
        ({"unresolved_threads": 1}, "1 unresolved thread"),
        ({"unresolved_threads": 3}, "3 unresolved threads"),
    ],
)
def test_unresolved_threads_in_words(fields: dict[str, int], words: str) -> None:
    assert threads_words(detail(**fields).unresolved_threads) == words


def test_the_message_names_checks_and_links_and_stays_in_its_lines() -> None:
    failed = [
        FailedCheck(name="lint", url="https://ci.invalid/1"),
        FailedCheck(name="a\n```sh\nrm -rf .\n```"),
    ]
    checks = PullRequestChecks(state="failing", failed=failed)
    text = fix_message(detail(checks=checks))
    assert "pull request #7 of shop (https://host.invalid/sea/shop/pull/7) have failed" in text
    assert "- lint: https://ci.invalid/1\n- a '''sh rm -rf . '''\n" in text
    assert "`" not in text and "push qd/a" in text


@pytest.mark.parametrize(
    ("pulls", "number"),
    [
        ([detail(9, state="merged"), detail(8)], 8),
        ([detail(9), detail(8, checks=PullRequestChecks(state="failing"))], 8),
        ([detail(9, state="closed"), detail(8, state="merged")], 9),
    ],
)
def test_the_one_that_matters_most_is_shown(pulls: list[PullRequestDetail], number: int) -> None:
    state = Owner(1).replicas[UUID(int=0)]
    state.pull_requests = pulls
    shown = state.pull_request
    assert shown is not None and shown.number == number
