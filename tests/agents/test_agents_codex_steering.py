"""Messages for a running turn of codex, with an app-server that the test writes."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from quarterdeck.agents.codex.session import CodexDriver, CodexSession
from quarterdeck.agents.port import AgentDiedError, AgentError, AgentSession, Prompt, SessionSpec
from quarterdeck.agents.presets import AgentProtocol, Preset
from tests.agents.conftest import Heard

SERVER = """
import json, sys
def send(**message): print(json.dumps(message), flush=True)
def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def say(text): send(method="item/agentMessage/delta", params={"threadId": "t", "itemId": text, "delta": text})
ANSWERS = {
    "account/read": {"requiresOpenaiAuth": False},
    "config/read": {"config": {}},
    "thread/start": {"thread": {"id": "t"}, "model": "m"},
    "thread/goal/get": {"goal": None},
}
def serve(steered):
    while True:
        asked = read()
        match asked["method"]:
            case "initialized": pass
            case "turn/start":
                send(id=asked["id"], result={"turn": {"id": "u"}})
                say("begun ")
            case "turn/steer":
                steered(asked)
            case name:
                send(id=asked["id"], result=ANSWERS.get(name, {"data": []}))
def end():
    send(method="turn/completed", params={"threadId": "t", "turn": {"id": "u", "status": "completed"}})
"""

Opener = Callable[[str], Awaitable[CodexSession]]


@pytest.fixture
def served(tmp_path: Path, heard: Heard, spec: SessionSpec, sessions: list[AgentSession]) -> Opener:
    """Opens a session with an app-server that does what a test says on `turn/steer`."""

    async def open_session(steered: str) -> CodexSession:
        script = tmp_path / "codex.py"
        script.write_text(f"{SERVER}\ndef steered(asked):\n{steered}\nserve(steered)\n")
        command = (sys.executable, "-I", str(script))
        preset = Preset(name="Codex", protocol=AgentProtocol.CODEX, command=command)
        session = await CodexDriver(preset).open(spec, heard)
        assert isinstance(session, CodexSession)
        sessions.append(session)
        return session

    return open_session


async def begun(session: CodexSession, heard: Heard) -> "asyncio.Task[object]":
    turn = asyncio.create_task(session.prompt(Prompt("m1", "hello")))
    await heard.until(lambda event: "begun" in str(event.payload))
    return turn


async def test_the_running_turn_is_named_and_what_follows_comes_after(
    served: Opener, heard: Heard
) -> None:
    session = await served(
        '    send(id=asked["id"], result={"turnId": "u"}); say(json.dumps(asked["params"])); end()'
    )
    turn = await begun(session, heard)
    heard_before: list[str] = []
    await session.steer(Prompt("m2", "faster"), lambda: heard_before.append(heard.text()))
    await turn
    assert heard_before == ["begun "]
    assert json.loads(heard.text().removeprefix("begun ")) == {
        "threadId": "t",
        "expectedTurnId": "u",
        "input": [{"type": "text", "text": "faster", "text_elements": []}],
    }
    with pytest.raises(AgentError, match="just beginning or ending"):
        await session.steer(Prompt("m3", "again"), lambda: None)


async def test_a_refusal_is_told_and_the_turn_goes_on(served: Opener, heard: Heard) -> None:
    session = await served(
        '    send(id=asked["id"], error={"code": -32600, "message": "no active turn"}); end()'
    )
    turn = await begun(session, heard)
    taken: list[bool] = []
    with pytest.raises(AgentError, match="Codex did not take the message: no active turn"):
        await session.steer(Prompt("m2", "faster"), lambda: taken.append(True))
    await turn
    assert taken == []


async def test_a_codex_that_dies_may_have_had_the_message(served: Opener, heard: Heard) -> None:
    session = await served("    sys.exit(3)")
    turn = await begun(session, heard)
    with pytest.raises(AgentDiedError, match="exit status 3"):
        await session.steer(Prompt("m2", "faster"), lambda: None)
    with pytest.raises(AgentDiedError):
        await turn
