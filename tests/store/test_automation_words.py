"""Schedules as they are typed, runs by hand, and the prompt of a run."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from quarterdeck.client.client import Client
from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.errors import InvalidRequestError, PayloadTooLargeError, RequestTimeoutError
from quarterdeck.store.automation_draft import (
    Wrong,
    coming,
    composed_prompt,
    refused,
    trigger_of,
    webhook_call,
    webhook_url,
)
from quarterdeck.wire.automation_runs import Execution
from quarterdeck.wire.automations import Automation
from tests.store.automation_service import automation

NOW = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)  # a Friday
REPLICA = UUID(int=7)


def test_the_coming_runs_of_a_schedule_are_in_its_zone() -> None:
    found = coming("0 9 * * 1-5", "Europe/Berlin", NOW)
    assert found.problem is None
    assert [f"{one:%d %H:%M}" for one in found.moments] == [
        "23 08:00",
        "24 08:00",
        "25 08:00",
        "26 08:00",
        "27 08:00",
    ]


@pytest.mark.parametrize(
    ("expression", "zone", "field", "words"),
    [
        ("", "UTC", "schedule", "Five fields are needed, 0 given"),
        ("0 9 * *", "UTC", "schedule", "4 given"),
        ("61 9 * * *", "UTC", "schedule", "The minute '61' is none: 0 to 59"),
        ("0 25 * * *", "UTC", "schedule", "The hour '25' is none"),
        ("0 0 31 2 *", "UTC", "schedule", "The day of the month '31' is none"),
        ("0 0 * 13 *", "UTC", "schedule", "The month '13' is none"),
        ("0 0 * * 8", "UTC", "schedule", "The day of the week '8' is none"),
        ("0 9 * * *", "", "timezone", "A zone is needed"),
        ("0 9 * * *", "Mars/Olympus", "timezone", "Unknown time zone 'Mars/Olympus'"),
        ("0 9 * * *", "../etc/passwd", "timezone", "Unknown time zone"),
        ("0 9 * * *", "localtime", "timezone", "Unknown time zone"),
        ("0 9 * * *", "right/UTC", "timezone", "Unknown time zone"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said_plainly(
    expression: str, zone: str, field: str, words: str
) -> None:
    found = coming(expression, zone, NOW)
    assert found.problem is not None and words in found.problem
    assert found.field == field and not found.moments


def test_a_run_by_hand_takes_json_and_a_pull_request() -> None:
    body = trigger_of(' {"n": [1]} ', " acme/shop#12 ")
    assert not isinstance(body, Wrong) and body.pr is not None
    assert (body.payload, body.pr.repository, body.pr.number) == ({"n": [1]}, "acme/shop", 12)
    empty = trigger_of(" \n", "")
    assert not isinstance(empty, Wrong) and empty.payload is None and empty.pr is None


@pytest.mark.parametrize(
    ("payload", "about", "field"),
    [
        ("{", "", "payload"),
        ("hello", "", "payload"),
        ("[" * 100_000, "", "payload"),
        ('"' + "x" * (256 << 10) + '"', "", "payload"),
        ("", "shop", "pr"),
        ("", "#1", "pr"),
        ("", "shop#0", "pr"),
        ("", "shop#two", "pr"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(payload: str, about: str, field: str) -> None:
    found = trigger_of(payload, about)
    assert isinstance(found, Wrong) and found.field == field


def test_refusals_stand_beside_the_field_that_they_speak_of() -> None:
    about = InvalidRequestError("Not valid.", status=400, details="pr.repository: not connected")
    assert refused(about) == Wrong("pr", "Not valid. not connected")
    assert refused(PayloadTooLargeError("Too large.", status=413)).field == "payload"
    assert refused(RequestTimeoutError("No answer.")).text.endswith(
        "check the runs before retrying."
    )


def said(at: datetime, text: str) -> dict[str, Any]:
    return {"timestamp": at.isoformat(), "type": "user-message", "payload": {"text": text}}


class Replica:
    """A history of so many events, one a second."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._events = events
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        query = request.url.params
        end = min(int(query.get("beforeEvent", len(self._events))), len(self._events))
        end = int(query.get("beforeCursor", end))
        begin = max(0, end - int(query["limit"]))
        page = {"thread_id": "t", "total": len(self._events), "has_more": begin > 0}
        before = {"beforeCursor": str(begin)} if begin else {}
        return httpx.Response(200, json={**page, **before, "events": self._events[begin:end]})

    def client(self) -> Client:
        return Client(HttpConnection("http://test", "key", transport=httpx.MockTransport(self)))


def a_run(at: datetime, workspace: UUID | None = REPLICA) -> Execution:
    return Execution.model_validate(
        {
            "id": UUID(int=1),
            "automation_id": UUID(int=2),
            "organization_id": UUID(int=3),
            "workspace_id": workspace,
            "triggered_at": at,
            "status": "running",
        }
    )


async def test_the_prompt_is_the_first_message_of_the_replica() -> None:
    replica = Replica(
        [said(NOW, "Go.\n\n## Trigger\n\n- type: cron"), said(NOW + timedelta(hours=1), "And?")]
    )
    async with replica.client() as client:
        assert await composed_prompt(client, a_run(NOW)) == "Go.\n\n## Trigger\n\n- type: cron"
        assert await composed_prompt(client, a_run(NOW, None)) is None
    assert replica.asked == 1


async def test_the_prompt_of_a_run_that_joined_is_found_in_a_long_history() -> None:
    later = NOW + timedelta(hours=2)
    noise = [
        {"timestamp": (NOW + timedelta(seconds=n)).isoformat(), "type": "turn-result"}
        for n in range(1, 1500)
    ]
    after = [{**one, "timestamp": (later + timedelta(hours=1)).isoformat()} for one in noise]
    first, second = "Go.\n## Trigger\nopened", "Go.\n## Trigger\nsynchronize"
    replica = Replica([said(NOW, first), *noise, said(later, second), *after])
    async with replica.client() as client:
        assert await composed_prompt(client, a_run(later)) == second
        assert await composed_prompt(client, a_run(later + timedelta(hours=9))) is None


@pytest.mark.parametrize(
    ("endpoint", "told", "url"),
    [
        (
            "https://deck.example/",
            "http://10.0.0.1:80/x",
            "https://deck.example/v1/automations/webhook/t",
        ),
        ("unix:/run/qd.sock", "http://10.0.0.1:80/x", "http://10.0.0.1:80/x"),
        ("unix:/run/qd.sock", None, None),
    ],
)
def test_where_a_webhook_is_called(endpoint: str, told: str | None, url: str | None) -> None:
    record = Automation.model_validate(automation("a", webhook_token="t", webhook_url=told))
    assert webhook_url(record, endpoint) == url
    call = webhook_call(record, endpoint)
    assert call is not None and "X-Signature-256" not in call
    if url is None:
        assert "--unix-socket /run/qd.sock" in call
        assert call.endswith("http://localhost/v1/automations/webhook/t")
    else:
        assert call.endswith(f' -d "$body" {url}')


def test_a_signed_call_takes_the_secret_from_a_variable() -> None:
    record = Automation.model_validate(automation("a", webhook_token="t", webhook_signed=True))
    call = webhook_call(record, "https://deck.example")
    assert call is not None and "X-Signature-256: sha256=$(printf" in call and "$SECRET" in call
    none = Automation.model_validate(automation("a"))
    assert webhook_call(none, "https://deck.example") is None
