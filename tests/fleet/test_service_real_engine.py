"""The whole way with real sandboxes and the real engine."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.conftest import DATABASES
from tests.support.git import git
from tests.support.waiting import WAIT_SECONDS, eventually


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


AGENTS = [Agent(id="builtin", name="Built-in", available=True)]


@pytest.fixture
def repository(home: Home) -> Path:
    directory = home.root / "source" / "deck"
    directory.mkdir(parents=True)
    home.root.chmod(0o755)
    git(directory, "init", "-q", "-b", "main")
    (directory / "README").write_text("hello\n")
    git(directory, "add", "README")
    git(directory, "commit", "-q", "-m", "first")
    return directory


@pytest.fixture
async def client(home: Home, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    ready = asyncio.Event()
    async with open_service(home, ProcessDriver(home), lambda: AGENTS, database_url) as context:
        running = asyncio.create_task(
            serve(build_service(context), [UnixListener(home.socket)], lambda _: ready.set())
        )
        await ready.wait()
        key = home.key.read_text().strip()
        async with httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(home.socket)),
            base_url="http://test",
            headers={"Authorization": f"Bearer {key}"},
            timeout=WAIT_SECONDS * 2,
        ) as opened:
            try:
                yield opened
            finally:
                page = (await opened.get("/v1/replica?limit=100")).json()
                for replica in page["replicas"]:
                    await opened.delete(f"/v1/replica/{replica['id']}")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def create(client: httpx.AsyncClient, repository: Path, message: str) -> str:
    answer = await client.post("/v1/replica/repositories", json={"url": str(repository)})
    body = {"name": "e", "repository_id": answer.json()["repository"]["id"]}
    environment = (await client.post("/v1/environments", json=body)).json()["environment"]["id"]
    body = {"name": "r", "environment_id": environment, "message": message}
    answer = await client.post("/v1/replica", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["replica"]["id"]


async def turns(client: httpx.AsyncClient, made: str, count: int) -> list[dict]:
    async def ended() -> bool:
        replica = (await client.get(f"/v1/replica/{made}")).json()["replica"]
        assert replica["status"] != "error", replica["error"]
        events = (await client.get(f"/v1/replica/{made}/history")).json()["events"]
        return len([one for one in events if one["type"] == "turn-result"]) >= count

    await eventually(ended, f"{count} turns")
    return (await client.get(f"/v1/replica/{made}/history")).json()["events"]


async def test_the_main_job(client: httpx.AsyncClient, repository: Path, require_tool) -> None:
    require_tool("git")
    made = await create(client, repository, "```sh\ncat README && echo x >> README\n```")
    events = await turns(client, made, 1)
    assert events[-1]["payload"]["stopReason"] == "end_turn"

    async def counted() -> bool:
        replica = (await client.get(f"/v1/replica/{made}")).json()["replica"]
        (status,) = replica["repository_statuses"]
        return status["branch"] == "qd/r" and status["git_diff"]["added"] == 1

    await eventually(counted, "the change count")
    assert (repository / "README").read_text() == "hello\n"
    done = await client.post(f"/v1/replica/{made}/exec", json={"command": "cat deck/README"})
    assert done.json()["output"] == "hello\nx\n"
    long = f"cat deck/README # {'x' * 1_000_000}"  # more than one argument holds
    done = await client.post(f"/v1/replica/{made}/exec", json={"command": long})
    assert done.json()["output"] == "hello\nx\n"

    await client.post(f"/v1/workspaces/{made}/sleep")
    sent = await client.post(f"/v1/replica/{made}/messages", json={"message": "```sh\npwd\n```"})
    assert sent.json()["status"] == "waking"
    await turns(client, made, 2)


@pytest.mark.long
@pytest.mark.parametrize("how", ["sleep", "archive"])
async def test_a_command_that_is_cut_off_by_rest_is_told_so(
    client: httpx.AsyncClient, repository: Path, how: str
) -> None:
    made = await create(client, repository, "```sh\ntrue\n```")
    await turns(client, made, 1)
    path = f"/v1/replica/{made}/exec"
    running = asyncio.create_task(client.post(path, json={"command": "touch begun; sleep 50"}))

    async def begun() -> bool:
        answer = await client.post(path, json={"command": "test -e begun"})
        return answer.json()["exit_code"] == 0

    await eventually(begun, "the command")
    assert (await client.post(f"/v1/workspaces/{made}/{how}")).status_code == 200
    answer = await running
    assert (answer.status_code, answer.json()["code"]) == (409, "WORKSPACE_NOT_ACTIVE")


@pytest.mark.long
async def test_a_real_terminal(client: httpx.AsyncClient, repository: Path) -> None:
    made = await create(client, repository, "```sh\ntrue\n```")
    await turns(client, made, 1)
    base = f"/v1/workspaces/{made}/terminal/sessions"
    opened = await client.post(base, json={"cols": 100, "rows": 30})
    path = f"{base}/{opened.json()['session']['id']}"
    body = {"data": "stty size; exit\n", "generation": 0, "sequence": 0}
    seen = b""
    async with client.stream("GET", f"{path}/stream") as response:
        await client.post(f"{path}/input", json=body)
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line[6:])
            if event["type"] == "exit":
                break
            seen += base64.b64decode(event.get("data", ""))
    assert b"30 100" in seen
    assert event["exitCode"] == 0
