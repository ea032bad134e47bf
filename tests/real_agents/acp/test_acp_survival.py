"""Real agents that are killed go on with their sessions, and nothing is told twice."""

import asyncio
import json
import os
import signal

import pytest

from quarterdeck.agents.port import AgentDiedError, Prompt, StopReason
from tests.real_agents.acp.place import Place

pytestmark = pytest.mark.asyncio(loop_scope="module")


def said(text: str) -> Prompt:
    return Prompt("m", text)


async def test_a_killed_agent_goes_on_where_it_was(place: Place) -> None:
    session = await place.open()
    await session.prompt(said("remember the word walnut\nsay first"))
    turn = asyncio.create_task(session.prompt(said("say second\nwait long\nsay third")))
    await place.model.waits("long")
    assert session.process_id
    os.kill(session.process_id, signal.SIGKILL)
    with pytest.raises(AgentDiedError, match="was killed by signal 9"):
        await turn
    place.model.release("long")
    before, known = len(place.model.requests), session.id
    place.heard.events.clear()
    assert (await session.prompt(said("say fourth"))).stop_reason == StopReason.END_TURN
    assert session.id == known
    assert place.heard.text() == "fourth", "history is no news"
    assert "walnut" in json.dumps([one.body for one in place.model.requests[before:]])


async def test_a_session_is_reopened_by_its_id(place: Place) -> None:
    first = await place.open()
    await first.prompt(said("remember the word hazelnut\nsay first"))
    await first.close()
    place.heard.events.clear()
    before = len(place.model.requests)
    second = await place.open(session_id=first.id)
    assert second.id == first.id
    assert (await second.prompt(said("say second"))).stop_reason == StopReason.END_TURN
    assert place.heard.text() == "second"
    assert "hazelnut" in json.dumps([one.body for one in place.model.requests[before:]])
