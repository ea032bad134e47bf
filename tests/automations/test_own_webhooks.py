"""An automation's own webhook, and bursts of its calls."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from quarterdeck.service.automations.dispatch import PAYLOAD_VALUES
from quarterdeck.service.db.tables import automations
from quarterdeck.service.hosts.settings import HostSettings, HostsSettings
from quarterdeck.wire.automations import ChangeAutomation
from tests.automations.conftest import Office

CUSTOM: dict[str, Any] = {"type": "custom", "config": {}}


def nobody_of(office: Office) -> httpx.AsyncClient:
    """A client that shows no key."""
    transport = httpx.ASGITransport(office.app)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


async def call(
    office: Office, token: str, body: Any = b"", headers: dict[str, str] | None = None
) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body)
    async with nobody_of(office) as nobody:
        url = f"/v1/automations/webhook/{token}"
        return await nobody.post(url, content=content, headers=headers)


def signature(secret: str, body: bytes) -> dict[str, str]:
    made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Signature-256": f"sha256={made}"}


async def test_a_call_starts_a_run_with_its_body(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    assert len(made["webhook_token"]) >= 32
    answer = await call(office, made["webhook_token"], {"ref": "main"})
    assert answer.status_code == 202 and answer.json() == {"accepted": True}
    await office.runner.turn()
    [run] = await office.runs(made["id"])
    assert run["trigger_payload"] == {"ref": "main"} and run["trigger_type"] == "custom"
    run = await office.reach(made["id"], run["id"], "completed")
    assert '"ref": "main"' in await office.said(run["workspace_id"])


async def test_what_is_no_json_becomes_raw(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    for body, payload in (
        (b"plain", {"raw": "plain"}),
        (b"", {"raw": ""}),
        (b"\xff\x00", {"raw": "\ufffd\ufffd"}),
        (b"[" * 100_000, {"raw": "[" * 100_000}),
        (b"[" * 200 + b"]" * 200, {"raw": "[" * 200 + "]" * 200}),  # JSON that is too deep
        (b"NaN", {"raw": "NaN"}),
    ):
        assert (await call(office, made["webhook_token"], body)).status_code == 202
        newest = (await office.runs(made["id"]))[0]
        assert newest["trigger_payload"] == payload
        office.clock.pass_by(seconds=1)


async def test_a_body_of_many_values_is_refused_whatever_its_type(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    body, plain = b"[" * (PAYLOAD_VALUES + 1), {"Content-Type": "text/plain"}
    assert (await call(office, made["webhook_token"], body, plain)).status_code == 413
    assert (await call(office, "unknown", body, plain)).status_code == 404
    assert not await office.runs(made["id"])


async def test_nothing_tells_one_unknown_token_from_another(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    await office.change(made["id"], enabled=False)
    answers = [
        await call(office, token)
        for token in (made["webhook_token"], "x", made["id"], "a" * 200, "%2e%2e", "a" * 300)
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1


async def test_a_token_ends_with_its_trigger_and_stays_with_it(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    again = await office.change(made["id"], triggers=[CUSTOM], name="other")
    assert again["webhook_token"] == made["webhook_token"]
    gone = await office.change(made["id"], triggers=[])
    assert gone["webhook_token"] is None
    assert (await call(office, made["webhook_token"])).status_code == 404


async def test_a_body_over_the_limit_is_refused(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    edge = json.dumps("x" * ((256 << 10) - 2)).encode()
    assert (await call(office, made["webhook_token"], edge)).status_code == 202
    for more in (edge + b" ", edge * 3):
        assert (await call(office, made["webhook_token"], more)).status_code == 413

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 10_000

    async with nobody_of(office) as nobody:
        path = f"/v1/automations/webhook/{made['webhook_token']}"
        assert (await nobody.post(path, content=chunks())).status_code == 413
    assert len(await office.runs(made["id"])) == 1


@pytest.mark.long
async def test_a_burst_makes_one_run_of_the_newest_payload(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM], debounce_seconds=60)
    for number in range(20):
        await call(office, made["webhook_token"], {"n": number})
        office.clock.pass_by(seconds=10)
        await office.runner.turn()
    [run] = await office.runs(made["id"])
    assert run["status"] == "pending" and run["trigger_payload"] == {"n": 19}
    office.clock.pass_by(seconds=60)
    await office.runner.turn()
    await office.reach(made["id"], run["id"], "completed")
    await call(office, made["webhook_token"], {"n": 20})
    assert len(await office.runs(made["id"])) == 2


@pytest.mark.long
async def test_what_waits_starts_first_when_the_debounce_is_cleared(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM], debounce_seconds=600)
    await call(office, made["webhook_token"], {"n": 1})
    await office.change(made["id"], debounce_seconds=None, workspace_size="large")
    office.clock.pass_by(seconds=1)
    await call(office, made["webhook_token"], {"n": 2})
    await office.runner.turn()
    runs = {run["trigger_payload"]["n"]: run for run in await office.runs(made["id"])}
    first = await office.reach(made["id"], runs[1]["id"], "completed")
    assert first["config"]["workspace_size"] == "large", "that with which it was begun"


@pytest.mark.long
async def test_a_burst_that_does_not_end_is_let_through(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM], debounce_seconds=60)
    for number in range(70):
        await call(office, made["webhook_token"], {"n": number})
        office.clock.pass_by(seconds=10)
        await office.runner.turn()
    runs = await office.runs(made["id"])
    assert len(runs) == 2
    await office.reach(made["id"], runs[-1]["id"], "completed")


async def test_calls_at_once_make_one_run(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM], debounce_seconds=1)
    answers = await asyncio.gather(
        *(call(office, made["webhook_token"], {"n": n}) for n in range(100))
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len(await office.runs(made["id"])) == 1


async def test_a_run_that_has_not_begun_when_it_is_switched_off_never_begins(
    office: Office,
) -> None:
    made = await office.create(triggers=[CUSTOM], debounce_seconds=60)
    await call(office, made["webhook_token"])
    await office.change(made["id"], name="other")
    [run] = await office.runs(made["id"])
    assert run["status"] == "pending"
    await office.change(made["id"], enabled=False)
    [run] = await office.runs(made["id"])
    assert (run["status"], run["workspace_id"]) == ("failed", None)
    assert run["error"] == "The automation was switched off before the run had begun."
    await office.change(made["id"], enabled=True)
    office.clock.pass_by(seconds=120)
    await office.runner.turn()
    assert [run["status"] for run in await office.runs(made["id"])] == ["failed"]


async def test_without_a_debounce_each_call_is_a_run(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    for _ in range(3):
        await call(office, made["webhook_token"])
    assert len(await office.runs(made["id"])) == 3


async def test_a_run_by_hand_is_not_part_of_a_burst(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM], debounce_seconds=600)
    await call(office, made["webhook_token"], {"n": 1})
    begun = await office.trigger(made["id"], payload={"by": "hand"})
    assert begun["workspace_id"] is not None
    await call(office, made["webhook_token"], {"n": 2})
    runs = {run["trigger_type"]: run for run in await office.runs(made["id"])}
    assert runs["custom"]["trigger_payload"] == {"n": 2}
    assert runs["manual"]["trigger_payload"] == {"by": "hand"}


SECRET = "a secret of its own"


async def test_a_call_of_a_signed_webhook_needs_its_signature(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM], webhook_secret=SECRET)
    assert made["webhook_signed"] and "webhook_secret" not in made
    token, body = made["webhook_token"], b'{"n": 1}'
    good = signature(SECRET, body)
    unknown = await call(office, "x", body)
    refused: list[dict[str, str]] = [
        {},
        {"X-Signature-256": ""},
        {"X-Signature-256": "sha256="},
        {"X-Signature-256": good["X-Signature-256"].removeprefix("sha256=")},
        {"X-Signature-256": good["X-Signature-256"][:-1]},
        {"X-Hub-Signature-256": good["X-Signature-256"]},
        signature("another secret too", body),
        signature(SECRET, body + b" "),
    ]
    for headers in refused:
        answer = await call(office, token, body, headers)
        assert (answer.status_code, answer.text) == (404, unknown.text), headers
    assert await office.runs(made["id"]) == []
    assert (await call(office, token, body, good)).status_code == 202

    changed = await office.change(made["id"], webhook_secret="another secret too")
    assert changed["webhook_signed"]
    assert (await call(office, token, body, good)).status_code == 404
    changed = await office.change(made["id"], name="other")
    assert changed["webhook_signed"]
    changed = await office.change(made["id"], webhook_secret=None)
    assert not changed["webhook_signed"]
    assert (await call(office, token, body)).status_code == 202


async def test_a_secret_is_neither_stored_nor_told_as_it_is(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM], webhook_secret=SECRET)
    await office.trigger(made["id"])
    database = office.world.context.database
    stored = await database.read(lambda c: c.execute(select(automations)).mappings().all())
    assert SECRET not in str(stored)
    for path in (made["id"], f"{made['id']}/executions", ""):
        answer = await office.world.client.get(f"/v1/automations/{path}".rstrip("/"))
        assert answer.status_code == 200 and SECRET not in answer.text
    assert SECRET not in repr(ChangeAutomation(webhook_secret=SECRET))


async def test_a_rotated_token_is_another_and_the_old_one_starts_nothing(office: Office) -> None:
    made = await office.create(triggers=[CUSTOM])
    answer = await office.world.client.post(f"/v1/automations/{made['id']}/webhook/rotate")
    assert answer.status_code == 200, answer.text
    rotated = answer.json()["automation"]
    assert rotated["webhook_token"] not in (None, made["webhook_token"])
    assert (await office.get(made["id"]))["automation"] == rotated
    assert (await call(office, made["webhook_token"])).status_code == 404
    assert (await call(office, rotated["webhook_token"])).status_code == 202


async def test_only_a_webhook_is_rotated(office: Office) -> None:
    made = await office.create()
    client = office.world.client
    assert (await client.post(f"/v1/automations/{made['id']}/webhook/rotate")).status_code == 409
    unknown = f"/v1/automations/{office.world.environment}/webhook/rotate"
    assert (await client.post(unknown)).status_code == 404


@pytest.mark.parametrize(
    ("address", "base", "word"),
    [
        (None, None, None),
        ("unix:/home/qd.sock", None, "unix sockets only"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000", "own address only"),
        ("http://[::1]:8000", "http://[::1]:8000", "own address only"),
        ("http://localhost:8000", "http://localhost:8000", "own address only"),
        ("http://10.0.0.1:8000", "http://10.0.0.1:8000", None),
        ("https://deck.example/", "https://deck.example", None),
    ],
)
async def test_where_a_webhook_is_called_is_told_in_whole(
    office: Office, address: str | None, base: str | None, word: str | None
) -> None:
    office.world.context.address = address
    made = await office.create(triggers=[CUSTOM])
    path = f"/v1/automations/webhook/{made['webhook_token']}"
    assert made["webhook_url"] == (base and f"{base}{path}")
    assert len(made["notices"]) == (word is not None)
    assert word is None or word in made["notices"][0]
    other = await office.create()
    assert (other["webhook_url"], other["notices"]) == (None, [])


async def test_a_host_that_is_not_set_up_is_told(office: Office) -> None:
    opened = {"type": "host-a", "config": {"event": "pull_request.opened"}}
    made = await office.create(triggers=[opened])
    assert len(made["notices"]) == 1 and made["notices"][0].startswith("host-a is not set up")
    office.world.context.hosts = HostsSettings(HostSettings("secret"))
    assert (await office.get(made["id"]))["automation"]["notices"] == []
    office.world.context.address = "unix:/home/qd.sock"
    assert len((await office.get(made["id"]))["automation"]["notices"]) == 1
