"""Keys of providers: whose they are, how they are shown, where they are stored."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.setup import bundle_for_start
from quarterdeck.wire.agents import NO_PROVIDERS
from tests.service.callers import Callers, Client, environment, refused

pytestmark = pytest.mark.one_database

KEY = "sk-1234567890-abcdefgh"
MASKED = "sk-1********efgh"
NOTHING = {"hasCredentials": False}


async def put(client: Client, path: str, key: str = KEY) -> str:
    answer = await client.post(path, json={"api_key": key})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body.keys() == {"success", "credentialId"} and body["success"] is True
    return str(UUID(body["credentialId"]))


async def status(client: Client, path: str) -> dict[str, Any]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("provider", ["provider-g", "provider-a", "0", "a" * 100])
async def test_a_personal_key_is_set_shown_and_removed(callers: Callers, provider: str) -> None:
    path = f"/v1/{provider}/user/credentials"
    assert await status(callers.member, path) == NOTHING
    made = await put(callers.member, path)
    expected = {"hasCredentials": True, "credentialId": made, "apiKey": MASKED}
    assert await status(callers.member, path) == expected
    assert await status(callers.owner, path) == NOTHING
    assert await status(callers.stranger, path) == NOTHING
    assert await status(callers.key, f"/v1/{provider}/credentials") == NOTHING
    answer = await callers.member.delete(path)
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert await status(callers.member, path) == NOTHING
    refused(await callers.member.delete(path), 404, "NOT_FOUND")


async def test_the_organizations_key_is_its_admins_matter(callers: Callers) -> None:
    path = "/v1/provider-g/credentials"
    made = await put(callers.owner, path)
    assert (await status(callers.key, path))["credentialId"] == made
    for method in ("GET", "POST", "DELETE"):
        answer = await callers.member.request(method, path, json={"api_key": KEY})
        refused(answer, 403, "FORBIDDEN")
    assert await status(callers.stranger, path) == NOTHING
    refused(await callers.stranger.delete(path), 404, "NOT_FOUND")
    assert (await callers.key.delete(path)).status_code == 200


async def test_a_personal_key_needs_a_user(callers: Callers) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await callers.key.request(
            method, "/v1/provider-g/user/credentials", json={"api_key": KEY}
        )
        refused(answer, 401, "USER_REQUIRED")


async def test_a_new_key_takes_the_place_of_the_old_one(callers: Callers) -> None:
    path = "/v1/provider-g/user/credentials"
    await asyncio.gather(*(put(callers.member, path, f"{n}{KEY}") for n in range(4)))
    made = await put(callers.member, path, KEY[::-1])
    assert (await status(callers.member, path)) == {
        "hasCredentials": True,
        "credentialId": made,
        "apiKey": "hgfe********1-ks",
    }


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("k", "********"),
        ("12345678", "********"),
        ("123456789", "1234********6789"),
        ("1234567890123456", "1234********3456"),
        ("x" * 65_536, "xxxx********xxxx"),
    ],
)
async def test_how_much_of_a_key_is_shown(callers: Callers, key: str, shown: str) -> None:
    path = "/v1/provider-g/user/credentials"
    await put(callers.member, path, key)
    assert (await status(callers.member, path))["apiKey"] == shown


@pytest.mark.parametrize("key", ["", None, 7, "nul\0nul", "x" * 65_537])
async def test_what_is_no_key(callers: Callers, key: Any) -> None:
    path = "/v1/provider-g/user/credentials"
    answer = await callers.member.post(path, json={"api_key": key})
    refused(answer, 400, "INVALID_REQUEST", "api_key")
    assert "nul" not in answer.text and "xxx" not in answer.text
    refused(await callers.member.post(path, json={}), 400, "INVALID_REQUEST", "api_key")
    assert await status(callers.member, path) == NOTHING


@pytest.mark.parametrize("provider", ["-a", "A", "a_b", "a.b", "a" * 101, "é", "a%0A"])
async def test_what_is_no_provider(callers: Callers, provider: str) -> None:
    for path in (f"/v1/{provider}/user/credentials", f"/v1/{provider}/credentials"):
        refused(await callers.owner.get(path), 400, "INVALID_REQUEST", "provider")


@pytest.mark.parametrize(
    "word", ["user", "organization", "environments", "agents", "health", "automations", "auth"]
)
async def test_first_words_of_other_routes_are_no_providers(callers: Callers, word: str) -> None:
    for path in (f"/v1/{word}/user/credentials", f"/v1/{word}/credentials"):
        answer = await callers.owner.post(path, json={"api_key": KEY})
        assert answer.status_code in (404, 405), answer.text
        assert (await callers.owner.get(path)).status_code in (400, 404)


def test_every_first_word_of_other_routes_is_kept_free(app: FastAPI) -> None:
    paths = [one.path for one in iter_route_contexts(app.state.routes)]
    words = {path.split("/")[2] for path in paths if path and path.startswith("/v1/")}
    assert {word for word in words if not word.startswith("{")} <= NO_PROVIDERS


@pytest.mark.parametrize("family", ["replica", "workspaces"])
async def test_a_replicas_routes_are_not_shadowed(callers: Callers, family: str) -> None:
    refused(await callers.owner.get(f"/v1/{family}/credentials"), 400, "INVALID_REQUEST")
    refused(await callers.owner.get(f"/v1/{family}/{uuid4()}/chats"), 404, "NOT_FOUND")
    answer = await callers.owner.get(f"/v1/{family}/user/credentials")
    assert answer.status_code in (400, 404)


async def test_a_start_takes_the_personal_key_first(
    callers: Callers, context: ServiceContext
) -> None:
    people = callers.people
    of = (await environment(callers.key)).rsplit("/", 1)[-1]

    async def keys(user: str | None) -> dict[str, str]:
        return (await bundle_for_start(context, people.organization, user, of)).credentials

    assert await keys(people.member) == {}
    await put(callers.key, "/v1/provider-g/credentials", "shared-g")
    await put(callers.key, "/v1/provider-a/credentials", "shared-a")
    await put(callers.member, "/v1/provider-g/user/credentials", "mine-g")
    await put(callers.stranger, "/v1/provider-g/user/credentials", "theirs")
    assert await keys(people.member) == {"provider-g": "mine-g", "provider-a": "shared-a"}
    assert await keys(people.owner) == {"provider-g": "shared-g", "provider-a": "shared-a"}
    assert await keys(None) == {"provider-g": "shared-g", "provider-a": "shared-a"}
    await callers.member.delete("/v1/provider-g/user/credentials")
    assert await keys(people.member) == {"provider-g": "shared-g", "provider-a": "shared-a"}


async def test_when_a_key_was_fetched(callers: Callers, context: ServiceContext) -> None:
    people = callers.people
    of = (await environment(callers.key)).rsplit("/", 1)[-1]
    own, shared = "/v1/provider-g/user/credentials", "/v1/provider-g/credentials"
    await put(callers.member, own)
    await put(callers.key, shared)
    await bundle_for_start(context, people.organization, people.member, of)
    assert "lastFetchedAt" in await status(callers.member, own)
    assert "lastFetchedAt" not in await status(callers.key, shared)
    await bundle_for_start(context, people.organization, people.owner, of)
    assert (await status(callers.key, shared))["lastFetchedAt"].endswith("Z")


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
async def test_keys_are_sealed_on_the_disk(callers: Callers, context: ServiceContext) -> None:
    secret = f"s3cret-{uuid4()}"
    await put(callers.member, "/v1/provider-sealed/user/credentials", secret)
    await put(callers.key, "/v1/provider-sealed/credentials", secret)
    file = Path(context.database.url.split("///", 1)[-1])
    stored = b"".join(one.read_bytes() for one in file.parent.glob(f"{file.name}*"))
    assert b"provider-sealed" in stored
    assert secret.encode() not in stored
