"""Repositories, environments, agents."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from quarterdeck.local.home import Home
from quarterdeck.wire.environments import Environment
from tests.service.callers import Callers


async def connect(client: httpx.AsyncClient, url: str, **more: str) -> dict[str, Any]:
    response = await client.post("/v1/replica/repositories", json={"url": url, **more})
    assert response.status_code == 201, response.text
    return response.json()["repository"]


async def create(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/v1/environments", json=body)


async def test_agents_are_listed(client: httpx.AsyncClient) -> None:
    agents = (await client.get("/v1/agents")).json()["agents"]
    assert [agent["id"] for agent in agents] == ["builtin"]


async def test_the_models_of_an_agent_are_listed(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/agents/builtin/models")
    assert answer.json() == {
        "models": [{"id": "one", "displayName": "One"}, {"id": "two", "displayName": "Two"}],
        "defaultModel": "one",
        "announced": False,
    }
    unknown = await client.get("/v1/agents/nobody/models")
    assert unknown.status_code == 404 and unknown.json()["details"] == "agent: nobody"


async def test_a_repository_is_connected_and_listed(client: httpx.AsyncClient) -> None:
    repository = await connect(client, "/srv/project")
    assert repository["name"] == "project"
    assert repository["default_branch"] == "main"
    named = await connect(client, "https://host/x.git", name="other", default_branch="dev")
    listed = (await client.get("/v1/replica/repositories")).json()["repositories"]
    assert listed == [named, repository]


async def test_the_same_repository_is_connected_once(
    client: httpx.AsyncClient, mirrors: Any
) -> None:
    urls = ("/srv/project", "/srv/project/", "/srv//project")
    found = await asyncio.gather(*(connect(client, url) for url in urls))
    assert len({repository["id"] for repository in found}) == 1
    assert mirrors.connected == ["/srv/project"]


@pytest.mark.parametrize("url", ["/srv/nothing", "https://host/broken.git"])
async def test_what_is_no_repository_is_refused(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post("/v1/replica/repositories", json={"url": url})
    assert response.status_code == 400
    assert response.json()["code"] == "INVALID_REQUEST"
    assert response.json()["details"].startswith("url")
    assert (await client.get("/v1/replica/repositories")).json() == {"repositories": []}


NAMES = ["acme/site", "..", ".", ".git", "-rf", "_x", "a b", "", "x" * 101, "a\n", "\u00e9", "a:b"]


@pytest.mark.parametrize("name", NAMES)
async def test_what_cannot_be_a_repositorys_name_is_refused(
    client: httpx.AsyncClient, name: str
) -> None:
    """It is a directory of every replica, a part of addresses, and the same everywhere."""
    body = {"url": "/srv/project", "name": name}
    response = await client.post("/v1/replica/repositories", json=body)
    assert response.status_code == 400
    assert response.json()["details"].startswith("name:")


async def test_a_repositorys_name_is_plain(client: httpx.AsyncClient) -> None:
    for n, name in enumerate(("a", "9.x", "A_b-c.D", "x" * 100)):
        assert (await connect(client, f"/srv/{n}", name=name))["name"] == name


async def test_a_default_branch_that_is_not_there_is_refused(client: httpx.AsyncClient) -> None:
    body = {"url": "/srv/project", "default_branch": "gone"}
    response = await client.post("/v1/replica/repositories", json=body)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
    assert response.json()["details"].startswith("default_branch")
    assert (await client.get("/v1/replica/repositories")).json() == {"repositories": []}


async def test_a_mirror_that_finds_no_room_is_the_services_failure(
    client: httpx.AsyncClient,
) -> None:
    response = await client.post("/v1/replica/repositories", json={"url": "/srv/full"})
    assert response.status_code == 500
    assert response.json()["error"] == "The disk is full."


async def test_the_global_environment_is_there_from_the_start(client: httpx.AsyncClient) -> None:
    one = (await client.get("/v1/environments/global")).json()["environment"]
    assert one["is_global"] is True and one["name"] == "global"
    assert (await client.get(f"/v1/environments/{one['id']}")).json() == {"environment": one}
    assert (await client.get("/v1/environments")).json() == {"environments": [one]}


async def test_an_environment_is_made_and_read(client: httpx.AsyncClient) -> None:
    repository = await connect(client, "/srv/project")
    response = await create(
        client, name="web", repository_id=repository["id"], system_prompt="Be brief."
    )
    assert response.status_code == 201
    made = response.json()["environment"]
    Environment.model_validate(made)
    assert made["repository_id"] == repository["id"]
    assert made["system_prompt"] == "Be brief." and made["is_global"] is False
    assert (await client.get(f"/v1/environments/{made['id']}")).json() == {"environment": made}
    names = [e["name"] for e in (await client.get("/v1/environments")).json()["environments"]]
    assert names == ["global", "web"]


async def test_a_name_is_taken_once(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(create(client, name="web") for _ in range(5)))
    assert sorted(a.status_code for a in answers) == [201, 409, 409, 409, 409]
    taken = await create(client, name="global")
    assert taken.status_code == 409 and taken.json()["code"] == "CONFLICT"


@pytest.mark.parametrize("field", ["repository_id", "repository_set_id", "source_environment_id"])
async def test_a_reference_to_nothing_is_refused(client: httpx.AsyncClient, field: str) -> None:
    response = await create(client, name="web", **{field: str(uuid4())})
    assert response.status_code == 400
    assert response.json()["details"].startswith(field)
    bad = await create(client, name="web", **{field: "no-uuid"})
    assert bad.status_code == 400 and bad.json()["details"].startswith(field)


async def test_a_key_without_a_user_makes_no_personal_environment(callers: Callers) -> None:
    response = await create(callers.key, name="mine", scope="user")
    assert response.status_code == 401 and response.json()["code"] == "USER_REQUIRED"


async def test_environments_are_listed_by_scope(client: httpx.AsyncClient) -> None:
    async def names(scope: str) -> list[str]:
        response = await client.get("/v1/environments", params={"scope": scope})
        return [e["name"] for e in response.json()["environments"]]

    assert await names("org") == ["global"]
    assert await names("user") == []
    assert await names("all") == ["global"]
    bad = await client.get("/v1/environments", params={"scope": "mine"})
    assert bad.status_code == 400 and bad.json()["details"].startswith("scope")


async def test_an_environment_that_is_not_there(client: httpx.AsyncClient) -> None:
    assert (await client.get(f"/v1/environments/{uuid4()}")).status_code == 404
    assert (await client.get("/v1/environments/other")).status_code == 400


async def test_the_installation_is_its_owners(client: httpx.AsyncClient, home: Home) -> None:
    assert home.root.stat().st_mode & 0o066 == 0
    assert home.service.stat().st_mode & 0o777 == 0o700
    assert home.key.stat().st_mode & 0o777 == 0o600
    assert home.key.read_text().startswith("sk_") and len(home.key.read_text()) > 43
