"""What the page of one run says."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.cli.automation.automations import run_trigger_text
from quarterdeck.tui.automations.facts import run_mark, run_trigger, verdict_mark
from quarterdeck.tui.automations.run_screen import pull_request_of
from quarterdeck.tui.automations.runs import RunStory, run_row, skipped_row, story_lines
from quarterdeck.wire.automation_runs import Execution, ExecutionReason, SkippedMoments
from tests.automations.host_payloads import SHA, merge_request, pull_request

MOMENT = "2026-11-20T08:00:00Z"


def run_with(**check: Any) -> Execution:
    told = {"id": "1", "name": "nightly", "status": "open", "opened_at": MOMENT, **check}
    ids = {name: str(uuid4()) for name in ("id", "automation_id", "organization_id")}
    return Execution.model_validate(
        {**ids, "triggered_at": MOMENT, "status": "running", "check": told}
    )


@pytest.mark.parametrize(
    ("repository", "words"), [("sea/shop", "nightly of sea/shop"), ("", "nightly")]
)
def test_a_check_is_of_a_repository_when_the_run_has_a_pull_request(
    repository: str, words: str
) -> None:
    lines = story_lines(RunStory(run_with(repository=repository), "nightly-1"))
    assert [line.text for line in lines if line.label == "check"] == [words]


def run(**fields: Any) -> Execution:
    ids = {name: str(uuid4()) for name in ("id", "automation_id", "organization_id")}
    return Execution.model_validate({**ids, "triggered_at": MOMENT, "status": "failed", **fields})


@pytest.mark.parametrize(
    ("fields", "word", "color"),
    [
        ({}, "failed", "error"),
        ({"reason": "timeout"}, "timeout", "error"),
        ({"reason": "canceled"}, "canceled", "muted"),
        ({"reason": "superseded"}, "superseded", "muted"),
        ({"reason": "of a newer service"}, "failed", "error"),
        ({"status": "pending", "awaiting_approval": True}, "approval", "needs-you"),
    ],
)
def test_a_run_that_ended_for_a_reason_of_its_own_says_so(
    fields: dict[str, Any], word: str, color: str
) -> None:
    mark = run_mark(run(**fields))
    assert (mark.word, mark.color) == (word, color)


@pytest.mark.parametrize("reason", ExecutionReason)
@pytest.mark.parametrize("height", [1, 2])
def test_a_blank_stands_between_the_state_of_a_run_and_its_time(
    reason: ExecutionReason, height: int
) -> None:
    row = run_row(run(reason=reason), "nightly-1", datetime(2026, 11, 20, tzinfo=UTC))
    _, status, *_ = row.lines(100, height)[0]
    assert status.text.rstrip() == row.status
    assert status.text.endswith(" ")


def test_the_check_of_a_run_that_a_person_canceled_is_canceled_too() -> None:
    ended = {"id": "1", "name": "nightly", "repository": "", "status": "completed"}
    mark = verdict_mark(
        run(reason="canceled", check={**ended, "opened_at": MOMENT, "conclusion": "cancelled"})
    )
    assert mark is not None and mark.word == "canceled"


def test_a_run_that_waits_for_approval_says_what_to_press() -> None:
    waiting = run(status="pending", awaiting_approval=True)
    (told,) = [one for one in story_lines(RunStory(waiting, "")) if one.label == "approval"]
    assert "a approve" in told.text


@pytest.mark.parametrize("payload", [pull_request(title="Fix"), merge_request(title="Fix")])
def test_what_is_approved_is_named(payload: dict[str, Any]) -> None:
    found = pull_request_of(run(trigger_payload=payload))
    assert (found["title"], found["commit"]) == ("Fix", SHA)
    assert found["author"].lower() == "mara"
    assert pull_request_of(run(trigger_payload=["no", "object"])) == {}


def test_skipped_moments_are_a_row_with_the_reason() -> None:
    told = {
        "id": str(uuid4()),
        "automation_id": str(uuid4()),
        "reason": "running",
        "count": 3,
        "first_at": MOMENT,
        "last_at": MOMENT,
    }
    row = skipped_row(SkippedMoments.model_validate(told), datetime(2026, 11, 20, tzinfo=UTC))
    assert (row.status, row.why) == ("skipped", "3 moments: the previous run had not ended")


def test_a_run_that_a_webhook_started_says_so() -> None:
    started = run(trigger_type="custom")
    assert run_trigger(started) == run_trigger_text(started) == "webhook"
    opened = run(trigger_type="host-a", trigger_event="pull_request.opened")
    assert run_trigger(opened) == run_trigger_text(opened) == "host-a pull_request.opened"
