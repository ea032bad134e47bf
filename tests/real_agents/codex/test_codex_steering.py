"""Messages that codex takes in a running turn."""

import asyncio

import pytest

from quarterdeck.agents.port import AgentError, StopReason
from quarterdeck.wire.chats import Base64Source, Image
from tests.real_agents.codex.place import Place
from tests.real_agents.codex.test_codex_turns import prompt

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_a_message_changes_the_course_of_the_running_turn(place: Place) -> None:
    session = await place.open()
    turn = asyncio.create_task(session.prompt(prompt("say begun\nwait gate\nsay never")))
    await place.model.waits("gate")
    await place.heard.until(lambda event: "begun" in str(event.payload))
    taken: list[str] = []
    image = Image(source=Base64Source(type="base64", media_type="image/png", data=PIXEL))
    await session.steer(
        prompt("say steered", images=[image]), lambda: taken.append(place.heard.text())
    )
    assert taken == ["begun"]  # called before anything that follows is heard
    place.model.release("gate")
    assert (await turn).stop_reason == StopReason.END_TURN
    assert place.heard.text().endswith("steered")
    last = str(place.model.requests[-1].body["input"])
    assert "say begun" in last and "say steered" in last and PIXEL in last


@pytest.mark.long
async def test_what_the_running_turn_cannot_take_is_refused(place: Place) -> None:
    session = await place.open()
    with pytest.raises(AgentError, match="just beginning or ending"):
        await session.steer(prompt("say x"), lambda: None)
    turn = asyncio.create_task(session.prompt(prompt("say begun\nwait gate")))
    await place.model.waits("gate")
    with pytest.raises(AgentError, match="/compact needs a turn of its own"):
        await session.steer(prompt("/compact"), lambda: None)
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED


@pytest.mark.long
async def test_a_turn_that_codex_does_not_steer_refuses_in_its_words(place: Place) -> None:
    session = await place.open()
    await session.prompt(prompt("say something"))
    turn = asyncio.create_task(session.prompt(prompt("/review say begun\nwait gate")))
    await place.model.waits("gate")
    taken: list[bool] = []
    with pytest.raises(AgentError, match="Codex did not take the message: "):
        await session.steer(prompt("say x"), lambda: taken.append(True))
    assert taken == []
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
