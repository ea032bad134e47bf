"""Runs of single commands, without a service."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.client.errors import NotConnectedError
from quarterdeck.store.exec_runs import MOST_RUNS, ExecRuns
from quarterdeck.store.signals import KeyedTasks, ReplicaChanged
from quarterdeck.wire.terminals import ExecResponse
from tests.support.waiting import eventually

REPLICA = UUID(int=1)


class Owner:
    """Answers commands by what the test put there."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.asked: list[str] = []
        self.end = asyncio.Event()
        """Until then, commands with `sleep` run."""
        self.answer: Any = ExecResponse(
            output="hi\n", exit_code=0, timed_out=False, truncated=False
        )

    @property
    def client(self) -> Any:
        return self

    @property
    def exec(self) -> Any:
        return self

    async def run(
        self, replica_id: UUID, command: str, seconds: int, *, in_repository: bool = False
    ) -> ExecResponse:
        self.asked.append(command)
        if "; sleep" in command:
            await self.end.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def publish(self, change: object) -> None:
        self.told.append(change)


async def ended(runs: ExecRuns) -> None:
    await eventually(lambda: not runs.running(REPLICA))


async def test_a_run_keeps_what_came_out_and_tells_it() -> None:
    owner = Owner()
    async with KeyedTasks() as tasks:
        runs = ExecRuns(owner, tasks)
        run = runs.start(REPLICA, "echo hi")
        assert run.running and run.seconds is None
        await ended(runs)
    assert run.response == owner.answer
    assert run.seconds is not None
    assert owner.asked[0].endswith("; echo hi") and run.key in owner.asked[0]
    assert owner.told == [ReplicaChanged(REPLICA)]


async def test_what_could_not_be_asked_says_why() -> None:
    owner = Owner()
    owner.answer = NotConnectedError("No line.", next_step="Wait.")
    async with KeyedTasks() as tasks:
        runs = ExecRuns(owner, tasks)
        run = runs.start(REPLICA, "echo hi")
        await ended(runs)
    assert run.problem == "No line. Wait." and run.response is None


async def test_history_and_runs_have_bounds() -> None:
    owner = Owner()
    async with KeyedTasks() as tasks:
        runs = ExecRuns(owner, tasks)
        for number in range(MOST_RUNS + 5):
            runs.start(REPLICA, f"echo {number % 7}")
        await ended(runs)
        assert len(runs.of(REPLICA)) == MOST_RUNS
        assert sorted(runs.history) == [f"echo {number}" for number in range(7)]
        runs.forget(REPLICA)
        assert runs.of(REPLICA) == []


@pytest.mark.parametrize(("code", "problem"), [(0, ""), (1, "not interrupted: its process was")])
async def test_an_interrupt_is_another_command(code: int, problem: str) -> None:
    owner = Owner()
    async with KeyedTasks() as tasks:
        runs = ExecRuns(owner, tasks)
        run = runs.start(REPLICA, "sleep 9")
        await eventually(lambda: bool(owner.asked))
        owner.answer = ExecResponse(output="", exit_code=code, timed_out=False, truncated=False)
        runs.interrupt(run)
        await eventually(lambda: run.interrupted == 1 or bool(run.problem))
        owner.end.set()
        await ended(runs)
    assert run.problem.startswith(problem) and bool(run.problem) == bool(code)
    assert run.key in owner.asked[1] and "kill -s INT" in owner.asked[1]
