"""Webhooks and notifications, received on the loopback."""

import asyncio
import contextlib
import hashlib
import hmac
import json
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.first_start import owner_of
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.rows import only_organization
from quarterdeck.service.identity.service import Caller, CallerKind
from quarterdeck.service.notifications import notifier
from quarterdeck.service.notifications.notifier import Notice
from quarterdeck.service.notifications.rows import due_deliveries, find_target
from quarterdeck.service.notifications.sender import (
    InflightTasks,
    NotificationService,
    SenderSettings,
    signature,
    webhook_secret,
)
from quarterdeck.service.notifications.targets import connect
from quarterdeck.service.replicas.rows import change_workspace
from quarterdeck.wire.base import utc_now
from tests.fleet.conftest import World
from tests.service.people import bearing, key_of
from tests.support.waiting import WAIT_SECONDS, eventually

# However busy the machine, one that answers does it within the limit of PATIENT.
PATIENT = SenderSettings(limit=60.0, tries=(0.0, 0.02, 0.07))
QUICK = replace(PATIENT, limit=1.5)
FAR = "9999"


@dataclass
class Receiver:
    """Takes calls; `answers` are the first ones, as a status, or None for none at all."""

    port: int = 0
    answers: list[int | None] = field(default_factory=list[int | None])
    calls: list[tuple[dict[str, str], bytes]] = field(
        default_factory=list[tuple[dict[str, str], bytes]]
    )
    paths: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=hush"

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.calls]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.calls.append((headers, body))
                self.paths.append(head[0])
                answer = self.answers.pop(0) if self.answers else 204
                if answer is None:
                    await asyncio.Event().wait()
                more = f"Location: http://127.0.0.1:{self.port}/elsewhere\r\n"
                writer.write(f"HTTP/1.1 {answer} x\r\n{more}Content-Length: 0\r\n\r\n".encode())
                await writer.drain()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(asyncio.CancelledError):  # the end of the test
            await made.serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def sending(world: World, settings: SenderSettings | None = None) -> NotificationService:
    """A sender of the service with other limits."""
    made = NotificationService(world.context, settings)
    world.context.event_log.observe(made.hear)
    return made


@pytest.fixture
async def outward(
    world: World, request: pytest.FixtureRequest
) -> AsyncIterator[NotificationService]:
    made = sending(world, getattr(request, "param", PATIENT))
    made.start()
    yield made
    await made.close()


async def waiting(world: World) -> list[Any]:
    return await world.context.database.read(
        lambda c: due_deliveries(c, world.context.home_id, FAR, 100)
    )


async def taken(receiver: Receiver, *types: str) -> list[dict[str, Any]]:
    """Waits for calls of these types, and no others."""

    async def there() -> bool:
        return sorted({one["id"]: one["type"] for one in receiver.told}.values()) == sorted(types)

    await eventually(there, f"{types}, not {[one['type'] for one in receiver.told]}")
    return receiver.told


async def test_the_life_of_a_replica_is_told(
    world: World, outward: NotificationService, receiver: Receiver
) -> None:
    made = await world.create(webhook_url=receiver.url, message="hello")
    await taken(receiver, "replica.ready", "replica.turn_completed")
    replica = await world.get(made)
    await world.client.delete(f"/v1/replica/{made}")
    told = await taken(receiver, "replica.ready", "replica.turn_completed", "replica.deleted")
    by_type = {one["type"]: one for one in told}
    for one in told:
        assert set(one) == {"id", "type", "created_at", "replica", "data"}
        assert one["replica"]["id"] == made
        assert set(one["replica"]) <= set(replica)
        assert one["created_at"].endswith("Z")
    done = by_type["replica.turn_completed"]["data"]
    assert done["chat_id"] == replica["chats"][0]["id"]
    assert done["is_complete"] is True
    assert by_type["replica.ready"]["replica"]["status"] == "active"
    assert by_type["replica.ready"]["data"] == {}
    secret = (await world.client.get("/v1/organization/webhook-secret")).json()["secret"]
    for headers, body in receiver.calls:
        mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        assert headers["x-service-signature"] == f"sha256={mac}"
        assert headers["content-type"] == "application/json"
    await eventually(lambda: _empty(world))


async def _empty(world: World) -> bool:
    return not await waiting(world)


