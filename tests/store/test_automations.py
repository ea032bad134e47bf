"""Automations in the store: what is followed, told, ordered and done."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from quarterdeck.client.errors import ClientError
from quarterdeck.store.automation_state import AutomationState, Standing
from quarterdeck.store.signals import AutomationsChanged
from quarterdeck.wire.base import utc_now
from tests.store.automation_service import HOUR_LATER, AutomationService, automation, run
from tests.store.conftest import NOW, Watched


@pytest.fixture
def service() -> AutomationService:
    return AutomationService()


async def known(watched: Watched, id: str) -> AutomationState:
    """The state of an automation, followed and read after what the test put there."""
    automations = watched.deck.automations
    await watched.until(lambda: automations.live, "the feed of changes")
    await automations.refresh()
    return automations.states[UUID(id)]


async def test_those_that_need_a_person_come_first(
    watched: Watched, service: AutomationService
) -> None:
    soon, later = utc_now() + timedelta(minutes=5), utc_now() + timedelta(days=1)
    service.put(automation("off", enabled=False))
    service.put(automation("waits"))
    service.put(automation("later", cron_next_fire_at=later.isoformat()))
    service.put(automation("soon", cron_next_fire_at=soon.isoformat()))
    runs = automation("runs")
    service.put(runs, run(runs["id"], "running"))
    fails = automation("fails")
    service.put(fails, run(fails["id"], "failed", error="No disk."), run(fails["id"]))
    out = service.put(automation("out", enabled=False, disabled_reason="Five failures."))
    state = await known(watched, out)
    order = [one.name for one in watched.deck.automations.ordered()]
    assert order == ["out", "fails", "runs", "soon", "later", "waits", "off"]
    assert state.problem == "Five failures."
    assert watched.deck.automations.states[UUID(fails["id"])].problem == "No disk."
    told = watched.deck.automations.summary()
    assert (told.failing, told.running, told.due, told.text) == (2, 1, 1, "2 failing")


@pytest.mark.parametrize("reason", ["interrupted", "canceled", "superseded", "disabled", "expired"])
async def test_what_a_person_or_a_push_ended_is_no_failure(
    watched: Watched, service: AutomationService, reason: str
) -> None:
    record = automation("one")
    state = await known(watched, service.put(record, run(record["id"], "failed", reason=reason)))
    assert (state.standing, state.problem) == (Standing.WAITING, None)
    timed_out = run(record["id"], "failed", HOUR_LATER, reason="timeout")
    service.tell(1, "execution.changed", execution=timed_out)
    await watched.until(lambda: state.standing == Standing.FAILING, "a failure")


async def test_a_run_that_waits_for_approval_needs_a_person(
    watched: Watched, service: AutomationService
) -> None:
    runs = automation("runs")
    service.put(runs, run(runs["id"], "running"))
    record = automation("waits")
    waiting = run(record["id"], "pending", awaiting_approval=True)
    state = await known(watched, service.put(record, waiting))
    assert state.standing == Standing.APPROVAL
    assert watched.deck.automations.ordered()[0] is state
    assert watched.deck.automations.summary().text == "1 to approve"


async def test_skipped_moments_are_read_with_the_runs_and_when_there_are_more(
    watched: Watched, service: AutomationService
) -> None:
    record = automation("one", cron_expression="* * * * *", cron_timezone="UTC")
    state = await known(watched, service.put(record, run(record["id"])))
    skip = {
        "id": str(UUID(int=9)),
        "automation_id": record["id"],
        "reason": "running",
        "count": 1,
        "first_at": NOW,
        "last_at": NOW,
    }
    service.skipped[record["id"]] = [skip]
    await watched.deck.automations.commands.open_runs(state.id)
    assert state.history is not None
    assert [one.count for one in state.history.skipped] == [1]
    service.skipped[record["id"]] = [{**skip, "count": 2}]
    service.tell(1, "automation.changed", automation_id=record["id"])

    def more() -> bool:
        return state.history is not None and [s.count for s in state.history.skipped] == [2]

    await watched.until(more, "another skipped moment")


async def test_what_the_stream_tells_is_known_without_asking_for_more(
    watched: Watched, service: AutomationService
) -> None:
    record = automation("one")
    first = run(record["id"], trigger_payload={"n": 1})
    state = await known(watched, service.put(record, first))
    await watched.deck.automations.commands.open_runs(state.id)
    asked = len(service.asked)
    begun = run(record["id"], "running", HOUR_LATER)
    service.tell(1, "execution.changed", execution=begun)
    await watched.until(lambda: state.standing == Standing.RUNNING, "the run")
    assert state.history is not None
    assert [str(one.id) for one in state.history.runs] == [begun["id"], first["id"]]
    ended = {**begun, "status": "failed", "error": "No disk."}
    del ended["trigger_payload"]
    service.tell(2, "execution.changed", execution=ended)
    await watched.until(lambda: state.standing == Standing.FAILING, "its end")
    assert [one.status for one in state.history.runs] == ["failed", "completed"]
    assert len(service.asked) == asked
    assert AutomationsChanged(state.id) in watched.told


async def test_an_event_keeps_the_payload_that_was_read(
    watched: Watched, service: AutomationService
) -> None:
    record = automation("one")
    begun = run(record["id"], "running", trigger_payload={"n": 1})
    state = await known(watched, service.put(record, begun))
    await watched.deck.automations.commands.open_runs(state.id)
    told = {**begun, "status": "completed"}
    del told["trigger_payload"]
    service.tell(1, "execution.changed", execution=told)
    await watched.until(lambda: state.newest and state.newest.status == "completed", "the end")
    assert state.history is not None
    assert state.history.runs[0].trigger_payload == {"n": 1}


async def test_a_payload_that_no_page_had_is_read_once(
    watched: Watched, service: AutomationService
) -> None:
    record = automation("one")
    state = await known(watched, service.put(record))
    commands = watched.deck.automations.commands
    await commands.open_runs(state.id)
    begun = run(record["id"], "running", trigger_payload={"n": 1})
    service.runs[record["id"]].insert(0, begun)
    service.tell(
        1, "execution.changed", execution={k: begun[k] for k in begun if k != "trigger_payload"}
    )
    await watched.until(lambda: state.newest, "the run")
    id = UUID(begun["id"])
    assert (await commands.read_run(state.id, id)).trigger_payload == {"n": 1}
    asked = len(service.asked)
    assert (await commands.read_run(state.id, id)).trigger_payload == {"n": 1}
    assert len(service.asked) == asked


async def test_one_that_is_changed_is_read_and_one_that_is_deleted_goes(
    watched: Watched, service: AutomationService
) -> None:
    id = service.put(automation("one"))
    await known(watched, id)
    service.automations[id]["name"] = "renamed"
    service.tell(1, "automation.changed", automation_id=id)
    states = watched.deck.automations.states
    await watched.until(lambda: states[UUID(id)].name == "renamed", "the change")
    other = service.put(automation("made elsewhere"))
    service.tell(2, "automation.changed", automation_id=other)
    await watched.until(lambda: UUID(other) in states, "the new one")
    service.tell(3, "automation.deleted", automation_id=id)
    await watched.until(lambda: UUID(id) not in states, "its end")


@pytest.mark.parametrize(
    "payload",
    [{"execution": {"id": "x"}}, {"execution": None}, {}],
    ids=["wrong", "null", "none"],
)
async def test_an_event_that_cannot_be_read_ends_nothing(
    watched: Watched, service: AutomationService, payload: dict[str, Any]
) -> None:
    id = service.put(automation("one"))
    state = await known(watched, id)
    service.tell(1, "execution.changed", **payload)
    service.tell(2, "automation.changed", automation_id="no id")
    service.tell(3, "execution.changed", execution=run(id, "running", HOUR_LATER))
    await watched.until(lambda: state.standing == Standing.RUNNING, "what came after")


async def test_a_change_that_could_not_be_read_is_read_when_the_line_is_back(
    watched: Watched, service: AutomationService
) -> None:
    id = service.put(automation("one"))
    state = await known(watched, id)
    path = f"/v1/automations/{id}"
    service.refuses.add(path)
    service.automations[id]["name"] = "renamed"
    service.tell(1, "automation.changed", automation_id=id)
    await watched.until(lambda: f"GET {path}" in service.asked, "the try")
    await watched.until(lambda: UUID(id) in watched.deck.automations.stale, "the failure")
    service.refuses.clear()
    service.streams["automations"].put_nowait(b"")  # the line is cut
    await watched.until(lambda: state.name == "renamed", "the change")


async def test_one_that_cannot_be_read_does_not_hold_up_the_others(
    watched: Watched, service: AutomationService
) -> None:
    bad, good = service.put(automation("bad")), service.put(automation("good"))
    state = await known(watched, good)
    paths = [f"/v1/automations/{id}" for id in (bad, good)]
    service.refuses.update(paths)
    service.automations[good]["name"] = "renamed"
    for index, id in enumerate((bad, good), 1):
        service.tell(index, "automation.changed", automation_id=id)
    await watched.until(lambda: len(watched.deck.automations.stale) == 2, "the failures")
    service.refuses = {paths[0], "/v1/automations"}
    service.streams["automations"].put_nowait(b"")  # the line is cut
    await watched.until(lambda: state.name == "renamed", "the change")


async def test_what_another_start_of_the_service_tells_of_its_settings_is_read(
    watched: Watched, service: AutomationService
) -> None:
    record = automation("review", notices=["host-a is not set up."])
    id = service.put(record, run(record["id"]))
    state = await known(watched, id)
    await watched.until(lambda: watched.deck.automations.complete, "the newest run")
    later = run(id, at=HOUR_LATER)
    service.tell(1, "execution.changed", execution=later)  # where to resume
    await watched.until(lambda: state.newest and str(state.newest.id) == later["id"], "the event")
    service.automations[id]["notices"] = []  # it was set up, and the service started again
    service.streams["automations"].put_nowait(b"")  # the line is cut
    await watched.until(lambda: not state.record.notices, "the records")
    assert state.newest is not None and str(state.newest.id) == later["id"]


async def test_a_service_without_the_stream_is_read_when_asked(
    watched: Watched, service: AutomationService
) -> None:
    id = service.put(automation("one"))
    automations = watched.deck.automations
    await watched.until(lambda: automations.live, "the stream")
    service.has_events = False
    service.streams["automations"].put_nowait(b"")  # the line is cut
    await watched.until(lambda: not automations.live, "the refusal")
    await automations.refresh()
    assert list(automations.states) == [UUID(id)]
    retried = await automations.commands.retry(UUID(id), UUID(int=9))
    state = automations.states[UUID(id)]
    assert state.newest is not None and state.newest.id == retried


async def test_runs_are_read_page_by_page(watched: Watched, service: AutomationService) -> None:
    record = automation("one")
    begin = datetime.fromisoformat(HOUR_LATER)
    moments = [(begin - timedelta(minutes=n)).isoformat() for n in range(5)]
    state = await known(watched, service.put(record, *(run(record["id"], at=at) for at in moments)))
    commands = watched.deck.automations.commands
    await commands.open_runs(state.id)
    history = state.history
    assert history is not None and len(history.runs) == 2 and history.total == 5
    # A run that begins meanwhile moves the others to later places.
    begun = run(record["id"], "running", (begin + timedelta(minutes=1)).isoformat())
    service.runs[record["id"]].insert(0, begun)
    service.tell(1, "execution.changed", execution=begun)
    await watched.until(lambda: len(history.runs) == 3, "the new run")
    while history.more:
        await commands.more_runs(state.id)
    assert len({one.id for one in history.runs}) == len(history.runs) == 6
    asked = len(service.asked)
    await commands.more_runs(state.id)
    await commands.open_runs(state.id)
    assert len(service.asked) == asked


async def test_runs_that_could_not_be_read_are_read_at_the_next_look(
    watched: Watched, service: AutomationService
) -> None:
    record = automation("one")
    state = await known(watched, service.put(record, run(record["id"])))
    path = f"/v1/automations/{record['id']}/executions"
    service.refuses.add(path)
    with pytest.raises(ClientError):
        await watched.deck.automations.commands.open_runs(state.id)
    service.refuses.clear()
    await watched.deck.automations.commands.open_runs(state.id)
    assert state.history is not None and len(state.history.runs) == 1


async def test_a_list_that_could_not_be_read_says_why_and_keeps_what_is_known(
    watched: Watched, service: AutomationService
) -> None:
    id = service.put(automation("one"))
    await known(watched, id)
    service.refuses.add("/v1/automations")
    with pytest.raises(ClientError):
        await watched.deck.automations.refresh()
    automations = watched.deck.automations
    assert automations.problem is not None and "It failed." in automations.problem
    assert UUID(id) in automations.states


async def test_a_run_in_an_unknown_replica_makes_the_deck_look(
    watched: Watched, service: AutomationService
) -> None:
    id = service.put(automation("one"))
    await known(watched, id)
    service.added = lambda: None
    made = service.add("made-by-a-run")
    service.tell(1, "execution.changed", execution=run(id, "creating", workspace_id=str(made)))
    await watched.until(lambda: made in watched.deck.replicas, "the replica")


async def test_a_replica_that_was_changed_elsewhere_makes_the_deck_look(
    watched: Watched, service: AutomationService
) -> None:
    await known(watched, service.put(automation("one")))
    service.added = lambda: None
    made = service.add("made-elsewhere")
    service.tell(1, "replica.changed", replica_id=str(made), status="preparing")
    await watched.until(lambda: made in watched.deck.replicas, "the replica")
    del service.replicas[str(made)]
    service.tell(2, "replica.changed", replica_id=str(made), status=None)
    await watched.until(lambda: made not in watched.deck.replicas, "its end")


async def test_what_is_known_of_a_replica_is_not_read_again(
    watched: Watched, service: AutomationService
) -> None:
    id, resting = service.put(automation("one")), service.add("resting", "archived")
    await watched.until(lambda: resting in watched.deck.replicas, "the replica")
    await known(watched, id)
    asked = service.asked.count("GET /v1/replica")
    service.tell(1, "replica.changed", replica_id=str(resting), status="archived")
    service.tell(2, "replica.changed", replica_id=str(uuid4()), status=None)
    service.tell(3, "replica.changed", replica_id=4, status={})
    service.tell(4, "replica.told", replica_id=str(resting))
    service.tell(5, "automation.deleted", automation_id=id)
    await watched.until(lambda: UUID(id) not in watched.deck.automations.states, "the last event")
    assert service.asked.count("GET /v1/replica") == asked


async def test_a_command_is_known_before_the_stream_tells_it(
    watched: Watched, service: AutomationService
) -> None:
    id = service.put(automation("one"))
    state = await known(watched, id)
    await watched.deck.automations.commands.switch(state.id, on=False)
    assert state.standing == Standing.OFF and service.bodies == [{"enabled": False}]


async def test_what_is_approved_canceled_and_rotated_is_known_at_once(
    watched: Watched, service: AutomationService
) -> None:
    record = automation("one", webhook_token="t0ken")
    waiting = run(record["id"], "pending", awaiting_approval=True)
    state = await known(watched, service.put(record, waiting))
    commands, id = watched.deck.automations.commands, UUID(waiting["id"])
    await commands.approve(state.id, id)
    assert state.standing == Standing.RUNNING
    await commands.cancel(state.id, id)
    assert state.standing == Standing.WAITING
    await commands.rotate_webhook(state.id)
    assert state.record.webhook_token == "another"


async def test_without_automations_nothing_is_kept_until_there_is_one(
    watched: Watched, service: AutomationService
) -> None:
    await watched.until(lambda: watched.deck.changes.live, "the feed of changes")
    assert watched.deck.known_automations is None
    id = service.put(automation("first"))
    service.tell(1, "automation.changed", automation_id=id)
    await watched.until(lambda: UUID(id) in watched.deck.automations.states, "the first automation")


async def test_an_automation_that_comes_while_the_list_is_read_stays(
    watched: Watched, service: AutomationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, other = service.put(automation("old")), service.put(automation("other"))
    await known(watched, old)
    listed, released = asyncio.Event(), asyncio.Event()
    answer = service.handle_async_request

    async def late(request: httpx.Request) -> httpx.Response:
        response = await answer(request)
        if request.url.path == "/v1/automations":
            listed.set()
            await released.wait()
        return response

    monkeypatch.setattr(service, "handle_async_request", late)
    del service.automations[old]
    automations = watched.deck.automations
    reading = asyncio.create_task(automations.refresh())
    await listed.wait()
    new = UUID(service.put(automation("new")))
    service.tell(1, "automation.changed", automation_id=str(new))
    service.tell(2, "automation.deleted", automation_id=other)
    await watched.until(lambda: new in automations.states, "the new one")
    await watched.until(lambda: UUID(other) not in automations.states, "the deletion")
    released.set()
    await reading
    assert list(automations.states) == [new]
