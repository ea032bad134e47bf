"""The hosts' webhooks: who may call, what is answered, and that nothing runs twice."""

import base64
import hashlib
import hmac
import json

import pytest
from sqlalchemy import func, select

from quarterdeck.service.db.tables import webhook_receipts
from quarterdeck.service.hosts.settings import NO_HOSTS
from tests.automations.conftest import Office
from tests.automations.host_payloads import issue_comment, merge_request, pull_request
from tests.automations.hosting import (
    HOSTS,
    OPENED,
    SECRET_B,
    URL_B,
    A,
    B,
    Hosting,
    signed,
    trigger,
)

BODY = json.dumps(pull_request()).encode()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def hosting(office: Office) -> Hosting:
    made = Hosting(office)
    await made.connect()
    return made


async def receipts(hosting: Hosting) -> int:
    statement = select(func.count()).select_from(webhook_receipts)
    database = hosting.office.world.context.database
    return await database.read(lambda c: c.execute(statement).scalar_one())


async def test_an_authentic_event_begins_a_run_with_the_whole_payload(hosting: Hosting) -> None:
    made = await hosting.office.create(triggers=[OPENED])
    answer = await hosting.host_a(pull_request())
    assert (answer.status_code, answer.json()) == (202, {"accepted": True})
    await hosting.office.runner.turn()
    [run] = await hosting.office.runs(made["id"])
    assert (run["trigger_type"], run["trigger_event"]) == ("host-a", "pull_request.opened")
    assert run["trigger_payload"] == pull_request()
    run = await hosting.office.reach(made["id"], run["id"], "completed")
    world = hosting.office.world
    assert (await world.get(run["workspace_id"]))["source"] == "automation"
    [said] = [
        one["event"]["payload"]["text"]
        for one in await world.events(run["workspace_id"], "chat.turn.delta")
        if one["event"]["type"] == "user-message"
    ]
    assert "## Pull Request" in said and '"fetch_ref": "refs/pull/7/head"' in said


@pytest.mark.one_database
async def test_events_that_start_nothing_are_taken(hosting: Hosting) -> None:
    made = await hosting.office.create(triggers=[OPENED])
    for event, payload in (
        ("ping", {"zen": "Design for failure.", "hook_id": 1}),
        ("push", {"ref": "refs/heads/main"}),
        ("pull_request", pull_request("labeled")),
        ("pull_request", {"action": "opened"}),
        ("pull_request", ["of", "no", "shape"]),
        ("issue_comment", issue_comment("thanks")),
        ("", {"without": "a name"}),
    ):
        answer = await hosting.host_a(payload, event)
        assert (answer.status_code, answer.json()) == (202, {"accepted": True}), event
    assert (await hosting.host_b({"object_kind": "push"}, "Push Hook")).status_code == 202
    assert await hosting.begun(made) == 0


FORGED: list[dict[str, str]] = [
    {},
    {"X-Hub-Signature-256": ""},
    {"X-Hub-Signature-256": "sha256="},
    {"X-Hub-Signature-256": "sha256=\xff\xfe"},
    {"X-Hub-Signature-256": signed(BODY)["X-Hub-Signature-256"].removeprefix("sha256=")},
    {"X-Hub-Signature": signed(BODY)["X-Hub-Signature-256"]},
    signed(BODY, secret="another"),
    signed(BODY + b" "),
    signed(BODY, secret=""),
]


@pytest.mark.long
@pytest.mark.one_database
@pytest.mark.parametrize("headers", FORGED, ids=range(len(FORGED)))
async def test_a_forged_call_is_refused(hosting: Hosting, headers: dict[str, str]) -> None:
    made = await hosting.office.create(triggers=[OPENED])
    sent = {"X-GitHub-Event": "pull_request"} | headers
    raw = {name.encode(): value.encode("latin-1") for name, value in sent.items()}
    answer = await hosting.client.post(A, content=BODY, headers={**raw, b"Authorization": b""})
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
    assert await hosting.begun(made) == 0 and await receipts(hosting) == 0


