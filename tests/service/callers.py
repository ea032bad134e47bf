"""A client for every kind of person, and short ways to ask."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI

from quarterdeck.service.context import ServiceContext
from tests.service.people import People, bearing, key_of, settle

Client = httpx.AsyncClient


@dataclass(frozen=True)
class Callers:
    """`key` is the organization's; `owner` an admin, `member` none; `stranger` of another one."""

    people: People
    key: Client
    owner: Client
    member: Client
    stranger: Client


@asynccontextmanager
async def calling(app: FastAPI, context: ServiceContext) -> AsyncIterator[Callers]:
    people = await settle(context)
    async with AsyncExitStack() as stack:

        async def client(organization: str, user: str | None = None) -> Client:
            headers = bearing(await key_of(context, organization, user))
            transport = httpx.ASGITransport(app)
            made = Client(transport=transport, base_url="http://test", headers=headers)
            return await stack.enter_async_context(made)

        yield Callers(
            people,
            await client(people.organization),
            await client(people.organization, people.owner),
            await client(people.organization, people.member),
            await client(people.other, people.stranger),
        )


def refused(answer: httpx.Response, status: int, code: str, details: str | None = None) -> None:
    """The answer is this refusal, with the Error object."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["code"] == code and body["error"]
    if details is not None:
        assert details in body["details"], body


async def made(client: Client, at: str, /, **body: Any) -> dict[str, Any]:
    """The record that a POST makes."""
    answer = await client.post(at, json=body)
    assert answer.status_code == 201, answer.text
    (record,) = answer.json().values()
    return record


async def environment(client: Client, name: str = "web", **body: Any) -> str:
    """The path of a new environment."""
    record = await made(client, "/v1/environments", name=name, **body)
    return f"/v1/environments/{record['id']}"


async def repository(client: Client, name: str = "shop") -> str:
    """The id of a new repository."""
    return (await made(client, "/v1/replica/repositories", url=f"/srv/{name}"))["id"]
