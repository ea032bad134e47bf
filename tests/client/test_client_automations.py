"""Automations: what the client asks for, how it reads the answers, and their stream."""

import asyncio
import hashlib
import hmac
import json
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.client import Client
from quarterdeck.client.errors import NotFoundError
from quarterdeck.client.stream_events import ConnectionLost, ConnectionRestored, Received
from quarterdeck.client.streams import ChangesApi
from quarterdeck.wire.automation_runs import PullRequestRef, ReportCheck, TriggerAutomation
from quarterdeck.wire.automations import ChangeAutomation, CreateAutomation

A = UUID("00000000-0000-4000-8000-00000000000a")
E = UUID("00000000-0000-4000-8000-00000000000e")
NOW = "2026-11-21T10:00:00.000Z"
PATH = "/v1/automations"
AUTOMATION = {
    "id": str(A),
    "organization_id": str(E),
    "name": "n",
    "prompt": "p",
    "environment_id": str(E),
    "enabled": True,
    "triggers": [{"type": "novel", "config": {"a": 1}}],
    "created_at": NOW,
    "updated_at": NOW,
}
EXECUTION = {
    "id": str(E),
    "automation_id": str(A),
    "organization_id": str(E),
    "triggered_at": NOW,
    "status": "novel",
}
PAGE = {"total": 0, "page": 1, "limit": 20, "totalPages": 0}
ONE = {"automation": AUTOMATION}
BEGUN = {"execution_id": str(E), "workspace_id": None}
CREATE = CreateAutomation.model_validate(
    {
        "name": "n",
        "prompt": "p",
        "environment_id": E,
        "triggers": [{"type": "cron", "config": {"schedule": "0 9 * * *"}}, {"type": "custom"}],
    }
)
CREATED = {
    "name": "n",
    "prompt": "p",
    "environment_id": str(E),
    "triggers": [
        {"type": "cron", "config": {"schedule": "0 9 * * *", "timezone": "UTC"}},
        {"type": "custom", "config": {}},
    ],
    "scope": "org",
    "enabled": True,
    "workspace_lifecycle_policy": "default",
    "plan_mode": False,
    "trust": "members",
    "on_new_event": "cancel",
    "retention_days": 90,
    "config": {"skip_while_running": False, "report": False},
}
ABOUT = PullRequestRef(repository="shop", number=7)

CALLS = [
    (lambda c: c.list(), f"GET {PATH}", None, {"automations": [AUTOMATION], **PAGE}),
    (
        lambda c: c.list(2, 5, trigger_type="cron", enabled=False, search="a b", scope="user"),
        f"GET {PATH}?page=2&limit=5&trigger_type=cron&enabled=false&search=a+b&scope=user",
        None,
        {"automations": [], **PAGE},
    ),
    (lambda c: c.create(CREATE), f"POST {PATH}", CREATED, ONE),
    (lambda c: c.get(A), f"GET {PATH}/{A}", None, ONE),
    (
        lambda c: c.change(A, ChangeAutomation(model=None, enabled=False)),
        f"PATCH {PATH}/{A}",
        {"model": None, "enabled": False},
        ONE,
    ),
    (lambda c: c.delete(A), f"DELETE {PATH}/{A}", None, {"success": True}),
    (lambda c: c.trigger(A), f"POST {PATH}/{A}/trigger", {}, BEGUN),
    (
        lambda c: c.trigger(A, TriggerAutomation(payload={"a": None}, pr=ABOUT)),
        f"POST {PATH}/{A}/trigger",
        {"payload": {"a": None}, "pr": {"repository": "shop", "number": 7}},
        BEGUN,
    ),
    (
        lambda c: c.executions(A, 1, 3),
        f"GET {PATH}/{A}/executions?page=1&limit=3",
        None,
        {"executions": [EXECUTION], **PAGE},
    ),
    (
        lambda c: c.execution(A, E),
        f"GET {PATH}/{A}/executions/{E}",
        None,
        {"execution": EXECUTION},
    ),
    (
        lambda c: c.retry(A, E),
        f"POST {PATH}/{A}/executions/{E}/retry",
        None,
        {**BEGUN, "workspace_id": str(A)},
    ),
    (
        lambda c: c.approve(A, E),
        f"POST {PATH}/{A}/executions/{E}/approve",
        None,
        {"execution": EXECUTION},
    ),
    (
        lambda c: c.cancel(A, E),
        f"POST {PATH}/{A}/executions/{E}/cancel",
        None,
        {"execution": EXECUTION},
    ),
    (lambda c: c.rotate_webhook(A), f"POST {PATH}/{A}/webhook/rotate", None, ONE),
    (
        lambda c: c.webhook("a/b", [None, 1]),
        f"POST {PATH}/webhook/a%2Fb",
        [None, 1],
        {"accepted": True},
    ),
    (
        lambda c: c.report_check("7", ReportCheck(token="t", conclusion="success", title="Fine")),
        f"POST {PATH}/checks/7",
        {"token": "t", "conclusion": "success", "title": "Fine"},
        {"reported": True, "name": "n"},
    ),
]


