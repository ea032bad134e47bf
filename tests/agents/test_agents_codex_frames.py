"""An app-server of codex that sends frames of wrong types: the turn goes on."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.codex import link
from quarterdeck.agents.codex.listener import (
    LONGEST_WARNING,
    MOST_TEXTS,
    MOST_WARNINGS,
    Narrator,
)
from quarterdeck.agents.codex.questions import Approvals
from quarterdeck.agents.codex.session import CodexDriver, CodexSession
from quarterdeck.agents.codex.turns import MOST_UNASKED
from quarterdeck.agents.output import MOST_CALLS
from quarterdeck.agents.port import AgentSession, Prompt, SessionSpec, StopReason
from quarterdeck.agents.presets import AgentProtocol, Preset
from quarterdeck.wire.history import AgentEventType
from tests.agents.conftest import Heard
from tests.agents.test_agents_codex_steering import SERVER
from tests.support.waiting import eventually

WRONG: list[Any] = [
    None,
    7,
    1.5,
    True,
    "x",
    [],
    ["x"],
    [7],
    {},
    {"x": [1]},
    {"id": 7},
    [[[]]],
    [{"kind": 7}],
]
TYPES = (
    *("commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "webSearch", "imageView"),
    *("agentMessage", "reasoning", "plan", "userMessage", "other"),
)
ITEM_FIELDS = (
    *("id", "type", "command", "cwd", "changes", "aggregatedOutput", "status", "result", "error"),
    *("query", "action", "path", "tool", "arguments", "server", "summary", "text", "contentItems"),
)
FIELDS = (
    *("threadId", "turnId", "itemId", "delta", "summaryIndex", "contentIndex", "item", "plan"),
    *("tokenUsage", "error", "willRetry", "message", "summary", "details", "toModel", "status"),
    *("name", "changes", "turn", "goal", "command", "cwd", "availableDecisions", "reason", "kind"),
    *("grantRoot", "permissions", "questions", "mode", "requestedSchema", "serverName", "url"),
)

Opener = Callable[[str], Awaitable[CodexSession]]


@pytest.fixture
def spoken(tmp_path: Path, heard: Heard, spec: SessionSpec, sessions: list[AgentSession]) -> Opener:
    """Opens a session with an app-server that does what a test says after `turn/start`."""

    async def open_session(body: str) -> CodexSession:
        script = tmp_path / "codex.py"
        serve = SERVER.replace('say("begun ")', "speak()")
        script.write_text(f"{serve}\ndef speak():\n{body}\nserve(None)\n")
        command = (sys.executable, "-I", str(script))
        session = await CodexDriver(
            Preset(name="Codex", protocol=AgentProtocol.CODEX, command=command)
        ).open(spec, heard)
        assert isinstance(session, CodexSession)
        sessions.append(session)
        return session

    return open_session


def wrong_frames() -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    notes = (
        *Narrator.HANDLERS,
        "turn/started",
        "thread/goal/updated",
        "thread/goal/cleared",
        "none",
    )
    for method in notes:
        params = [{"threadId": "t", name: wrong} for name in FIELDS for wrong in WRONG]
        frames += [{"method": method, "params": one} for one in (*WRONG, *params)]
    for method in ("item/started", "item/completed"):
        for kind in TYPES:
            for name in ITEM_FIELDS:
                for wrong in WRONG:
                    item = {"id": "i", "type": kind, name: wrong}
                    frames.append({"method": method, "params": {"threadId": "t", "item": item}})
    for wrong in WRONG:
        frames.append({"method": "turn/completed", "params": {"threadId": "t", "turn": wrong}})
        frames.append({"id": wrong, "result": {}})
        frames += [{"id": number, "result": wrong} for number in range(9)]  # answered already
        frames += [{"id": number, "error": wrong} for number in range(900, 902)]
    return frames


async def test_wrong_notifications_end_no_turn(
    spoken: Opener, heard: Heard, tmp_path: Path
) -> None:
    lines = "".join(json.dumps(frame) + "\n" for frame in wrong_frames())
    (tmp_path / "frames").write_text(lines)
    session = await spoken(
        f"    sys.stdout.write(open({str(tmp_path / 'frames')!r}).read()); say('alive'); end()"
    )
    assert (await session.prompt(Prompt("m1", "hello"))).stop_reason == StopReason.END_TURN
    assert "alive" in heard.text()


async def test_wrong_requests_end_no_turn(spoken: Opener, heard: Heard, tmp_path: Path) -> None:
    frames = [
        {"id": "same", "method": method, "params": params}
        for method in (*Approvals.HANDLERS, "none")
        for params in (*WRONG, *({name: wrong} for name in FIELDS for wrong in WRONG))
    ]
    (tmp_path / "frames").write_text("".join(json.dumps(frame) + "\n" for frame in frames))
    session = await spoken(
        f"    sys.stdout.write(open({str(tmp_path / 'frames')!r}).read()); say('alive'); end()"
    )
    assert (await session.prompt(Prompt("m1", "hello"))).stop_reason == StopReason.END_TURN
    assert "alive" in heard.text()


FLOOD = """
    import os, select, threading
    line, wrote = b'{{"id": 1, "method": "none", "params": {{}}}}\\n', 0
    os.set_blocking(1, False)
    while wrote < 200_000:
        if select.select([], [1], [], 2)[1]:
            try:
                os.write(1, line)
                wrote += 1
            except BlockingIOError:
                pass
        elif os.path.exists({limited!r}):
            break
    os.set_blocking(1, True)
    threading.Thread(target=sys.stdin.read, daemon=True).start()
    say(f"wrote {{wrote}}.")
    end()