async def test_a_failure_is_told(
    world: World, outward: NotificationService, receiver: Receiver
) -> None:
    world.driver.provision_error = SandboxError("It failed.")
    await world.create(wait=False, webhook_url=receiver.url)
    (told,) = await taken(receiver, "replica.error")
    assert told["data"] == {"error": "It failed."}
    assert told["replica"]["status"] == "error"


async def test_without_an_address_nothing_is_stored(world: World) -> None:
    made = await world.create(message="hello")
    await world.client.delete(f"/v1/replica/{made}")
    assert await waiting(world) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("outward", "bad"),
    [(PATIENT, [500, 404]), (PATIENT, [302, 307]), (QUICK, [None, 503])],
    indirect=["outward"],
)
async def test_three_tries_with_the_same_id(
    world: World, outward: NotificationService, receiver: Receiver, bad: list[int | None]
) -> None:
    receiver.answers = list(bad)
    await world.create(webhook_url=receiver.url)

    async def tried() -> bool:
        return len(receiver.calls) >= 3 and await _empty(world)

    await eventually(tried)
    assert len({body for _, body in receiver.calls}) == 1
    assert all("/hook?token=hush" in path for path in receiver.paths)


@pytest.mark.long
async def test_after_three_tries_it_is_given_up(
    world: World, outward: NotificationService, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    receiver.answers = [500] * 3
    await world.create(webhook_url=receiver.url)
    await eventually(lambda: _empty(world))
    assert len(receiver.calls) == 3
    assert "hush" not in caplog.text


async def test_nobody_listens(world: World, outward: NotificationService) -> None:
    await world.create(webhook_url="http://127.0.0.1:1/")
    await eventually(lambda: _empty(world))


@pytest.mark.long
async def test_one_that_hangs_holds_nobody_up(
    world: World, outward: NotificationService, receiver: Receiver
) -> None:
    receiver.answers = [None]
    await world.create(webhook_url=receiver.url)
    await eventually(lambda: _called(receiver, 1))
    await world.create(webhook_url=receiver.url)
    first = receiver.told[0]["id"]

    async def another() -> bool:
        return any(one["id"] != first for one in receiver.told)

    await eventually(another)
    # However slow the machine: the first was not given up before.
    assert sum(one["id"] == first for one in receiver.told) < len(QUICK.tries)


async def _called(receiver: Receiver, times: int) -> bool:
    return len(receiver.calls) >= times


@pytest.mark.long
async def test_what_is_stored_is_sent_by_the_next_service(world: World, receiver: Receiver) -> None:
    await world.create(webhook_url=receiver.url)
    (stored,) = await waiting(world)
    await world.stop()
    await world.start()
    outward = sending(world, PATIENT)
    outward.start()
    (told,) = await taken(receiver, "replica.ready")
    assert told["id"] == stored.id
    await eventually(lambda: _empty(world))
    await outward.close()


@pytest.mark.long
async def test_an_engine_cannot_make_a_state_up(
    world: World, outward: NotificationService, receiver: Receiver
) -> None:
    made = await world.create(webhook_url=receiver.url)
    await taken(receiver, "replica.ready")
    await eventually(lambda: _empty(world))
    forged = NewEvent("engine.status.changed", {"workspaceStatus": "error", "error": "no"})
    await world.context.event_log.append(made, [forged])
    assert await waiting(world) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "example.org",
        "http://",
        "http:///path",
        "http://host:99999/",
        "http://exa mple.org/",
        "http://[::1/",
        "http://169.254.169.254/latest",
        "http://0.0.0.0/",
        "javascript:alert(1)",
        "",
        "https://example.org/" + "x" * 2000,
    ],
)
async def test_addresses_that_are_refused(world: World, url: str) -> None:
    body = {"name": "x", "environment_id": world.environment, "webhook_url": url}
    answer = await world.client.post("/v1/replica", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "INVALID_REQUEST"
    assert "webhook_url" in answer.json()["details"]


async def test_secrets_differ_by_organization(world: World) -> None:
    one, other = [await webhook_secret(world.context, name) for name in "ab"]
    assert one != other and one.startswith("whsec_")
    assert signature(one, b"{}") != signature(other, b"{}")


@pytest.mark.long
async def test_a_secret_is_rotated(
    world: World, outward: NotificationService, receiver: Receiver
) -> None:
    path = "/v1/organization/webhook-secret"
    seen = [(await world.client.get(path)).json()["secret"]]
    for _ in range(2):
        answer = await world.client.post(f"{path}/rotate")
        assert answer.status_code == 200
        seen.append(answer.json()["secret"])
        assert (await world.client.get(path)).json() == {"secret": seen[-1]}
    assert len(set(seen)) == 3
    await world.create(webhook_url=receiver.url)
    await taken(receiver, "replica.ready")
    headers, body = receiver.calls[0]
    assert headers["x-service-signature"] == signature(seen[-1], body)


@pytest.mark.parametrize("soonest", ["x", "2026-11-20", "9999"])
async def test_a_damaged_moment_is_not_waited_for(soonest: str) -> None:
    """It is later than every moment as text, and the calls with others go on."""
    await InflightTasks("call", asyncio.Event()).wait(utc_now(), soonest, 0.001)


def test_tries_are_made_at_0_10_and_60_seconds() -> None:
    assert SenderSettings().tries == (0.0, 10.0, 60.0)


@pytest.mark.long
async def test_a_later_try_comes_at_its_time(world: World, receiver: Receiver) -> None:
    """Counted from the first try, whatever that took."""
    outward = sending(world)
    receiver.answers = [500] * 3
    await world.create(webhook_url=receiver.url)
    now = utc_now()
    world.context.clock = lambda: now
    outward.start()
    for calls, due in ((1, 10), (2, 60)):
        await eventually(lambda calls=calls: _called(receiver, calls))

        async def put_off(due: int = due) -> bool:
            (stored,) = await waiting(world)
            return stored.next_at == moment_text(now + timedelta(seconds=due))

        await eventually(put_off)
        world.context.clock = lambda due=due: now + timedelta(seconds=due)
        world.context.webhooks_stored.set()
    await eventually(lambda: _empty(world))
    await outward.close()
    assert len(receiver.calls) == 3


# The connection (docs/interface.md 11)


@pytest.mark.long
async def test_the_connection_as_it_is_told(
    world: World, outward: NotificationService, receiver: Receiver
) -> None:
    path = "/v1/chatapp/user/connection"
    assert (await world.client.get(path)).json() == {
        "connected": False, "service": None, "created_at": None,
    }  # fmt: skip
    body = {"url": f"json://127.0.0.1:{receiver.port}/secret-path"}
    made = await world.client.post(path, json=body)
    assert made.status_code == 201
    told = made.json()
    assert (told["connected"], told["service"]) == (True, "json") and told["created_at"]
    assert (await world.client.get(path)).json() == told
    receiver.answers = [200, 500]
    for delivered in (True, False):
        tried = await world.client.post(f"{path}/test")
        assert (tried.status_code, tried.json()) == (200, {"delivered": delivered})
    assert (await world.client.delete(path)).json() == {"success": True}
    assert (await world.client.post(f"{path}/test")).status_code == 409


# Notifications


@pytest.fixture
async def caller(world: World) -> Caller:
    answer = await world.client.get("/v1/organizations")
    owner = await owner_of(world.context.database)
    return Caller(answer.json()["organizations"][0]["id"], owner, CallerKind.PERSONAL_KEY)


async def notified(receiver: Receiver, title: str) -> dict[str, Any]:
    async def there() -> list[dict[str, Any]]:
        return [one for one in receiver.told if one.get("title") == title]

    found = await eventually(there, f"{title}, not {receiver.told}")
    assert len(found) == 1
    return found[0]


async def test_people_are_told(
    world: World, outward: NotificationService, receiver: Receiver, caller: Caller
) -> None:
    await connect(world.context, caller, f"json://127.0.0.1:{receiver.port}/secret-path")
    made = await world.create(message="say it")
    name = (await world.get(made))["name"]
    assert (await notified(receiver, f"{name}: done"))["message"]
    asks = {"id": (await world.get(made))["chats"][0]["id"], "awaitingInput": True}
    for _ in range(2):
        await world.context.event_log.append(made, [NewEvent("chat.updated", {"chat": asks})])
    await notified(receiver, f"{name}: waits for you")
    world.driver.provision_error = SandboxError("It failed.")
    failed = await world.create(wait=False)
    name = (await world.get(failed))["name"]
    assert (await notified(receiver, f"{name}: failed"))["message"] == "It failed."


async def test_a_replica_whose_turns_end_without_pause_leaves_the_others_their_notifications(
    world: World,
    outward: NotificationService,
    receiver: Receiver,
    caller: Caller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notifier, "PAUSE", 3600.0)
    await connect(world.context, caller, f"json://127.0.0.1:{receiver.port}/")
    noisy, other = await world.create(), await world.create()
    name, other_name = [(await world.get(id))["name"] for id in (noisy, other)]
    ended = NewEvent("chat.turn.completed", {"isComplete": True})
    await world.context.event_log.append(noisy, [ended])
    await notified(receiver, f"{name}: done")
    await world.context.event_log.append(noisy, [ended] * (notifier.WAITING + 1))
    await world.context.event_log.append(other, [ended])
    await notified(receiver, f"{other_name}: done")
    assert len(receiver.told) == 2
    # What came meanwhile is one notification.
    assert outward.notifier._waiting[noisy] == {ended.type: ended.payload}


async def test_one_organization_leaves_the_others_half_of_the_notifications_at_once(
    world: World, outward: NotificationService, caller: Caller
) -> None:
    go_on, begun = threading.Event(), list[str]()

    def send(url: str, notice: Notice, private: bool, proxy: bool) -> bool:
        begun.append(notice.title)
        return notice.title == "other" or go_on.wait(WAIT_SECONDS)

    await connect(world.context, caller, "json://127.0.0.1:1/")
    user = caller.user_id or ""
    target = await world.context.database.read(
        lambda c: find_target(c, caller.organization_id, user)
    )
    assert target is not None
    outward.notifier._send = send
    slow = [
        asyncio.create_task(outward.notifier.try_target("slow", target, Notice("slow", "")))
        for _ in range(2 * notifier.THREADS)
    ]
    await eventually(lambda: len(begun) == notifier.SHARE)
    assert await outward.notifier.try_target("other", target, Notice("other", ""))
    go_on.set()
    assert all(await asyncio.gather(*slow))


async def test_a_chat_that_is_deleted_no_longer_waits_for_an_answer(
    world: World, outward: NotificationService
) -> None:
    made = await world.create()
    asks = NewEvent("chat.updated", {"chat": {"id": "1", "awaitingInput": True}})
    await world.context.event_log.append(made, [asks])
    assert outward.notifier._asking[made] == {"1"}
    await world.context.event_log.append(made, [NewEvent("chat.deleted", {"chatId": "1"})])
    assert made not in outward.notifier._asking


@pytest.mark.long
async def test_only_those_whose_replica_it_is_are_told(
    world: World, outward: NotificationService, receiver: Receiver, caller: Caller
) -> None:
    await connect(world.context, caller, f"json://127.0.0.1:{receiver.port}/")
    other = await world.create()
    await world.context.database.write(
        lambda c: change_workspace(c, other, user_id="99999999-2222-4333-8444-555555555555")
    )
    own_headers = world.client.headers
    world.client.headers = httpx.Headers(
        bearing(await key_of(world.context, caller.organization_id))
    )
    sent = await world.send(other, "hello")
    await world.done(other, sent["message_id"])
    world.client.headers = own_headers
    own = await world.create(message="hello")
    await notified(receiver, f"{(await world.get(own))['name']}: done")
    assert len(receiver.told) == 1


async def test_a_target_that_refuses_is_logged_without_its_address(
    world: World,
    outward: NotificationService,
    receiver: Receiver,
    caller: Caller,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    receiver.answers = [500] * 20
    await connect(world.context, caller, f"json://127.0.0.1:{receiver.port}/secret-path")
    await world.create(message="hello")

    async def logged() -> bool:
        return "A notification to json was not accepted" in caplog.text

    await eventually(logged)
    assert "secret-path" not in caplog.text


async def test_the_address_is_sealed(world: World, caller: Caller) -> None:
    await connect(world.context, caller, "json://127.0.0.1:9/secret-path")
    stored = await world.context.database.read(
        lambda c: c.execute(text("SELECT url_sealed FROM notification_targets")).scalar()
    )
    assert stored.startswith("v1:") and "secret" not in stored


async def test_an_organization_key_has_no_connection(world: World) -> None:
    organization = await world.context.database.read(only_organization)
    assert organization is not None
    key = await key_of(world.context, organization)
    world.client.headers = httpx.Headers(bearing(key))
    calls: list[Callable[[], Any]] = [
        lambda: world.client.get("/v1/chatapp/user/connection"),
        lambda: world.client.delete("/v1/chatapp/user/connection"),
        lambda: world.client.post("/v1/chatapp/user/connection", json={"url": "json://x"}),
        lambda: world.client.post("/v1/chatapp/user/connection/test"),
    ]
    for call in calls:
        answer: httpx.Response = await call()
        assert (answer.status_code, answer.json()["code"]) == (401, "USER_REQUIRED")