@pytest.mark.parametrize(("call", "asked", "body", "answer"), CALLS, ids=range(len(CALLS)))
async def test_calls(
    tiny_server: Any, connect: Any, call: Any, asked: str, body: Any, answer: Any
) -> None:
    async def script(_: Any, reply: Any) -> None:
        await reply.json(answer)

    async with tiny_server(script) as server, Client(connect(server)) as client:
        await call(client.automations)
    (seen,) = server.seen
    assert f"{seen.method} {seen.target.replace('%20', '+')}" == asked
    assert (json.loads(seen.body) if seen.body else None) == body
    assert ("authorization" in seen.headers) == ("/webhook/a" not in asked)


async def test_from_within_a_workspace_its_id_is_said(tiny_server: Any, connect: Any) -> None:
    async def script(_: Any, reply: Any) -> None:
        await reply.json({"reported": False, "name": "n"})

    async with (
        tiny_server(script) as server,
        Client(connect(server, workspace=A)) as client,
    ):
        report = ReportCheck(token="t", conclusion="failure", title="Bad", summary="Why.")
        assert not (await client.automations.report_check("7", report)).reported
    (seen,) = server.seen
    assert seen.headers["x-workspace-id"] == str(A)
    assert json.loads(seen.body)["summary"] == "Why."


async def test_all_of_them_page_by_page(tiny_server: Any, connect: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        second = "page=2" in seen.target
        found = AUTOMATION | {"id": str(E)} if second else AUTOMATION
        more = [AUTOMATION] if second else []  # another one came meanwhile
        await reply.json({**PAGE, "automations": [*more, found], "totalPages": 2})

    async with tiny_server(script) as server, Client(connect(server)) as client:
        assert [one.id async for one in client.automations.all(search="x")] == [A, E]
    assert all("limit=100&search=x" in seen.target for seen in server.seen)


def event(index: int) -> bytes:
    data = {"id": f"e{index}", "ts": NOW, "type": "execution.changed", "payload": {}}
    return f"id: {index}\ndata: {json.dumps(data)}\n\n".encode()


async def test_the_stream_says_when_it_is_open_and_goes_on_where_it_was(
    tiny_server: Any, connect: Any, quick: Any
) -> None:
    async def script(seen: Any, reply: Any) -> None:
        await reply.open_stream()
        if seen.after is None:
            await reply.raw(event(5) + event(6))
            return  # cut
        assert seen.after == "6"
        await reply.raw(event(7))
        await asyncio.Event().wait()

    async with (
        tiny_server(script) as server,
        connect(server) as connection,
        ChangesApi(connection, quick).stream() as stream,
    ):
        items = [await anext(stream) for _ in range(6)]
    assert [type(one) for one in items] == [
        ConnectionRestored,
        Received,
        Received,
        ConnectionLost,
        ConnectionRestored,
        Received,
    ]
    assert items[0] == ConnectionRestored(resumed=False) and items[4] == ConnectionRestored(
        resumed=True
    )
    assert [one.index for one in items if isinstance(one, Received)] == [5, 6, 7]


async def test_a_refused_stream_is_raised(tiny_server: Any, connect: Any) -> None:
    async def script(_: Any, reply: Any) -> None:
        await reply.json({"error": "No.", "code": "NOT_FOUND"}, 404)

    async with (
        tiny_server(script) as server,
        connect(server) as connection,
        ChangesApi(connection).stream(4) as stream,
    ):
        with pytest.raises(NotFoundError):
            await anext(stream)


async def test_a_webhook_is_signed_over_the_bytes_that_are_sent(
    tiny_server: Any, connect: Any
) -> None:
    async def script(_: Any, reply: Any) -> None:
        await reply.json({"accepted": True})

    async with tiny_server(script) as server, Client(connect(server)) as client:
        await client.automations.webhook("t", {"name": "Köln"}, secret="a secret of its own")
        await client.automations.webhook("t", {"name": "Köln"})
    signed, plain = server.seen
    made = hmac.new(b"a secret of its own", signed.body, hashlib.sha256).hexdigest()
    assert signed.headers["x-signature-256"] == f"sha256={made}"
    assert "x-signature-256" not in plain.headers
