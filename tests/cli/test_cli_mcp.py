"""`qd mcp`, and `/v1/mcp`: another program's agent commands replicas; a real service and agents.

The client is the SDK's.
"""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from quarterdeck.cli.mcp_tools import ReplicaTools
from quarterdeck.client import Client as QuarterdeckClient
from quarterdeck.client import HttpConnection
from quarterdeck.client.chats import MessagesApi
from quarterdeck.local.home import Home
from quarterdeck.wire.chats import Delivery, SteerAnswer
from tests.cli.conftest import PROGRAM, Deck, Installation, new_installation, serving
from tests.support.git import commit_files
from tests.support.waiting import eventually

AGENT = Path(__file__).parents[1] / "fleet" / "scripted_agent.py"
Connect = Callable[[Deck], AbstractAsyncContextManager[Client]]
TOOLS = {
    *("create_replica", "list_replicas", "get_replica", "send_message"),
    *("read_history", "respond", "get_diff", "wait"),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deck]:
    """A running service with an agent that does as it is told, and a repository."""
    base = tmp_path_factory.mktemp("mcp")
    repository = base / "shop"
    repository.mkdir()
    (repository / "README").write_text("A shop.\n")
    commit_files(repository)
    program = base / "scripted"
    program.write_text(f"#!{sys.executable} -IS\n{AGENT.read_text()}")
    program.chmod(0o755)
    plain = new_installation(base / "home")
    plain.home.mkdir()
    table = f'[agents.scripted]\nname = "Scripted"\ncommand = ["{program}"]\n'
    (plain.home / "config.toml").write_text(table)
    made = Deck(plain.home, plain.environment, (), repository)
    with serving(made):
        try:
            yield made
        finally:
            for record in made.qd("replica", "ls", "--json").json["replicas"]:
                made.qd("replica", "rm", "--yes", record["id"])
            made.qd("stop")


@asynccontextmanager
async def connected(installation: Installation, **variables: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=PROGRAM[0],
        args=[*PROGRAM[1:], "mcp"],
        env=installation.environment | variables,
        cwd=installation.home.parent,
    )
    async with Client(server, read_timeout_seconds=120) as client:
        yield client


@asynccontextmanager
async def connected_by_url(shop: Deck) -> AsyncIterator[Client]:
    key = shop.qd("auth", "key").out.strip()
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
        url = f"{shop.environment['QD_TEST_URL']}/v1/mcp"
        async with Client(streamable_http_client(url, http_client=http)) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the structured answer of a tool that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Return the text of a tool's error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return result.content[0].text


@pytest.mark.parametrize(
    ("connect", "name"),
    [
        (connected, "one"),
        pytest.param(connected_by_url, "two", marks=pytest.mark.long),
    ],
)
async def test_one_agent_commands_another(shop: Deck, connect: Connect, name: str) -> None:
    async with connect(shop) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        assert all(tool.description and tool.output_schema for tool in tools)

        edit = "```sh\necho more >> README\n```"
        made = await call(
            client,
            "create_replica",
            message=edit,
            repository=str(shop.repository),
            name=name,
            agent="builtin",
        )
        assert (made["name"], made["status"]) == (name, "preparing")
        ended = await call(client, "wait", replica=name, timeout_seconds=60)
        assert ended == {"state": "done", "timed_out": False}
        patch = await call(client, "get_diff", replica=name)
        assert "+more" in patch["patch"] and patch["is_complete"]
        assert patch["repository"] == "shop"

        sent = await call(client, "send_message", replica=name, message="ask", agent="scripted")
        asking = await call(
            client, "wait", replica=name, message=sent["message_id"], timeout_seconds=60
        )
        assert asking["state"] == "asking"
        history = await call(client, "read_history", replica=name)
        assert history["chat"] == sent["chat_id"]
        assert "> ask" in history["text"] and "? ask" in history["text"]
        (question,) = history["questions"]
        assert question["options"] == {"yes": "Yes"}
        answered = await call(
            client, "respond", replica=name, option="yes", question=question["question"]
        )
        assert answered == {"result": "Answered."}
        assert (await call(client, "wait", replica=name, timeout_seconds=60))["state"] == "done"

        listed = await call(client, "list_replicas", limit=1)
        assert [each["name"] for each in listed["replicas"]] == [name]
        shown = await call(client, "get_replica", replica=made["id"])
        assert {chat["provider"] for chat in shown["chats"]} == {"builtin", "scripted"}

        chat = sent["chat_id"]
        last = await call(client, "send_message", replica=name, message="wait", chat=chat)
        still = await call(
            client, "wait", replica=name, message=last["message_id"], timeout_seconds=1
        )
        assert still == {"state": "working", "timed_out": True}
        steered = await call(
            client, "send_message", replica=name, message="now this", chat=chat, steer=True
        )
        ended = await call(client, "wait", replica=name, message=steered["message_id"])
        assert ended["state"] == "done"