@pytest.mark.one_database
async def test_without_a_secret_everybody_is_refused_in_the_same_words(hosting: Hosting) -> None:
    forged = await hosting.call(A, BODY, signed(BODY, secret="another"))
    hosting.office.world.context.hosts = NO_HOSTS
    for path, headers in (
        (A, signed(BODY)),
        (A, signed(BODY, secret="")),
        (A, {}),
        (B, {"X-Gitlab-Token": ""}),
        (B, {"X-Gitlab-Token": SECRET_B}),
        (B, {"X-Gitlab-Token": "None"}),
    ):
        answer = await hosting.call(path, BODY, headers)
        assert (answer.status_code, answer.json()) == (401, forged.json())


async def test_a_replayed_call_runs_nothing(hosting: Hosting) -> None:
    made = await hosting.office.create(triggers=[OPENED])
    headers = signed(BODY)
    assert (await hosting.call(A, BODY, headers)).status_code == 202
    for again in (headers, signed(BODY)):
        answer = await hosting.call(A, BODY, again)
        assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert await hosting.begun(made) == 1


async def test_receipts_are_kept_for_a_week(hosting: Hosting) -> None:
    assert (await hosting.call(A, BODY, signed(BODY))).status_code == 202
    office = hosting.office
    office.clock.pass_by(days=7)
    await office.runner.turn()
    assert (await hosting.call(A, BODY, signed(BODY))).status_code == 409
    office.clock.pass_by(minutes=61)
    await office.runner.turn()
    assert await receipts(hosting) == 0


