"""Runs that wait for approval: what a person is asked, and the cursor of the runs."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from textual.pilot import Pilot

from quarterdeck.client.errors import NotConnectedError
from quarterdeck.tui.automations.runs import RunList
from quarterdeck.wire.automation_runs import Execution
from tests.automations.host_payloads import SHA, of_stranger
from tests.tui_automations.sample import add, run
from tests.tui_shell.frozen import START, FrozenCockpit, screen_text


class Approver:
    """A client that approves; of anything else it does not answer."""

    def __init__(self, run: Execution) -> None:
        self.approved: list[UUID] = []
        self._run = run
        self.automations = SimpleNamespace(approve=self._approve)

    async def _approve(self, automation_id: UUID, run_id: UUID) -> Execution:
        self.approved.append(run_id)
        return self._run.model_copy(update={"awaiting_approval": False})

    def __getattr__(self, resource: str) -> object:
        raise NotConnectedError("No service answers.")


async def see(pilot: Pilot[Any], text: str) -> None:
    while text not in screen_text(pilot.app):
        await pilot.pause()


async def test_who_and_what_is_approved_is_asked(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = run(
        1,
        "pending",
        trigger_type="host-a",
        trigger_event="pull_request.opened",
        trigger_payload=of_stranger(title="Free money"),
        awaiting_approval=True,
    )
    client = Approver(waiting)
    monkeypatch.setattr(type(frozen.app_state), "client", client)
    add(frozen, "review", waiting)
    async with frozen.run_test(size=(110, 40)) as pilot:
        await pilot.press("a")
        await see(pilot, "waits for approval since")
        await pilot.press("enter")
        await see(pilot, "a approve")
        await pilot.press("a")
        await see(pilot, "Approve Free money?")
        assert SHA in screen_text(frozen) and "stranger" in screen_text(frozen)
        await pilot.press("n")
        assert client.approved == []
        await pilot.press("a")
        await see(pilot, "Approve Free money?")
        await pilot.press("y")
        while not client.approved:
            await pilot.pause()
        assert client.approved == [waiting.id]
        while "a approve" in screen_text(frozen):
            await pilot.pause()


async def test_the_cursor_stays_on_the_newest_run_until_it_is_moved(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(frozen.app_state), "client", Approver(run(1)))
    state = add(frozen, "nightly", *(run(number, minutes_ago=number) for number in range(1, 4)))

    def began(number: int) -> Execution:
        later = START + timedelta(minutes=number)
        fields = {"automation_id": state.id, "triggered_at": later}
        new = run(100 + number, "running").model_copy(update=fields)
        frozen.app_state.automations.take_run(new)
        return new

    async with frozen.run_test(size=(110, 40)) as pilot:
        await pilot.press("a")
        await see(pilot, "Runs")
        await pilot.press("enter")
        runs = frozen.screen.query_one(RunList)
        for number in (1, 2):
            new = began(number)
            while runs.chosen != new.id:
                await pilot.pause()
        await pilot.press("down")
        moved = runs.chosen
        new = began(3)
        while new.id not in {row.key for row in runs.rows}:
            await pilot.pause()
        assert runs.chosen == moved
