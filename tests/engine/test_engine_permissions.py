"""The permission policy of a workspace: at the engine's start, and changed while it runs."""

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.port import AgentDriver
from quarterdeck.agents.presets import Preset
from quarterdeck.wire.permissions import Permissions
from tests.agents.conftest import PRELUDE
from tests.engine.conftest import NoAgents, stop
from tests.engine.test_engine_chats import deltas, new_chat

AGENT = """
    def prompt(message):
        command = message["params"]["prompt"][0]["text"]
        call = {"toolCallId": "t", "kind": "execute", "rawInput": {"command": command}}
        options = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]
        update(sessionUpdate="tool_call", title=command, status="pending", **call)
        send(id=77, method="session/request_permission", params={"toolCall": call, "options": options})
        say(read()["result"]["outcome"].get("optionId", "nothing"))
        answer(message, {"stopReason": "end_turn"})
    serve(prompt)
"""
STATUS = Permissions.model_validate({"rules": [{"action": "allow", "pattern": "git status"}]})


class Scripted(NoAgents):
    """A catalog of one agent, which asks before it runs the command of a message."""

    def __init__(self, root: Path) -> None:
        script = root / "agent.py"
        script.write_text(PRELUDE + textwrap.dedent(AGENT))
        self._driver = AcpDriver(
            Preset(name="Scripted", command=(sys.executable, "-I", str(script)))
        )

    def driver(self, agent_id: str) -> AgentDriver:
        return self._driver


def said(entries: Any, chat: Any) -> list[str]:
    """What happened in the turns: the types of their events, and the agent's words."""
    texts = (
        payload["content"]["text"]
        if payload.get("sessionUpdate") == "agent_message_chunk"
        else kind
        for kind, payload in deltas(entries, chat)
        if payload.get("sessionUpdate") != "tool_call"
    )
    return [text for text in texts if text not in ("user-message", "turn-result")]


@pytest.mark.parametrize("at_start", [True, False])
async def test_the_policy_answers_and_nobody_waits(place, message, at_start: bool) -> None:
    if at_start:
        place.permissions = STATUS
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    if not at_start:
        await link.permissions_set(STATUS)
    await link.chat_send(message(chat, "git status"))
    await entries.wait("chat.turn.completed")
    assert said(entries, chat) == ["policy-answer", "yes"]
    chats = [entry.payload["chat"] for entry in entries.all if entry.type == "chat.updated"]
    assert not any(record["awaitingInput"] for record in chats)


async def test_a_change_reaches_open_questions_at_once(place, message, wait_until) -> None:
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chats = [await new_chat(link) for _ in range(2)]
    for chat, command in zip(chats, ("git status", "git push"), strict=True):
        await link.chat_send(message(chat, command))
        await wait_until(lambda chat=chat: "acp-permission_request" in said(entries, chat))
    await link.permissions_set(STATUS)
    await entries.wait("chat.turn.completed")
    answered = ["acp-permission_request", "acp-permission_outcome", "policy-answer", "yes"]
    assert said(entries, chats[0]) == answered
    assert said(entries, chats[1]) == answered[:1]
    # Taken back, it answers nothing more.
    await link.permissions_set(Permissions())
    await link.chat_send(message(chats[0], "git status"))
    await wait_until(lambda: said(entries, chats[0])[4:] == answered[:1])


async def test_a_new_engine_has_the_policy_of_its_configuration(place, message) -> None:
    task = await place.start(lambda: Scripted(place.root))
    link = await place.link()
    chat = await new_chat(link)
    await link.permissions_set(STATUS)
    await stop(task)
    place.permissions = Permissions.model_validate({"policy": "all"})
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    await link.chat_send(message(chat, "make"))
    await entries.wait("chat.turn.completed")
    assert said(entries, chat) == ["policy-answer", "yes"]