"""


async def test_one_that_does_not_read_its_answers_is_not_read(
    spoken: Opener, heard: Heard, tmp_path: Path
) -> None:
    limited = tmp_path / "limited"
    session = await spoken(FLOOD.format(limited=str(limited)))
    turn = asyncio.create_task(session.prompt(Prompt("m1", "hello")))
    await eventually(lambda: session._link and session._link._sending.locked(), "the limit")
    limited.touch()
    assert (await turn).stop_reason == StopReason.END_TURN
    assert int(heard.text().removeprefix("wrote ").rstrip(".")) < 100_000


ASKING = """
    for number in range(5):
        params = {"threadId": "t", "itemId": str(number), "command": "ls"}
        send(id=number, method="item/commandExecution/requestApproval", params=params)
    say("alive")
    for _ in range(5): read()
    end()
"""


async def test_questions_that_wait_for_a_person_do_not_stop_the_reading(
    spoken: Opener, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "MOST_SENDING", 3)
    session = await spoken(ASKING)
    turn = asyncio.create_task(session.prompt(Prompt("m1", "hello")))
    await heard.until(lambda event: "alive" in str(event.payload))
    asked = [event for event in heard.events if event.type == AgentEventType.PERMISSION_REQUEST]
    for event in asked:
        assert await session.respond(event.payload["requestId"], "decline", None)
    assert len(asked) == 5 and (await turn).stop_reason == StopReason.END_TURN


MANY = """
    for number in range(500):
        id = str(number)
        send(method="turn/started", params={"threadId": "t", "turn": {"id": "other" + id}})
        send(method="warning", params={"message": "warning " + id + "x" * 20_000})
        item = {"id": id, "type": "commandExecution", "command": "ls"}
        send(method="item/started", params={"threadId": "t", "item": item})
    for number in range(1500):
        params = {"threadId": "t", "itemId": "text" + str(number), "delta": "x"}
        send(method="item/agentMessage/delta", params=params)
    say("alive")
    read()
    end()
"""


async def test_what_a_codex_begins_and_never_ends_is_bounded(spoken: Opener, heard: Heard) -> None:
    session = await spoken(MANY)
    turn = asyncio.create_task(session.prompt(Prompt("m1", "hello")))
    await heard.until(lambda event: "alive" in str(event.payload))
    turns, narrator = session._listener.turns, session._listener.narrator
    assert len(turns._unasked) == MOST_UNASKED and len(turns._turns) == MOST_UNASKED + 1
    assert len(narrator._calls) == len(narrator._edited) == MOST_CALLS
    assert len(narrator._sent_in_pieces) == MOST_TEXTS
    warnings = [event for event in heard.events if event.type == AgentEventType.NOTICE]
    assert len(warnings) == len(narrator.warnings) == MOST_WARNINGS
    assert {len(event.payload["text"]) for event in warnings} == {LONGEST_WARNING}
    assert len(session._recorder.activity._running) == MOST_CALLS
    cut_off = [each for each in heard.payloads("tool_call_update") if each["status"] == "failed"]
    assert [each["toolCallId"] for each in cut_off] == [str(n) for n in range(500 - MOST_CALLS)]
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
