"""Whatever an agent does, its turn ends with a word on what happened and the chat can go on."""

import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.catalog import PresetCatalog
from quarterdeck.agents.port import AgentDriver
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.engine.link import EngineLink
from quarterdeck.wire.engine import Answer, OpenChat
from tests.support.waiting import eventually

AGENT = str(Path(__file__).with_name("bad_agent.py"))
BAD = Preset(name="Bad", command=(sys.executable, "-I", "-S", AGENT), keys=("BAD_KEY",))


class Catalog(PresetCatalog):
    """One bad agent, driven with short timeouts."""

    def driver(self, agent_id: str) -> AgentDriver:
        return AcpDriver(BAD, Timeouts(silence=1.0, cancel=0.5))


@dataclass
class Chat:
    id: UUID
    entries: Any
    link: EngineLink
    message: Callable[..., Any]
    turns: int = 0
    looked: int = 0
    ended: int = 0

    async def send(self, text: str) -> None:
        await self.link.chat_send(self.message(self.id, text))
        self.turns += 1

    async def end(self) -> dict[str, Any]:
        """The result of the newest turn."""
        await eventually(lambda: self._ended() >= self.turns, seconds=60)
        return [one for one in self.events() if one["type"] == "turn-result"][-1]["payload"]

    def _ended(self) -> int:
        """How many turns have ended; looks at what came since it was asked last."""
        new = self.entries.all[self.looked :]
        self.looked += len(new)
        self.ended += sum(entry.type == "chat.turn.completed" for entry in new)
        return self.ended

    async def turn(self, text: str) -> dict[str, Any]:
        await self.send(text)
        return await self.end()

    def events(self) -> list[dict[str, Any]]:
        deltas = [e for e in self.entries.all if e.type == "chat.turn.delta"]
        return [one.payload["event"] for one in deltas]

    def text(self) -> str:
        payloads = [one["payload"] for one in self.events()]
        spoken = [p for p in payloads if p.get("sessionUpdate") == "agent_message_chunk"]
        return "".join(one["content"]["text"] for one in spoken)


@pytest.fixture
def chat(place, message) -> Callable[[], Awaitable[Chat]]:
    async def begin() -> Chat:
        await place.start(lambda: Catalog({"bad": BAD}, os.environ))
        made = Chat(uuid4(), await place.entries(), await place.link(), message)
        await made.link.chat_open(OpenChat(chat_id=made.id, provider="bad"))
        return made

    return begin


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ("hang", "did nothing for 1 seconds, so it was ended"),
        ("die", "Bad ended with exit status 3. Its last lines: out of memory"),
        ("nonsense", "It printed text that is not part of the protocol: no protocol from here on"),
        ("refuse", "The model's rate limit or quota is used up: send the message again later."),
    ],
)
async def test_a_bad_end_is_told_and_the_session_goes_on(chat, behaviour: str, told: str) -> None:
    talk = await chat()
    assert (await talk.turn("first"))["stopReason"] == "end_turn"
    failed = await talk.turn(behaviour)
    assert failed["stopReason"] == "failed"
    assert told in failed["error"]
    after = await talk.turn("last")
    assert (after["stopReason"], after["error"]) == ("end_turn", None)
    assert talk.text() == f"firstfirst {behaviour} last", "it remembers, and history is no news"


async def test_garbage_between_words_is_passed_over(chat) -> None:
    talk = await chat()
    assert (await talk.turn("garbage"))["stopReason"] == "end_turn"
    assert talk.text() == "still here"


async def test_nothing_of_a_flood_is_lost(chat) -> None:
    talk = await chat()
    assert (await talk.turn("flood"))["stopReason"] == "end_turn"
    assert talk.text() == "".join(f"{number}," for number in range(10_000))
    assert (await talk.turn("last"))["stopReason"] == "end_turn"


async def test_a_hanging_agent_is_interrupted(chat) -> None:
    talk = await chat()
    await talk.send("hang")
    await talk.entries.wait("chat.turn.started", 1)
    assert (await talk.link.chat_interrupt(talk.id)).interrupted
    assert (await talk.end())["stopReason"] == "cancelled"
    assert (await talk.turn("last"))["stopReason"] == "end_turn"


async def test_a_permission_for_an_untold_call_is_awaited_and_answered(chat, wait_until) -> None:
    talk = await chat()
    await talk.send("ask")
    asked = await wait_until(
        lambda: next((e for e in talk.events() if e["type"] == "acp-permission_request"), None)
    )
    await wait_until(lambda: _awaited(talk))
    request = asked["payload"]["requestId"]
    await talk.link.chat_respond(Answer(chat_id=talk.id, request_id=request, option_id="yes"))
    assert (await talk.end())["stopReason"] == "end_turn"
    assert '"optionId": "yes"' in talk.text()
    assert not _awaited(talk)


def _awaited(talk: Chat) -> bool:
    records = [e.payload["chat"] for e in talk.entries.all if e.type == "chat.updated"]
    return records[-1]["awaitingInput"]