@pytest.mark.one_database
async def test_a_run_that_cannot_be_stored_leaves_no_receipt(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await hosting.office.create(triggers=[OPENED])

    def fails(*_: object) -> str:
        raise RuntimeError("the machine stops here")

    monkeypatch.setattr("quarterdeck.service.automations.dispatch.take_event", fails)
    assert (await hosting.call(A, BODY, signed(BODY))).status_code == 500
    monkeypatch.undo()
    assert await receipts(hosting) == 0
    assert (await hosting.call(A, BODY, signed(BODY))).status_code == 202
    assert await hosting.begun(made) == 1


@pytest.mark.one_database
async def test_bodies_that_cannot_be_taken(hosting: Hosting) -> None:
    large = json.dumps({**pull_request(), "more": "x" * (256 << 10)}).encode()
    assert (await hosting.call(A, large, signed(large))).status_code == 413
    assert (await hosting.call(A, large, {})).status_code == 413
    for body in (b"", b"payload=%7B%7D", b"{", b"\xff", b"[" * 100_000, b"[" * 950 + b"]" * 950):
        answer = await hosting.call(A, body, signed(body))
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        assert (await hosting.call(A, body, {})).status_code == 401
    odd = json.dumps(pull_request(title="\ud800", body="\0\ud800")).encode()
    assert (await hosting.call(A, odd, signed(odd))).status_code == 202


@pytest.mark.long
@pytest.mark.one_database
async def test_what_no_text_can_hold_reaches_the_prompt_escaped(hosting: Hosting) -> None:
    made = await hosting.office.create(triggers=[OPENED])
    assert (await hosting.host_a(pull_request(body="half \ud83d and \0"))).status_code == 202
    await hosting.office.runner.turn()
    [run] = await hosting.office.runs(made["id"])
    run = await hosting.office.reach(made["id"], run["id"], "completed")
    assert run["error"] is None


def standard(body: bytes, key: bytes, moment: int, id: str = "msg_1") -> dict[str, str]:
    made = hmac.new(key, f"{id}.{moment}.".encode() + body, hashlib.sha256).digest()
    return {
        "X-Gitlab-Event": "Merge Request Hook",
        "webhook-id": id,
        "webhook-timestamp": str(moment),
        "webhook-signature": f"v1,{base64.b64encode(made).decode()}",
    }


async def test_host_b_shows_the_secret(hosting: Hosting) -> None:
    await hosting.connect(URL_B)
    made = await hosting.office.create(triggers=[trigger("merge_request.opened")])
    body = json.dumps(merge_request()).encode()
    event = {"X-Gitlab-Event": "Merge Request Hook"}
    for token in ("", "t0ken", SECRET_B + " x", SECRET_B.upper()):
        answer = await hosting.call(B, body, {**event, "X-Gitlab-Token": token})
        assert answer.status_code == 401
    assert (await hosting.call(B, body, {**event, "X-Gitlab-Token": SECRET_B})).status_code == 202
    assert (await hosting.call(B, body, {**event, "X-Gitlab-Token": SECRET_B})).status_code == 409
    [run] = await hosting.office.runs(made["id"])
    assert (run["trigger_type"], run["trigger_event"]) == ("host-b", "merge_request.opened")


@pytest.mark.one_database
async def test_host_b_signs(hosting: Hosting) -> None:
    key = b"k" * 32
    secret = f"whsec_{base64.b64encode(key).decode()}"
    hosts = hosting.office.world.context
    hosts.hosts = type(HOSTS)(HOSTS.host_a, type(HOSTS.host_b)(secret))
    now = int(hosting.office.clock().timestamp())
    body = json.dumps(merge_request()).encode()
    good = standard(body, key, now)
    refused = [
        standard(body, b"x" * 32, now),
        standard(body + b" ", key, now),
        standard(body, key, now - 301),
        standard(body, key, now + 301),
        {**good, "webhook-id": "msg_2"},
        {**good, "webhook-timestamp": str(now + 1)},
        {**good, "webhook-timestamp": "9" * 5000},
        {**good, "webhook-signature": ""},
        {**good, "webhook-signature": good["webhook-signature"][3:]},
        {**good, "webhook-signature": "v1,AAAA", "X-Gitlab-Token": secret},
    ]
    for headers in refused:
        assert (await hosting.call(B, body, headers)).status_code == 401
    several = {**good, "webhook-signature": f"v1,AAAA v1a,BBBB {good['webhook-signature']}"}
    assert (await hosting.call(B, body, several)).status_code == 202


@pytest.mark.one_database
async def test_a_signed_webhook_is_taken_once_by_its_id(hosting: Hosting) -> None:
    key = b"k" * 32
    context = hosting.office.world.context
    secret = f"whsec_{base64.b64encode(key).decode()}"
    context.hosts = type(HOSTS)(HOSTS.host_a, type(HOSTS.host_b)(secret))
    await hosting.connect(URL_B)
    made = await hosting.office.create(triggers=[trigger("merge_request.opened")])
    now = int(hosting.office.clock().timestamp())

    async def taken(body: bytes, id: str) -> int:
        return (await hosting.call(B, body, standard(body, key, now, id))).status_code

    first, second = (json.dumps(merge_request(title=title)).encode() for title in ("1", "2"))
    assert await taken(first, "msg_1") == 202
    assert await taken(second, "msg_1") == 409, "the same webhook, whatever its body"
    assert await taken(first, "msg_1") == 409
    assert await taken(first, "msg_2") == 202, "another webhook that says the same"
    assert await taken(first, "") == 401
    assert await hosting.begun(made) == 2


@pytest.mark.long
@pytest.mark.one_database
async def test_a_burst_is_one_run(hosting: Hosting) -> None:
    made = await hosting.office.create(
        triggers=[trigger("pull_request.synchronize")], debounce_seconds=30
    )
    for count in range(200):
        answer = await hosting.host_a(pull_request("synchronize", title=f"Push {count}"))
        assert answer.status_code == 202
    [run] = await hosting.office.runs(made["id"])
    assert run["status"] == "pending"
    hosting.office.clock.pass_by(seconds=31)
    await hosting.office.runner.turn()
    run = await hosting.office.reach(made["id"], run["id"], "completed")
    assert run["trigger_payload"]["pull_request"]["title"] == "Push 199"
    assert await hosting.begun(made) == 1