@pytest.mark.long
async def test_a_message_whose_turn_has_begun_before_it_is_steered_is_no_error(
    shop: Deck, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(shop.home)
    key = shop.qd("auth", "key").out.strip()

    def open_client() -> QuarterdeckClient:
        return QuarterdeckClient(HttpConnection("http://local", key, socket=home.socket))

    steer = MessagesApi.steer

    async def steer_late(
        messages: MessagesApi, replica_id: UUID, chat_id: UUID, message_id: UUID
    ) -> SteerAnswer:
        async def has_begun() -> bool:
            async with open_client() as client:
                await client.chats.interrupt(replica_id, chat_id)
            queue = (await messages.queue(replica_id, chat_id)).queue
            return all(one.id != message_id for one in queue)

        await eventually(has_begun, "the turn of the message")
        return await steer(messages, replica_id, chat_id, message_id)

    monkeypatch.setattr(MessagesApi, "steer", steer_late)
    tools = ReplicaTools(open_client, lambda directory: None)
    await tools.create_replica(name="late", agent="builtin")
    first = await tools.send_message("late", "```sh\nsleep 300\n```")
    chat = str(first.chat_id)

    async def works() -> bool:
        return "[in_progress]" in (await tools.read_history("late", chat=chat)).text

    await eventually(works, "the turn before")
    sent = await tools.send_message("late", "hello", chat=chat, steer=True)
    await tools.wait("late", message=sent.message_id, timeout_seconds=60)
    history = await tools.read_history("late", chat=chat)
    assert sent.status == Delivery.QUEUED
    assert history.text.count("> hello") == 1


@pytest.mark.long
async def test_errors_name_the_next_step(shop: Deck) -> None:
    async with connected(shop) as client:
        unknown = await refusal(client, "get_replica", replica="nobody")
        assert "There is no replica 'nobody'." in unknown and "qd replica ls" in unknown
        assert "name" in await refusal(client, "create_replica", name="a b")
        both = await refusal(client, "create_replica", repository="/x", environment="global")
        assert "Give one of them." in both
        assert "Give one of them." in await refusal(client, "respond", replica="nobody")
        assert "limit" in await refusal(client, "list_replicas", limit=1000)
        await call(client, "create_replica", name="bare")
        assert "has no repository" in await refusal(client, "get_diff", replica="bare")
        taken = await refusal(client, "create_replica", name="bare")
        assert "has this name" in taken
    async with connected(shop, QD_API_KEY="qd_wrong") as client:
        denied = await refusal(client, "list_replicas")
        assert "key" in denied and "Traceback" not in denied


@pytest.mark.long
async def test_a_service_that_starts_later_is_found(installation: Installation) -> None:
    async with connected(installation) as client:
        assert "Start it with: qd serve" in await refusal(client, "list_replicas")
        with serving(installation):
            assert (await call(client, "list_replicas"))["total"] == 0


INSIDE = """
import asyncio, os, sys
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

async def main():
    server = StdioServerParameters(command="qd", args=["mcp"], env=dict(os.environ))
    async with Client(server) as client:
        print(sorted(tool.name for tool in (await client.list_tools()).tools))
        opened = await client.call_tool("open_preview", {"port": 8123})
        print(opened.is_error, opened.structured_content["publicUrl"])
        for name in ("list_replicas", "send_message"):
            print(name, (await client.call_tool(name, {})).is_error)

asyncio.run(main())
"""


@pytest.mark.long
def test_inside_a_replica_it_has_the_rights_of_the_replica(shop: Deck) -> None:
    created = shop.qd("replica", "create", "--name", "within", "--env", "global", "--wait")
    assert created.code == 0, created.err
    script = f"{sys.executable} - <<'END'\n{INSIDE}\nEND"
    done = shop.qd("replica", "exec", "within", "--timeout", "50", "--", script)
    assert done.code == 0, done.err
    tools, opened, listing, sending = done.out.splitlines()
    assert tools == "['close_preview', 'open_preview']"
    assert opened.startswith("False http")
    assert (listing, sending) == ("list_replicas True", "send_message True")


@pytest.mark.long
def test_a_service_loads_the_protocol_with_the_first_request() -> None:
    script = (
        "import sys, quarterdeck.cli.serve, quarterdeck.cli.mcp_http, quarterdeck.service.server\n"
        "print(sorted({'mcp', 'httpx', 'httpx2'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
