"""Terminals through a real server."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.service.streams import TerminalFeed
from tests.fleet.conftest import World
from tests.support.waiting import eventually

SIZE = {"cols": 80, "rows": 24}


async def messages(response: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """(id, data) of each message of a stream."""
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    place = ""
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            place = line[4:]
        if line.startswith("data: "):
            yield place, json.loads(line[6:])


async def new_terminal(client: httpx.AsyncClient, made: str) -> str:
    answer = await client.post(f"/v1/workspaces/{made}/terminal/sessions", json=SIZE)
    assert answer.status_code == 201, answer.text
    return f"/v1/replica/{made}/terminal/sessions/{answer.json()['session']['id']}"


async def type_in(client: httpx.AsyncClient, path: str, data: str, sequence: int = 0) -> None:
    body = {"data": data, "generation": 0, "sequence": sequence}
    assert (await client.post(f"{path}/input", json=body)).json() == {"success": True}


async def test_a_stream_from_replay_to_exit(world: World, served: httpx.AsyncClient) -> None:
    made = await world.create()
    path = await new_terminal(served, made)
    async with served.stream("GET", f"{path}/stream") as response:
        stream = messages(response)
        place, replay = await anext(stream)
        assert replay["type"] == "replay"
        assert base64.b64decode(replay["data"]) == b"ready\r\n"
        assert (place, replay["offset"], replay["reset"]) == ("7", 7, True)
        assert (replay["cols"], replay["rows"]) == (80, 24)
        await type_in(served, path, "ls")
        place, output = await anext(stream)
        assert (place, output) == (
            "9",
            {"type": "output", "data": base64.b64encode(b"ls").decode()},
        )
        await type_in(served, path, "exit\n", 1)
        _, last = await anext(stream)
        assert last == {"type": "exit", "exitCode": 0}
        assert [one async for one in stream] == []


@pytest.mark.long
async def test_a_stream_goes_on_from_an_offset(world: World, served: httpx.AsyncClient) -> None:
    made = await world.create()
    path = await new_terminal(served, made)
    await type_in(served, path, "abcdef")
    for offset, expected in (("7", b"abcdef"), ("10", b"def")):
        headers = {"Last-Event-ID": offset}
        async with served.stream("GET", f"{path}/stream", headers=headers) as response:
            place, output = await anext(messages(response))
            assert (place, output["type"]) == ("13", "output")
            assert base64.b64decode(output["data"]) == expected
    async with served.stream("GET", f"{path}/stream", headers={"Last-Event-ID": "99"}) as response:
        assert (await anext(messages(response)))[1]["type"] == "replay"
    wrong = await served.get(f"{path}/stream", headers={"Last-Event-ID": "x"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.long
async def test_bounds_and_unknown_sessions(world: World, served: httpx.AsyncClient) -> None:
    made = await world.create()
    sessions = f"/v1/replica/{made}/terminal/sessions"
    for cols, rows in ((1, 1), (5000, 5000), (501, 24), (80, 0), ("x", 24)):
        wrong = await served.post(sessions, json={"cols": cols, "rows": rows})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "INVALID_REQUEST")
    path = await new_terminal(served, made)
    body = {"data": "x" * 65_537, "generation": 0, "sequence": 0}
    assert (await served.post(f"{path}/input", json=body)).status_code == 400
    body = {"data": "x", "generation": -1, "sequence": 0}
    assert (await served.post(f"{path}/input", json=body)).status_code == 400
    assert (await served.post(f"{path}/resize", json={"cols": 1, "rows": 1})).status_code == 400
    assert (await served.post(f"{path}/resize", json=SIZE)).json() == {"success": True}
    assert (await served.get(f"{sessions}/{uuid4()}/stream")).status_code == 404
    for _ in range(7):
        await new_terminal(served, made)
    ninth = await served.post(sessions, json=SIZE)
    assert (ninth.status_code, ninth.json()["code"]) == (429, "TERMINAL_LIMIT_REACHED")
    assert len((await served.get(sessions)).json()["sessions"]) == 8
    assert (await served.delete(path)).json() == {"success": True}
    assert (await served.delete(path)).status_code == 404


async def test_an_engine_without_terminals(world: World) -> None:
    made = await world.create()
    world.driver.fault(made, "old")
    for answer in (
        await world.client.get(f"/v1/replica/{made}/terminal/sessions"),
        await world.post(made, "/terminal/sessions", SIZE),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "TERMINAL_UNSUPPORTED")


@pytest.mark.long
async def test_a_stream_ends_with_its_engine(world: World, served: httpx.AsyncClient) -> None:
    made = await world.create()
    path = await new_terminal(served, made)
    async with served.stream("GET", f"{path}/stream") as response:
        stream = messages(response)
        await anext(stream)
        await served.post(f"/v1/workspaces/{made}/sleep")
        assert [one async for one in stream] == []


async def test_pings_between_output(world: World) -> None:
    made = await world.create()
    opened = (await world.post(made, "/terminal/sessions", SIZE)).json()["session"]["id"]
    row = await world.context.database.read(lambda c: find_workspace(c, made))
    assert row is not None
    link: EngineLink = await world.fleet.of(made).open_link(row)
    await link.terminal_stream(opened)
    feed = TerminalFeed(link, ping_seconds=0.01)
    try:
        assert (await anext(feed)).startswith(b"id: 7\ndata: ")
        assert await anext(feed) == b": ping\n\n"
        await world.post(
            made,
            f"/terminal/sessions/{opened}/input",
            {"data": "a", "generation": 0, "sequence": 0},
        )

        async def output() -> bool:
            return (await anext(feed)).startswith(b"id: 8\n")

        await eventually(output)
    finally:
        await feed.aclose()


@pytest.mark.long
async def test_a_stopping_service_ends_streams(world: World, served: httpx.AsyncClient) -> None:
    made = await world.create()
    path = await new_terminal(served, made)
    async with served.stream("GET", f"{path}/stream") as response:
        stream = messages(response)
        await anext(stream)
        world.context.stopping.set()
        async with asyncio.timeout(60):
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
