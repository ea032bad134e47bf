"""Turns that an agent begins by itself: a real driver, and an agent that the test writes."""

import asyncio
import os
import sys
import textwrap
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.port import AgentDriver
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.engine.turns import RESTARTED
from quarterdeck.wire.engine import Answer
from quarterdeck.wire.git_state import EngineRepository
from tests.agents.conftest import PRELUDE
from tests.engine.conftest import NoAgents, stop
from tests.engine.test_engine_chats import deltas, new_chat, of_chat
from tests.support.git import git

AGENT = """
    def prompt(message):
        text = message["params"]["prompt"][0]["text"]
        say(text)
        answer(message, {"stopReason": "end_turn"})
        if text != "background":
            return
        open(os.environ["BEGIN"]).read()
        update(sessionUpdate="tool_call", toolCallId="t", title="rm", status="pending")
        send(id=77, method="session/request_permission", params={
            "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "yes"}]})
        reply = read()
        update(sessionUpdate="tool_call_update", toolCallId="t", status="completed")
        say("answered" if reply.get("id") == 77 else "overtaken")
    serve(prompt)
"""


class Scripted(NoAgents):
    """A catalog of one agent, which continues when something is written to `BEGIN`."""

    def __init__(self, root: Path) -> None:
        script = root / "agent.py"
        script.write_text(PRELUDE + textwrap.dedent(AGENT))
        command = (sys.executable, "-I", str(script))
        self._driver = AcpDriver(Preset(name="Scripted", command=command), Timeouts(rest=0.3))

    def driver(self, agent_id: str) -> AgentDriver:
        return self._driver


@pytest.fixture
def shop(place) -> Path:
    """A repository of the workspace."""
    path = place.root / "workspace" / "shop"
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    git(path, "config", "user.name", "Someone")
    git(path, "config", "user.email", "someone@example.invalid")
    place.repositories.append(
        EngineRepository(id=uuid4(), name="shop", path=str(path), default_branch="main")
    )
    return path


@pytest.fixture
async def begun(place, message, shop) -> Any:
    """An engine whose agent has begun to work by itself and asks: its task, journal, link, chat."""
    fifo = place.root / "begin"
    os.mkfifo(fifo)
    place.environment |= {"BEGIN": str(fifo), "PATH": os.environ["PATH"]}
    task = await place.start(lambda: Scripted(place.root))
    entries = await place.entries()
    link = await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "background"))
    ended = await entries.wait("chat.turn.completed")
    assert ended.payload["processing"] is False
    await asyncio.to_thread(fifo.write_text, "now")
    await entries.wait("chat.turn.started", 2)
    return task, entries, link, chat


async def test_work_after_a_turn_is_a_turn_of_its_own(begun, message, wait_until) -> None:
    _, entries, link, chat = begun
    started = await entries.wait("chat.turn.started", 2)
    first = await entries.wait("chat.turn.started")
    own = started.payload["messageId"]
    assert started.payload["origin"] == "agent" and own != first.payload["messageId"]
    assert "origin" not in first.payload
    (request,) = await wait_until(
        lambda: [p for kind, p in deltas(entries, chat) if kind == "acp-permission_request"]
    )
    states = [e.payload["chat"] for e in of_chat(entries, chat) if e.type == "chat.updated"]
    assert states[-1]["awaitingInput"] and states[-1]["processing"]
    assert states[-1]["lastMessageText"] == "background"
    waiting = await link.chat_send(message(chat, "next"))
    assert (waiting.queued, waiting.position) == (True, 1)
    await link.chat_respond(
        Answer(chat_id=chat, request_id=request["requestId"], option_id="yes", text=None)
    )
    await entries.wait("chat.turn.completed", 3)
    mine = [e for e in of_chat(entries, chat) if e.payload.get("messageId") == own]
    assert {e.type for e in mine} == {
        "chat.turn.accepted", "chat.turn.started", "chat.turn.delta", "chat.turn.completed",
    }  # fmt: skip
    kinds = [e.payload["event"]["type"] for e in mine if e.type == "chat.turn.delta"]
    assert (kinds[0], kinds[-1]) == ("turn-started", "turn-result")
    text = [p["content"]["text"] for _, p in deltas(entries, chat) if "content" in p]
    assert text == ["background", "answered", "next"]
    assert [p["stopReason"] for kind, p in deltas(entries, chat) if kind == "turn-result"] == [
        "end_turn"
    ] * 3


async def test_it_has_a_checkpoint_of_the_files(begun, shop, wait_until) -> None:
    _, entries, link, chat = begun
    own = (await entries.wait("chat.turn.started", 2)).payload["messageId"]
    await wait_until(
        lambda: [1 for kind, _ in deltas(entries, chat) if kind == "acp-permission_request"]
    )
    await link.chat_interrupt(chat)
    titles = git(shop, "for-each-ref", "--format=%(refname:lstrip=-1) %(contents:subject)")
    assert f"{own} A turn that the agent began" in titles.splitlines()


async def test_an_interrupt_ends_a_turn_of_the_agents_own(begun) -> None:
    _, entries, link, chat = begun
    assert (await link.chat_interrupt(chat)).interrupted
    ended = await entries.wait("chat.turn.completed", 2)
    assert ended.payload["isComplete"] is False and ended.payload["processing"] is False
    await link.chat_interrupt(chat)
    assert entries.types().count("chat.turn.started") == 2


async def test_a_turn_of_its_own_is_kept_when_the_engine_ends(begun, place) -> None:
    task, entries, _, chat = begun
    await entries.wait("chat.turn.delta", 5)
    await stop(task)
    again = await place.start(lambda: Scripted(place.root))
    later = await place.entries()
    await later.wait("chat.turn.completed", 2)
    kinds = deltas(later, chat)
    assert "acp-permission_request" in [kind for kind, _ in kinds]
    assert kinds[-1][0] == "turn-result" and kinds[-1][1]["stopReason"] == "failed"
    assert kinds[-1][1]["stopped"] is True
    assert not again.done()


async def test_a_turn_of_its_own_that_was_cut_off_is_closed_by_the_next_engine(
    begun, place
) -> None:
    task, entries, _, chat = begun
    await entries.wait("chat.turn.delta", 5)
    await stop(task)
    lines = place.journal.read_bytes().splitlines(keepends=True)
    results = [n for n, line in enumerate(lines) if b'"turn-result"' in line]
    place.journal.write_bytes(b"".join(lines[: results[1]]))  # as if it had been killed
    await place.start(lambda: Scripted(place.root))
    later = await place.entries()
    ended = await later.wait("chat.turn.completed", 2)
    assert ended.payload["isComplete"] is False
    kinds = [kind for kind, _ in deltas(later, chat)]
    assert (kinds.count("turn-started"), kinds.count("user-message")) == (1, 1)
    assert deltas(later, chat)[-1][1]["error"] == RESTARTED
