"""What an agent does after the end of a turn is a turn of its own."""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from quarterdeck.agents.port import AgentDiedError, Prompt, SessionSpec, StopReason
from quarterdeck.agents.presets import Quirks
from quarterdeck.agents.session.recorder import Timeouts

HELLO = Prompt("m1", "hello")
OWN = Prompt("m2", "", own_turn=True)
SHORT = Timeouts(rest=0.5)
NEVER = Timeouts(rest=1000)

BACKGROUND = """
    def prompt(message):
        text = message["params"]["prompt"][0]["text"]
        say(text + ".")
        answer(message, {"stopReason": "end_turn"})
        if text != "hello":
            return
        open("begin").read()
        update(sessionUpdate="tool_call", toolCallId="t", title="rm", status="pending")
        send(id=77, method="session/request_permission", params={
            "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "yes"}]})
        reply = read()
        update(sessionUpdate="tool_call_update", toolCallId="t", status="completed")
        say("answered." if reply.get("id") == 77 else f"overtaken by {reply['method']}.")
    serve(prompt)
"""

WORKING = """
    def prompt(message):
        answer(message, {"stopReason": "end_turn"})
        open("begin").read()
        update(sessionUpdate="tool_call", toolCallId="t", title="long", status="in_progress")
    serve(prompt, session_cancel=lambda message: REACTION)
"""


@dataclass
class OwnTurns:
    """Counts the calls for a turn of the agent's own, and lets the agent begin."""

    spec: SessionSpec
    calls: int = 0
    called: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.fifo = Path(self.spec.working_directory, "begin")
        os.mkfifo(self.fifo)
        self.spec = replace(self.spec, on_own_turn=self._call)

    def _call(self) -> None:
        self.calls += 1
        self.called.set()

    async def begin(self) -> None:
        await asyncio.to_thread(self.fifo.write_text, "now")
        async with asyncio.timeout(60):
            await self.called.wait()


@pytest.fixture
def own(spec: SessionSpec) -> OwnTurns:
    return OwnTurns(spec)


async def test_work_after_a_turn_is_requested_and_its_question_answered(
    scripted, heard, own: OwnTurns
) -> None:
    session = await scripted(BACKGROUND, own.spec, SHORT)
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert not session.own_turn_waits
    await own.begin()
    assert session.own_turn_waits
    turn = asyncio.create_task(session.prompt(OWN))
    asked = await heard.until(lambda event: event.type == "acp-permission_request")
    done, _ = await asyncio.wait({turn}, timeout=1.0)  # twice the time to rest
    assert not done
    await session.respond(asked.payload["requestId"], "yes", None)
    assert (await turn).stop_reason == StopReason.END_TURN
    assert heard.text() == "hello.answered."
    assert (own.calls, session.own_turn_waits) == (1, False)
    assert (await session.prompt(Prompt("m3", "next"))).stop_reason == StopReason.END_TURN
    assert heard.text() == "hello.answered.next."


async def test_a_message_waits_for_the_end_of_what_the_agent_does(
    scripted, heard, own: OwnTurns
) -> None:
    session = await scripted(BACKGROUND, own.spec, SHORT)
    await session.prompt(HELLO)
    await own.begin()
    turn = asyncio.create_task(session.prompt(Prompt("m3", "next")))
    asked = await heard.until(lambda event: event.type == "acp-permission_request")
    await session.respond(asked.payload["requestId"], "yes", None)
    assert (await turn).stop_reason == StopReason.END_TURN
    assert heard.text() == "hello.answered.next."


@pytest.mark.parametrize(
    ("reaction", "text"), [("say('stopped')", "stopped"), ("None", "")], ids=["obeys", "ignores"]
)
async def test_a_turn_of_its_own_is_interrupted(
    scripted, heard, own: OwnTurns, reaction: str, text: str
) -> None:
    session = await scripted(WORKING.replace("REACTION", reaction), own.spec, NEVER)
    await session.prompt(HELLO)
    await own.begin()
    turn = asyncio.create_task(session.prompt(OWN))
    await heard.until(lambda event: event.payload.get("sessionUpdate") == "tool_call")
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    assert heard.text() == text


async def test_the_end_of_the_agent_in_a_turn_of_its_own_is_reported(
    scripted, heard, own: OwnTurns
) -> None:
    session = await scripted(WORKING.replace("REACTION", "None"), own.spec, NEVER)
    await session.prompt(HELLO)
    await own.begin()
    turn = asyncio.create_task(session.prompt(OWN))
    await heard.until(lambda event: event.payload.get("sessionUpdate") == "tool_call")
    os.kill(session.process_id, signal.SIGKILL)
    with pytest.raises(AgentDiedError, match="killed by signal 9"):
        await turn
    assert not session.own_turn_waits


async def test_an_agent_that_reports_the_end_is_not_waited_for(scripted, heard, own) -> None:
    session = await scripted(
        """
        def prompt(message):
            answer(message, {"stopReason": "end_turn"})
            open("begin").read()
            say("more")
            update(sessionUpdate="usage_update", used=1, size=2, _meta={"the/end": {}})
        serve(prompt)
        """,
        own.spec,
        NEVER,
        traps=Quirks(own_turn_end="the/end"),
    )
    await session.prompt(HELLO)
    await own.begin()
    async with asyncio.timeout(60):
        assert (await session.prompt(OWN)).stop_reason == StopReason.END_TURN
    assert heard.text() == "more"


async def test_a_turn_lasts_while_a_helper_asks(scripted, heard, own: OwnTurns) -> None:
    session = await scripted(
        """
        def prompt(message):
            send(id=77, method="session/request_permission", params={
                "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "yes"}]})
            answer(message, {"stopReason": "end_turn"})
            read()
            say("helped")
        serve(prompt)
        """,
        own.spec,
        SHORT,
    )
    turn = asyncio.create_task(session.prompt(HELLO))
    asked = await heard.until(lambda event: event.type == "acp-permission_request")
    done, _ = await asyncio.wait({turn}, timeout=1.0)  # twice the time to rest
    assert not done
    await session.respond(asked.payload["requestId"], "yes", None)
    assert (await turn).stop_reason == StopReason.END_TURN
    assert (heard.text(), own.calls) == ("helped", 0)


def _status(status: str) -> Callable[..., bool]:
    return lambda event: event.payload.get("status") == status


async def test_what_ends_late_is_shown_at_once_and_is_no_turn(
    scripted, heard, own: OwnTurns
) -> None:
    session = await scripted(
        """
        def prompt(message):
            update(sessionUpdate="tool_call", toolCallId="t", title="long", status="in_progress")
            answer(message, {"stopReason": "end_turn"})
            open("begin").read()
            say("")
            update(sessionUpdate="tool_call_update", toolCallId="t", status="completed")
        serve(prompt)
        """,
        own.spec,
    )
    await session.prompt(HELLO)
    await asyncio.to_thread(own.fifo.write_text, "now")
    await heard.until(_status("completed"))
    assert (own.calls, session.own_turn_waits) == (0, False)
