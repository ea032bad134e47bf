"""A replica for which no agent is chosen gets the one that the form offers."""

import json
from uuid import UUID

import httpx
import pytest

from quarterdeck.client.client import Client
from quarterdeck.client.connection import HttpConnection
from quarterdeck.store.creation import (
    CreationChoices,
    CreationRequest,
    create,
    repository_options,
    usual_agent,
)
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.repositories import Repository
from tests.store.conftest import NOW

GLOBAL = {
    "id": "00000000-0000-4000-8000-000000000000",
    "name": "global",
    "is_global": True,
    "organization_id": "00000000-0000-4000-8000-000000000002",
}


def agent(id: str, *, available: bool = True) -> Agent:
    return Agent(id=id, name=id.title(), available=available)


@pytest.mark.parametrize(
    ("agents", "usual"),
    [
        ([agent("builtin"), agent("codex"), agent("claude")], "codex"),
        ([agent("codex", available=False), agent("builtin"), agent("claude")], "claude"),
        ([agent("codex", available=False), agent("builtin")], "builtin"),
        ([agent("builtin", available=False)], None),
    ],
)
def test_the_usual_agent_is_the_first_that_can_be_used(
    agents: list[Agent], usual: str | None
) -> None:
    assert usual_agent(agents) == usual


@pytest.mark.parametrize(("chosen", "requested"), [(None, "codex"), ("builtin", "builtin")])
async def test_a_request_without_an_agent_names_the_usual_one(
    chosen: str | None, requested: str
) -> None:
    bodies: list[dict[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        match request.method, request.url.path:
            case "GET", "/v1/agents":
                agents = [agent("builtin"), agent("codex")]
                return httpx.Response(200, json={"agents": [one.model_dump() for one in agents]})
            case "POST", "/v1/replica":
                bodies.append(json.loads(request.content))
                id = "00000000-0000-4000-8000-000000000001"
                record = {"id": id, "name": "one", "status": "preparing", "created_at": NOW}
                return httpx.Response(201, json={"replica": record})
            case _:
                times = {"created_at": NOW, "updated_at": NOW}
                return httpx.Response(200, json={"environment": {**GLOBAL, **times}})

    async with Client(
        HttpConnection("http://test", "key", transport=httpx.MockTransport(answer))
    ) as client:
        await create(client, CreationRequest(agent=chosen), [])
    assert [body["coding_agent"] for body in bodies] == [requested]


def test_repositories_of_one_name_are_told_apart() -> None:
    ids = [UUID(int=number) for number in range(3)]
    places = [("shop", "/srv/shop"), ("library", "/srv/library"), ("shop", "https://host/shop")]
    repositories = [
        Repository(id=id, name=name, url=url, default_branch="main")
        for id, (name, url) in zip(ids, places, strict=True)
    ]
    words = ["shop (/srv/shop)", "library", "shop (https://host/shop)"]
    assert repository_options(repositories) == list(zip(words, map(str, ids), strict=True))


def test_a_web_address_is_that_of_the_repository_which_is_connected() -> None:
    url = "https://host/sea/shop"
    one = Repository(id=UUID(int=1), name="shop", url=f"{url}.git", default_branch="main")
    assert CreationChoices([one], [], []).known_url(url) == one.url
    assert CreationChoices([], [], []).known_url(url) == url
    other = one.model_copy(update={"url": url})
    assert CreationChoices([one, other], [], []).known_url(url) == url
