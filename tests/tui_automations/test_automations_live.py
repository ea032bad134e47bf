"""The automations over the real service: made, run, looked into, mended, deleted."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.client.client import Client
from quarterdeck.store.creation import CreationChoices, choices
from quarterdeck.tui.automations import form
from quarterdeck.wire.automations import Automation, ChangeAutomation, CreateAutomation
from quarterdeck.wire.environments import GLOBAL, CreateEnvironment
from quarterdeck.wire.repositories import ConnectRepository
from tests.support.git import make_repository
from tests.support.waiting import WAIT_SECONDS, eventually, pauses
from tests.tui_shell.live import Desk, Installation

SLOW = "```sh\nsleep 600\n```"


@pytest.fixture
async def office(live: Installation) -> AsyncIterator[Installation]:
    """The service, without automations afterwards."""
    yield live
    async with live.client() as client:
        for record in [one async for one in client.automations.all()]:
            await client.automations.delete(record.id)


async def made(office: Installation, name: str, **fields: Any) -> Automation:
    async with office.client() as client:
        environment = await client.environments.get(GLOBAL)
        body = {
            "name": name,
            "prompt": "```sh\necho hello\n```",
            "environment_id": str(environment.id),
            "agent_provider": "builtin",
        }
        return await client.automations.create(CreateAutomation.model_validate(body | fields))


async def look(desk: Desk, *texts: str) -> None:
    """Opens the automations and waits for these."""
    await eventually(lambda: desk.app.app_state.changes.live, "the feed of changes")
    await desk.press("a")
    await desk.see(*texts)


async def test_one_is_made_run_and_looked_into(office: Installation) -> None:
    async with office.cockpit((110, 40)) as desk:
        await look(desk, "No automations yet")
        await desk.see("d delete")
        await desk.press("n")
        await desk.see("New automation")
        await desk.miss("d delete")  # keys of the page do nothing below the form
        await desk.write("nightly")
        await desk.press("tab", "enter")
        await desk.see("global")
        await desk.press("down", "enter", "tab")
        await desk.press("enter", "home", "enter")
        await desk.press("tab", "tab")
        for line in ("```sh", "echo hello", "```"):
            await desk.write(line)
            await desk.press("enter")
        await desk.press("tab")
        await desk.write("61 9 * * *")
        await desk.see("The minute '61' is none")
        await desk.press("ctrl+s")
        await desk.see("The minute '61' is none", "New automation", "nightly")
        await desk.press("home", "delete", "delete", "0")
        await desk.see("09:00 UTC")
        assert desk.text.count("09:00 UTC") == 5
        await desk.press("ctrl+s")
        await desk.miss("New automation")
        await desk.see("Next runs", "0 9 * * * UTC", "No runs yet.")

        await desk.press("r")
        await desk.see("Payload (JSON")
        await desk.write('{"why": "a test"}')
        await desk.press("ctrl+s")
        await desk.see("completed")
        await desk.press("enter", "enter")
        await desk.see("A run of nightly", '"why": "a test"')
        await desk.press("end")
        await desk.see("data that came from outside")
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer", "the chat of the replica")
        await desk.see("hello")


@pytest.mark.long
async def test_a_refusal_stands_beside_its_field_and_nothing_typed_is_lost(
    office: Installation,
) -> None:
    record = await made(office, "nightly")
    async with office.cockpit((110, 40)) as desk:
        await look(desk, "nightly")
        await desk.press("e")
        await desk.see("Edit nightly")
        await desk.write("-b")
        await desk.press("tab", "tab", "enter")
        await desk.see("not ", "installed")
        await desk.press("escape")
        other = await made(office, "nightly-b")
        await desk.press("ctrl+s")
        await desk.see("Edit nightly", "An automation has the name nightly-b already.")
        async with office.client() as client:
            await client.automations.delete(other.id)
            await client.automations.delete(record.id)
        await desk.press("ctrl+s")
        await desk.see("Edit nightly", "nightly-b", "No automation has this id.")
        await desk.press("escape")
        await desk.see("Unsaved changes")
        await desk.press("d")
        await desk.see("No automations yet")


@pytest.mark.long
async def test_a_failed_run_is_seen_and_run_again(office: Installation) -> None:
    record = await made(office, "slow", prompt=SLOW)
    async with office.client() as client, office.cockpit((110, 40)) as desk:
        begun = await client.automations.trigger(record.id)
        await look(desk, "running since", "· manual")  # the run itself, not its automation alone
        await desk.press("enter", "t")
        await desk.see("Only a run that failed")
        assert begun.workspace_id is not None
        await client.replicas.delete(begun.workspace_id)
        await desk.see("failing", "Its replica was deleted before the run had ended.", "gone")
        await desk.press("w")
        await desk.see("Deleted; the run stays in the history.")
        await desk.press("t")
        await desk.see("running since", "gone")
        await desk.press("w")
        await eventually(lambda: desk.focus == "Composer", "the chat of the new replica")


async def test_what_happens_elsewhere_is_seen_and_switches_work(office: Installation) -> None:
    async with office.client() as client, office.cockpit((110, 40)) as desk:
        await look(desk, "No automations yet")
        cron = {"type": "cron", "config": {"schedule": "0 9 * * *"}}
        hook: dict[str, Any] = {"type": "custom", "config": {}}
        record = await made(office, "elsewhere", triggers=[cron, hook])
        await desk.see("elsewhere", "••••••••")
        token = record.webhook_token or ""
        assert token not in desk.text
        await desk.press("v")
        await desk.see(token[:20])
        await desk.press("y")
        assert token in desk.app.clipboard
        await desk.press("o")
        await desk.see("Next runs if it were on")
        await eventually(lambda: desk.app.app_state.automations.summary().text == "", "the summary")
        await client.automations.change(record.id, ChangeAutomation(name="renamed", enabled=True))
        await desk.see("renamed")
        await desk.miss("if it were on")
        await desk.press("d")
        await desk.see("Delete renamed?")
        await desk.press("y")
        await desk.see("No automations yet")
        assert [one async for one in client.automations.all()] == []


@pytest.fixture
async def shop(office: Installation, tmp_path: Path) -> AsyncIterator[UUID]:
    """A connected repository of this name."""
    url = str(make_repository(tmp_path / "shop"))
    async with office.client() as client:
        connected = await client.repositories.connect(ConnectRepository(url=url))
        yield connected.id
        await client.repositories.disconnect(connected.id)


WORK = "```sh\ngit commit -q --allow-empty -m Work\ntouch left\n```"


@pytest.mark.long
async def test_a_finished_run_names_work_that_was_never_pushed(
    office: Installation, shop: UUID
) -> None:
    async with office.client() as client, office.cockpit((140, 40)) as desk:
        body = CreateEnvironment(name="worker", repository_id=shop)
        environment = await client.environments.create(body)
        record = await made(office, "worker", prompt=WORK, environment_id=str(environment.id))
        run = await client.automations.trigger(record.id)
        await ended(client, record, 1)
        await look(desk, "worker", "completed")
        await desk.press("enter", "enter")
        await desk.see("A run of worker", "(1 commit never pushed, 1 file not committed)")
        await client.automations.delete(record.id)
        assert run.workspace_id is not None
        await client.replicas.delete(run.workspace_id)
        await client.environments.delete(environment.id)


@pytest.mark.long
@pytest.mark.usefixtures("shop")
async def test_a_run_of_a_pull_request_is_begun_by_hand(office: Installation) -> None:
    await made(office, "review")
    async with office.cockpit((80, 24)) as desk:
        await look(desk, "review")
        await desk.press("r")
        await desk.see("Pull request")
        await desk.press("tab")
        await desk.write("shop")
        await desk.press("enter")
        await desk.see("Write REPOSITORY#NUMBER", "shop")
        await desk.write("#3")
        await desk.press("enter")
        await desk.see("no verdict")
        await desk.press("enter", "enter")
        await desk.see("## Trigger")
        await desk.press("end")
        await desk.see("qd check report")


@pytest.mark.long
async def test_a_service_that_comes_back_is_caught_up_with(office: Installation) -> None:
    await made(office, "before")
    async with office.cockpit((80, 24)) as desk:
        await look(desk, "before")
        office.kill()
        await desk.see("✗ offline")
        await desk.press("o")
        await desk.see("Switch off")
        office.start()
        await office.ready()
        await made(office, "afterwards")
        await desk.press("ctrl+r")
        await desk.see("before", "afterwards")


def bottom(desk: Desk) -> str:
    """The line of keys."""
    return desk.text.rstrip().splitlines()[-1]


async def ended(client: Client, record: Automation, count: int) -> None:
    """Waits until so many runs of an automation have ended."""

    async def done() -> bool:
        found = (await client.automations.executions(record.id)).executions
        return sum(run.completed_at is not None for run in found) >= count

    async with asyncio.timeout(WAIT_SECONDS):
        for pause in pauses(0.02):
            if await done():
                return
            await asyncio.sleep(pause)


@pytest.mark.long
async def test_the_runs_of_every_automation_are_read(office: Installation) -> None:
    async with office.client() as client:
        for name in ("first", "second", "third"):
            record = await made(office, name)
            await client.automations.trigger(record.id)
            await ended(client, record, 1)
    async with office.cockpit((110, 40)) as desk:
        await look(desk, "first", "second", "third")
        for _ in range(3):
            await desk.see("manual")
            await desk.miss("Reading …")
            await desk.press("down")


@pytest.mark.long
async def test_a_new_environment_has_its_name_at_once(office: Installation) -> None:
    async with office.client() as client, office.cockpit((110, 40)) as desk:
        await look(desk, "No automations yet")
        environment = await client.environments.create(CreateEnvironment(name="made-since"))
        try:
            record = await made(office, "late", environment_id=str(environment.id))
            await desk.see("late", "made-since")
        finally:
            await client.automations.delete(record.id)
            await client.environments.delete(environment.id)


@pytest.mark.long
async def test_the_form_offers_the_repository_here(office: Installation) -> None:
    async with office.client() as client, office.cockpit((110, 40)) as desk:
        await look(desk, "No automations yet")
        await desk.press("n")
        await desk.see("New automation", f"{office.repository.name} (the repository here)")
        await desk.write("here")
        await desk.press("tab", "tab", "tab", "tab")
        await desk.write("Look.")
        await desk.press("ctrl+s")
        await desk.miss("New automation")
        (record,) = [one async for one in client.automations.all()]
        environment = await client.environments.get(record.environment_id)
        assert environment.repository_id is not None
        await desk.see(environment.name)
        await client.automations.delete(record.id)
        await client.environments.delete(environment.id)


async def test_the_form_names_the_repository_here_before_the_service_answers(
    office: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = asyncio.Event()

    async def late(client: Client) -> CreationChoices:
        await answered.wait()
        return await choices(client)

    monkeypatch.setattr(form, "choices", late)
    async with office.cockpit((110, 40)) as desk:
        await look(desk, "No automations yet")
        await desk.press("n")
        await desk.see(f"{office.repository.name} (the repository here)")
        answered.set()


@pytest.mark.long
async def test_a_run_can_be_canceled_and_what_is_offered_follows_its_state(
    office: Installation,
) -> None:
    record = await made(office, "slow", prompt=SLOW)
    async with office.client() as client, office.cockpit((110, 40)) as desk:
        await client.automations.trigger(record.id)
        await look(desk, "running since", "· manual")
        await desk.press("enter")
        await eventually(lambda: "x cancel" in bottom(desk), "the offer to cancel")
        assert "retry" not in bottom(desk) and "approve" not in bottom(desk)
        await desk.press("a")
        await desk.see("The run does not wait for approval.")
        await desk.press("x")
        await desk.see("Cancel the run?")
        await desk.press("y")
        await desk.see("canceled", "The run was canceled.")
        await eventually(lambda: "t retry" in bottom(desk), "the offer to retry")
        assert "cancel" not in bottom(desk).replace("canceled", "")
        await desk.miss("failing")
        await desk.press("t")
        await desk.see("running since")
        newest = (await client.automations.executions(record.id)).executions[0]
        await desk.press("enter")
        await desk.see("A run of slow", f"of {str(newest.retry_of)[:8]}")


@pytest.mark.long
async def test_the_keys_of_the_page_are_told(office: Installation) -> None:
    await made(office, "one")
    async with office.cockpit((110, 50)) as desk:
        await look(desk, "one")
        await desk.press("question_mark")
        await desk.see("Approve a run from a fork", "Delete with its runs", "Cancel a run")
        assert "Tabs" not in desk.text


@pytest.mark.long
async def test_a_webhook_is_shown_in_whole_and_rotated(office: Installation) -> None:
    record = await made(office, "hook", triggers=[{"type": "custom", "config": {}}])
    async with office.client() as client, office.cockpit((120, 40)) as desk:
        await look(desk, "hook", "sockets only", "••••••••")
        await desk.press("v")
        await desk.see("curl -X POST", "--unix-socket /", (record.webhook_token or "")[:20])
        await desk.press("R")
        await desk.see("a new token?")
        await desk.press("y")
        await desk.see("The webhook of hook", "curl -X POST --unix-socket /")
        rotated = await client.automations.get(record.id)
        assert rotated.webhook_token != record.webhook_token
        await desk.see((rotated.webhook_token or "")[:20])
