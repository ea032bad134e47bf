"""Every state against every operation."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from quarterdeck.sandboxes.errors import SandboxError
from tests.conftest import DATABASES
from tests.fleet.conftest import World

pytestmark = (
    pytest.mark.one_database
)  # the rules are the service's, what they rest on is tested on both


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


STATES = ("preparing", "active", "sleeping", "archived", "error")
ID = str(uuid4())

# operation: method, path, body, then (status, code) for each of STATES
ANYWHERE = [(200, None)] * 5
INACTIVE = (409, "WORKSPACE_NOT_ACTIVE")
NOT_ACTIVE = [INACTIVE, None, INACTIVE, INACTIVE, INACTIVE]
OPERATIONS: dict[str, tuple[str, str, Any, list[Any]]] = {
    "read": ("GET", "", None, ANYWHERE),
    "status": ("GET", "/status", None, ANYWHERE),
    "chats": ("GET", "/chats", None, ANYWHERE),
    "queue": ("GET", "/chats/{chat}/queue", None, ANYWHERE),
    "new chat": ("POST", "/chats", {"provider": "builtin"}, [(201, None)] * 5),
    "exec": ("POST", "/exec", {"command": "true"}, NOT_ACTIVE),
    "rename": ("PATCH", "/chats/{chat}", {"display_name": "x"}, NOT_ACTIVE),
    "interrupt": ("POST", "/chats/{chat}/interrupt", None, NOT_ACTIVE),
    "respond": (
        "POST",
        "/chats/{chat}/respond",
        {"requestId": "r", "optionId": "o"},
        [INACTIVE, (409, "CONFLICT"), INACTIVE, INACTIVE, INACTIVE],
    ),
    "terminals": ("GET", "/terminal/sessions", None, NOT_ACTIVE),
    "new terminal": (
        "POST",
        "/terminal/sessions",
        {"cols": 80, "rows": 24},
        [INACTIVE, (201, None), INACTIVE, INACTIVE, INACTIVE],
    ),
    "input": (
        "POST",
        f"/terminal/sessions/{ID}/input",
        {"data": "x", "generation": 0, "sequence": 0},
        [INACTIVE, (404, "NOT_FOUND"), INACTIVE, INACTIVE, INACTIVE],
    ),
    "resize": (
        "POST",
        f"/terminal/sessions/{ID}/resize",
        {"cols": 80, "rows": 24},
        [INACTIVE, (404, "NOT_FOUND"), INACTIVE, INACTIVE, INACTIVE],
    ),
    "close": (
        "DELETE",
        f"/terminal/sessions/{ID}",
        None,
        [INACTIVE, (404, "NOT_FOUND"), INACTIVE, INACTIVE, INACTIVE],
    ),
    "stream": (
        "GET",
        f"/terminal/sessions/{ID}/stream",
        None,
        [INACTIVE, (404, "NOT_FOUND"), INACTIVE, INACTIVE, INACTIVE],
    ),
    "sleep": (
        "POST",
        "/sleep",
        None,
        [INACTIVE, (200, None), (200, None), (200, None), (409, "WORKSPACE_ERROR_STATE")],
    ),
    "archive": (
        "POST",
        "/archive",
        None,
        [INACTIVE, (200, None), (200, None), (200, None), (409, "WORKSPACE_ERROR_STATE")],
    ),
    "wake": ("POST", "/wake", None, [(202, None)] * 5),
    "send": (
        "POST",
        "/messages",
        {"message": "hello"},
        [(200, None)] * 4 + [(409, "WORKSPACE_ERROR_STATE")],
    ),
    "delete": ("DELETE", "", None, ANYWHERE),
}
NEXT = {
    "sleep": {"active": "sleeping"},
    "archive": {"active": "archived", "sleeping": "archived"},
    "wake": {"sleeping": "preparing", "archived": "preparing", "error": "preparing"},
    "send": {"sleeping": "preparing", "archived": "preparing"},
    "delete": dict.fromkeys(STATES, None),
}
"""What changes the state; everything else leaves it alone."""


async def in_state(world: World, state: str) -> str:
    world.driver.gate = asyncio.Event() if state in ("preparing", "error") else None
    if world.driver.gate:
        world.driver.provision_error = SandboxError("It failed.") if state == "error" else None
        made = await world.create(wait=False)
        if state == "error":
            world.driver.gate.set()
            await world.reach(made, "error")
            world.driver.provision_error = None
    else:
        made = await world.create()
    if state in ("sleeping", "archived"):
        await world.post(made, "/sleep" if state == "sleeping" else "/archive")
    # From here on nothing that is woken gets further than preparing.
    world.driver.gate = asyncio.Event()
    return made


async def ask(world: World, made: str, operation: str) -> httpx.Response:
    method, path, body, _ = OPERATIONS[operation]
    if "{chat}" in path:
        path = path.format(chat=(await world.get(made))["chats"][0]["id"])
    return await world.client.request(method, f"/v1/workspaces/{made}{path}", json=body)


@pytest.mark.long
@pytest.mark.parametrize("state", STATES)
async def test_each_operation_in_a_state(world: World, state: str) -> None:
    made = None
    for operation, (method, _, _, expected) in OPERATIONS.items():
        made = made or await in_state(world, state)
        answer = await ask(world, made, operation)
        status, code = expected[STATES.index(state)] or (200, None)
        got = answer.json()
        assert (answer.status_code, got.get("code")) == (status, code), (operation, got)
        after = NEXT.get(operation, {}).get(state, state)
        seen = await world.client.get(f"/v1/replica/{made}")
        assert (seen.json()["replica"]["status"] if after else seen.status_code) == (after or 404)
        # What was only read or refused is as it was: the next operation gets the same.
        if not after or after != state or (method != "GET" and answer.is_success):
            await world.client.delete(f"/v1/replica/{made}")
            made = None


async def test_what_send_says(world: World) -> None:
    for state, status in {"preparing": "waking", "sleeping": "waking", "active": "sent"}.items():
        made = await in_state(world, state)
        assert (await ask(world, made, "send")).json()["status"] == status
        assert (await world.get(made))["waking"] is (state == "sleeping")
        await world.client.delete(f"/v1/replica/{made}")
