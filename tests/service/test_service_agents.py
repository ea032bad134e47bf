"""Which agents there are for whom: keys, logins, and the owner's variables."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import SandboxDriver
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.setup import bundle_for_start
from quarterdeck.service.start import open_service
from quarterdeck.wire.agents import Agent
from tests.service.callers import Callers, Client
from tests.service.conftest import Mirrors

pytestmark = pytest.mark.one_database

REASON = "No key."
AGENTS = [
    Agent(
        id="robot",
        name="Robot",
        available=False,
        reason=REASON,
        installed=True,
        version="1.2.3",
        install="qd agents install robot",
        login_found=True,
        missing_keys=["ROBOT_KEY"],
        logins=[".robot/login.json"],
        own_key="ROBOT_KEY",
    ),
    Agent(id="absent", name="Absent", available=False, reason="Not installed."),
    Agent(id="builtin", name="Built-in", available=True),
]


@pytest.fixture
def own_keys() -> dict[str, str]:
    return {"robot": "key-of-the-service", "other": "another"}


@pytest.fixture
async def context(
    home: Home, mirrors: Mirrors, database_url: str, own_keys: dict[str, str]
) -> AsyncIterator[ServiceContext]:
    driver = cast("SandboxDriver", mirrors)
    async with open_service(
        home, driver, lambda: AGENTS, database_url, own_keys=lambda: own_keys
    ) as opened:
        yield opened


async def robot(client: Client) -> dict[str, Any]:
    answer = await client.get("/v1/agents")
    assert answer.status_code == 200, answer.text
    return next(one for one in answer.json()["agents"] if one["id"] == "robot")


async def state(client: Client) -> tuple[bool, str | None, str | None]:
    found = await robot(client)
    return found["available"], found["auth_method"], found["reason"]


NO_KEY = (False, None, REASON)
KEYED = (True, "api_key", None)


async def test_what_is_told_of_an_agent(callers: Callers) -> None:
    assert await robot(callers.member) == {
        "id": "robot",
        "name": "Robot",
        "available": False,
        "auth_method": None,
        "supports_goal": False,
        "supports_plan": False,
        "supports_steer": False,
        "configured": False,
        "reason": REASON,
        "installed": True,
        "version": "1.2.3",
        "install": "qd agents install robot",
        "login_found": True,
    }


async def test_a_key_of_the_services_environment_is_the_owners(
    callers: Callers, context: ServiceContext
) -> None:
    assert await state(callers.owner) == KEYED
    assert await state(callers.member) == NO_KEY
    assert await state(callers.stranger) == NO_KEY
    people = callers.people
    listed = await callers.owner.get("/v1/environments/global")
    environment = listed.json()["environment"]["id"]
    for user, keys in ((people.owner, {"robot", "other"}), (people.member, set()), (None, set())):
        bundle = await bundle_for_start(context, people.organization, user, environment)
        assert set(bundle.credentials) == keys
    stored = await callers.owner.post("/v1/robot/credentials", json={"api_key": "key-of-all"})
    assert stored.status_code == 200
    bundle = await bundle_for_start(context, people.organization, people.owner, environment)
    assert bundle.credentials == {"robot": "key-of-all", "other": "another"}


async def test_a_personal_key_counts_for_its_user_and_the_organizations_for_all(
    callers: Callers,
) -> None:
    await callers.member.post("/v1/robot/user/credentials", json={"api_key": "key-of-a-member"})
    assert await state(callers.member) == KEYED
    assert await state(callers.stranger) == NO_KEY
    await callers.member.delete("/v1/robot/user/credentials")
    assert await state(callers.member) == NO_KEY
    await callers.owner.post("/v1/robot/credentials", json={"api_key": "key-of-all"})
    assert await state(callers.member) == KEYED
    assert await state(callers.stranger) == NO_KEY


async def test_a_login_that_an_environment_brings_is_as_good(callers: Callers) -> None:
    body = {"name": "login", "path": "~/.robot/login.json", "content": "{}"}
    made = await callers.owner.post("/v1/environments/global/files", json=body)
    assert made.status_code == 201, made.text
    assert await state(callers.member) == (True, "login", None)
    assert await state(callers.stranger) == NO_KEY


async def test_who_has_no_key_for_it_is_refused_with_the_reason(callers: Callers) -> None:
    environment = (await callers.owner.get("/v1/environments/global")).json()["environment"]["id"]
    for agent, sentence in (("robot", REASON), ("absent", "Not installed.")):
        body = {
            "name": "one",
            "prompt": "p",
            "environment_id": environment,
            "agent_provider": agent,
            "triggers": [{"type": "custom", "config": {}}],
            "scope": "user",
        }
        answer = await callers.member.post("/v1/automations", json=body)
        assert answer.status_code == 400, answer.text
        assert sentence in answer.json()["error"]
