"""Output of commands that an agent reports in `_meta`, while they run and at their end."""

import asyncio
from typing import Any

from quarterdeck.agents.output import MOST_CALLS
from quarterdeck.agents.port import Prompt

HELLO = Prompt("m1", "hello")


def texts(payload: dict[str, Any]) -> list[str]:
    items = payload.get("content")
    return (
        [i["content"]["text"] for i in items if "content" in i] if isinstance(items, list) else []
    )


async def test_output_is_shown_while_the_command_runs_and_whole_at_its_end(
    scripted, heard, workspace
) -> None:
    session = await scripted("""
        def told(meta, **fields):
            update(sessionUpdate="tool_call_update", toolCallId="t", _meta=meta, **fields)
        def piece(text, name="terminal_output_delta"):
            return {name: {"terminal_id": "t", "data": text}}
        def prompt(message):
            terminal = [{"type": "terminal", "terminalId": "t"}]
            update(sessionUpdate="tool_call", toolCallId="t", title="make", status="in_progress",
                   content=terminal)
            told(piece("one\\n"))
            while not os.path.exists("seen"):
                time.sleep(0.01)
            told(piece("two\\n", "terminal_output"))
            told({"terminal_exit": {"terminal_id": "t", "exit_code": 3}}, status="failed",
                 content=terminal)
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(lambda event: texts(event.payload) == ["one\n"])
    (workspace / "seen").touch()
    await turn
    last = heard.payloads("tool_call_update")[-1]
    assert texts(last) == ["one\ntwo\n"]
    assert last["_meta"] == {"terminal_exit": {"terminal_id": "t", "exit_code": 3}}
    assert all("data" not in str(event.payload.get("_meta")) for event in heard.events)


async def test_output_of_a_command_that_never_ends_is_shown_when_the_turn_does(
    scripted, heard
) -> None:
    session = await scripted("""
        def prompt(message):
            update(sessionUpdate="tool_call", toolCallId="t", title="serve", status="in_progress")
            data = {"terminal_output": {"terminal_id": "t", "data": "listening"}}
            update(sessionUpdate="tool_call_update", toolCallId="t", _meta=data)
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    await session.prompt(HELLO)
    assert texts(heard.payloads("tool_call_update")[-1]) == ["listening"]


async def test_the_agents_own_words_for_a_result_are_kept(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            data = {"terminal_output": {"terminal_id": "t", "data": "raw"}}
            words = [{"type": "content", "content": {"type": "text", "text": "all well"}}]
            update(sessionUpdate="tool_call", toolCallId="t", title="x", status="pending")
            update(sessionUpdate="tool_call_update", toolCallId="t", status="completed",
                   content=words, _meta=data)
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    await session.prompt(HELLO)
    assert texts(heard.payloads("tool_call_update")[-1]) == ["all well"]


async def test_a_flood_of_pieces_is_a_few_updates(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            update(sessionUpdate="tool_call", toolCallId="t", title="x", status="in_progress")
            for number in range(5000):
                data = {"terminal_output": {"terminal_id": "t", "data": f"{number}\\n"}}
                update(sessionUpdate="tool_call_update", toolCallId="t", _meta=data)
            update(sessionUpdate="tool_call_update", toolCallId="t", status="completed")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    await session.prompt(HELLO)
    updates = heard.payloads("tool_call_update")
    assert len(updates) < 500
    assert texts(updates[-1])[0].endswith("4998\n4999\n")


async def test_calls_that_never_end_are_followed_up_to_a_number(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            for number in range(500):
                id = str(number)
                update(sessionUpdate="tool_call", toolCallId=id, title="make", status="in_progress")
                data = {"terminal_output": {"data": "output " + id}}
                update(sessionUpdate="tool_call_update", toolCallId=id, _meta=data)
            update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "alive"})
            read()
            answer(message, {"stopReason": "cancelled"})
        serve(prompt)
    """)
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(lambda event: "alive" in str(event.payload))
    link = session._link
    assert len(link._calls._calls) == len(link._outputs._commands) == MOST_CALLS
    assert len(session._recorder.activity._running) == MOST_CALLS
    await session.interrupt()
    await turn
    shown = {each["toolCallId"]: texts(each) for each in heard.payloads("tool_call_update")}
    assert shown == {str(number): [f"output {number}"] for number in range(500)}
