"""How many records an owner may store, and that what is above a quota stays usable."""

from collections.abc import Callable
from typing import Any

import pytest

from quarterdeck.service import quotas
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.hooks import HookTestRequest, make_workspace
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.service import Caller, CallerKind
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.setup import HookKind
from tests.service.callers import Callers, Client, environment, made, refused

AUTOMATION = {"name": "nightly", "prompt": "Run the tests."}


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "OWNED_MOST", 3)


async def fill(
    client: Client, at: str, more: Callable[[int], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Store records until one is refused by the quota."""
    stored: list[dict[str, Any]] = []
    for number in range(4):
        answer = await client.post(at, json=more(number))
        if answer.status_code != 201:
            refused(answer, 429, "QUOTA_REACHED")
            return stored
        stored.append(answer.json())
    raise AssertionError("nothing was refused")


async def test_environments(callers: Callers) -> None:
    at = "/v1/environments"
    # The global one counts.
    assert len(await fill(callers.key, at, lambda n: {"name": f"shared {n}"})) == 2
    assert len(await fill(callers.owner, at, lambda n: {"name": f"own {n}", "scope": "user"})) == 3
    stored = await fill(callers.member, at, lambda n: {"name": f"own {n}", "scope": "user"})
    assert len(stored) == 3
    one = f"{at}/{stored[0]['environment']['id']}"
    assert (await callers.member.patch(one, json={"name": "renamed"})).status_code == 200
    assert (await callers.member.delete(one)).is_success
    await made(callers.member, at, name="again", scope="user")


async def test_automations(callers: Callers) -> None:
    place = await environment(callers.key)
    body = {**AUTOMATION, "environment_id": place.rsplit("/", 1)[1]}
    at = "/v1/automations"
    shared = await fill(callers.key, at, lambda _: {**body, "scope": "org"})
    assert len(shared) == 3
    assert len(await fill(callers.owner, at, lambda _: {**body, "scope": "user"})) == 3
    one = f"{at}/{shared[0]['automation']['id']}"
    assert (await callers.key.patch(one, json={"name": "renamed"})).status_code == 200
    assert (await callers.key.delete(one)).is_success
    await made(callers.key, at, **body, scope="org")


async def test_keys(callers: Callers) -> None:
    at = "/v1/organization/api-keys"
    # The organization's key that the tests use counts, and the installation's is the owner's.
    listed = (await callers.key.get(at)).json()["total"]
    stored = await fill(callers.key, at, lambda n: {"name": f"key {n}"})
    assert len(stored) == 3 - listed
    one = f"{at}/{stored[0]['api_key']['id']}"
    assert (await callers.key.delete(one)).is_success
    answer = await callers.key.post(at, json={"name": "again"})
    assert answer.status_code == 201, answer.text


async def test_keys_of_providers(callers: Callers) -> None:
    for client, at in ((callers.member, "user/credentials"), (callers.key, "credentials")):
        paths = [f"/v1/provider-{n}/{at}" for n in range(4)]
        for path in paths[:3]:
            assert (await client.post(path, json={"api_key": "secret"})).status_code == 200
        refused(await client.post(paths[3], json={"api_key": "s"}), 429, "QUOTA_REACHED")
        # One that is replaced needs no room.
        assert (await client.post(paths[0], json={"api_key": "other"})).status_code == 200
        assert (await client.delete(paths[0])).is_success
        assert (await client.post(paths[3], json={"api_key": "secret"})).status_code == 200


async def test_warm_pools(callers: Callers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "POOLS_MOST", 1)
    paths = [f"{await environment(callers.member, name, scope='user')}/warm-pools" for name in "ab"]
    on, off = {"enabled": True}, {"enabled": False}
    for _ in range(2):  # one that is on may be switched on again
        assert (await callers.member.put(paths[0], json=on)).status_code == 200
    refused(await callers.member.put(paths[1], json=on), 429, "QUOTA_REACHED")
    shared = f"{await environment(callers.key)}/warm-pools"
    assert (await callers.key.put(shared, json=on)).status_code == 200
    assert (await callers.member.put(paths[0], json=off)).status_code == 200
    assert (await callers.member.put(paths[1], json=on)).status_code == 200


async def test_tests_of_hooks(
    callers: Callers, context: ServiceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "HOOK_TESTS_MOST", 2)
    of = (await environment(callers.key)).rsplit("/", 1)[1]
    caller = Caller(callers.people.organization, callers.people.member, CallerKind.PERSONAL_KEY)
    request = HookTestRequest(caller, of, HookKind.START, "true")
    for _ in range(2):
        await make_workspace(context, request)
    with pytest.raises(ApiError, match="being tested") as raised:
        await make_workspace(context, request)
    assert raised.value.code is ErrorCode.WORKSPACE_LIMIT_REACHED
    # Tests of another service, which may be gone, do not count; others have room of their own.
    monkeypatch.setattr(context, "home_id", "another")
    await make_workspace(context, request)
    monkeypatch.undo()
    of = (await environment(callers.stranger)).rsplit("/", 1)[1]
    caller = Caller(callers.people.other, callers.people.stranger, CallerKind.PERSONAL_KEY)
    await make_workspace(context, HookTestRequest(caller, of, HookKind.START, "true"))


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "variables": lambda n: {"key": f"KEY_{n}", "value": "x"},
    "skills": lambda n: {"name": "s", "slug": f"s{n}", "source": f"https://x.example/{n}"},
    "mcps": lambda n: {"name": f"m{n}", "transport": "stdio", "config": {"command": "true"}},
}


@pytest.mark.parametrize("kind", PARTS)
async def test_parts_of_an_environment(callers: Callers, kind: str) -> None:
    at, more = f"{await environment(callers.key)}/{kind}", PARTS[kind]
    stored = await fill(callers.key, at, more)
    assert len(stored) == 3
    (first,) = stored[0].values()
    assert (await callers.key.delete(f"{at}/{first['id']}")).is_success
    assert (await callers.key.post(at, json=more(4))).status_code == 201


async def test_what_is_above_a_quota_is_read_changed_and_removed(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = f"{await environment(callers.key)}/variables"
    stored = [await made(callers.key, at, key=f"KEY_{n}", value="x") for n in range(3)]
    monkeypatch.setattr(quotas, "OWNED_MOST", 1)
    assert "KEY_2" in (await callers.key.get(at)).text
    one = f"{at}/{stored[0]['id']}"
    assert (await callers.key.patch(one, json={"value": "y"})).status_code == 200
    assert (await callers.key.delete(one)).is_success
    refused(await callers.key.post(at, json={"key": "NEW", "value": "x"}), 429, "QUOTA_REACHED")
