"""Turns of codex: what it says and does, as the engine hears of it."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.codex.session import CodexSession
from quarterdeck.agents.port import AgentError, Prompt, StopReason
from quarterdeck.wire.chats import Base64Source, Image
from quarterdeck.wire.history import AgentEvent
from quarterdeck.wire.setup import McpServer
from tests.real_agents.codex.place import ROOT, Place, configuration
from tests.real_agents.model.dialect import USAGE


def prompt(text: str, **more: Any) -> Prompt:
    return Prompt("m", text, **more)


def asked(event: AgentEvent) -> bool:
    return event.type == "acp-permission_request"


def calls(place: Place) -> list[dict[str, Any]]:
    """Tool calls as they end up, updates folded in."""
    found: dict[str, dict[str, Any]] = {}
    for event in place.heard.events:
        if event.payload.get("sessionUpdate") in ("tool_call", "tool_call_update"):
            found.setdefault(event.payload["toolCallId"], {}).update(event.payload)
    return list(found.values())


async def decide(place: Place, session: CodexSession, text: str, option: str) -> StopReason | str:
    """Runs a turn in which one thing is asked, and answers it."""
    turn = asyncio.create_task(session.prompt(prompt(text)))
    request = (await place.heard.until(asked)).payload
    assert await session.respond(request["requestId"], option, None)
    return (await turn).stop_reason


@pytest.mark.long
async def test_a_command_changes_a_file_and_codex_says_so(place: Place) -> None:
    session = await place.open()
    outcome = await session.prompt(prompt("think Hm.\nshell echo hello > a; cat a\nsay Written."))
    assert outcome.stop_reason == StopReason.END_TURN and outcome.error is None
    assert (place.directory / "a").read_text() == "hello\n"
    assert place.heard.text() == "Written."
    thoughts = place.heard.payloads("agent_thought_chunk")
    assert [one["content"]["text"] for one in thoughts][-1] == "Hm."
    [call] = calls(place)
    assert call["title"] == "echo hello > a; cat a"
    assert (call["kind"], call["status"]) == ("execute", "completed")
    assert call["rawInput"]["cwd"] == str(place.directory)
    assert call["rawOutput"]["type"] == "commandExecution"
    assert call["rawOutput"]["aggregatedOutput"] == "hello\n"
    assert call["rawOutput"]["exitCode"] == 0
    twice = {name: 2 * count for name, count in USAGE.items()}
    assert outcome.usage is not None
    assert outcome.usage["inputTokens"] == twice["input"]
    assert outcome.usage["outputTokens"] == twice["output"]
    assert outcome.usage["cachedReadTokens"] == twice["cached"]
    assert place.heard.payloads("usage_update")[-1]["used"] == USAGE["input"] + USAGE["output"]


async def test_an_answer_streams_piece_by_piece(place: Place) -> None:
    session = await place.open()
    await session.prompt(prompt("stream 200"))
    pieces = place.heard.payloads("agent_message_chunk")
    assert [one["content"]["text"] for one in pieces] == [f"{n} " for n in range(200)]
    assert len({one["messageId"] for one in pieces}) == 1


@pytest.mark.long
async def test_output_of_a_long_command_shows_while_it_runs(place: Place) -> None:
    session = await place.open()
    gate = place.directory / "gate"
    text = f"shell for i in 1 2 3; do echo line $i; sleep 0.3; done; cat {gate}; echo end"
    await asyncio.to_thread(os.mkfifo, gate)
    turn = asyncio.create_task(session.prompt(prompt(text)))

    def shows(event: AgentEvent) -> bool:
        return "line 3" in json.dumps(event.payload.get("content", ""))

    await place.heard.until(shows)
    await asyncio.to_thread(gate.write_text, "")
    assert (await turn).stop_reason == StopReason.END_TURN
    [call] = calls(place)
    assert call["content"][0]["content"]["text"].endswith("line 3\nend\n")


@pytest.mark.long
async def test_a_failing_command_is_told_as_failed(place: Place) -> None:
    session = await place.open()
    await session.prompt(prompt("shell echo no; exit 3"))
    [call] = calls(place)
    assert call["status"] == "failed" and call["rawOutput"]["exitCode"] == 3


@pytest.mark.long
async def test_a_patch_shows_as_changes(place: Place) -> None:
    (place.directory / "old").write_text("one\ntwo\nthree\n")
    patch = "\n".join(
        [
            "*** Begin Patch",
            "*** Add File: new",
            "+fresh",
            "*** Update File: old",
            "@@",
            " one",
            "-two",
            "+2",
            " three",
            "*** End Patch",
        ]
    )
    command = json.dumps({"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"})
    session = await place.open()
    await session.prompt(prompt(f"tool exec_command {command}"))
    assert (place.directory / "old").read_text() == "one\n2\nthree\n"
    [call] = [one for one in calls(place) if one["kind"] == "edit"]
    diffs = {Path(part["path"]).name: part for part in call["content"]}
    assert (diffs["new"]["oldText"], diffs["new"]["newText"]) == (None, "fresh\n")
    assert (diffs["old"]["oldText"], diffs["old"]["newText"]) == (
        "one\ntwo\nthree\n",
        "one\n2\nthree\n",
    )
    assert call["status"] == "completed" and call["rawOutput"]["type"] == "fileChange"


@pytest.mark.long
@pytest.mark.parametrize(
    ("option", "reason", "written", "said"),
    [
        ("accept", StopReason.END_TURN, True, "after"),
        ("decline", StopReason.END_TURN, False, "after"),
        ("cancel", StopReason.CANCELLED, False, ""),
    ],
)
async def test_a_command_waits_for_a_persons_word(
    place: Place, option: str, reason: str, written: bool, said: str
) -> None:
    place.ask_always()
    session = await place.open()
    assert await decide(place, session, "shell touch a\nsay after", option) == reason
    assert (place.directory / "a").exists() is written
    assert place.heard.text() == said
    kinds = [event.type for event in place.heard.events if "permission" in event.type]
    assert kinds == ["acp-permission_request", "acp-permission_outcome"]
    [call] = calls(place)
    assert call["status"] == ("completed" if written else "failed")


@pytest.mark.long
async def test_an_answer_that_was_not_offered_is_refused(place: Place) -> None:
    place.ask_always()
    session = await place.open()
    turn = asyncio.create_task(session.prompt(prompt("shell touch a")))
    request = (await place.heard.until(asked)).payload
    names = {option["optionId"]: option["kind"] for option in request["options"]}
    assert names["accept"] == "allow_once" and names["decline"] == "reject_once"
    assert request["toolCall"]["rawInput"]["command"] == "touch a"
    with pytest.raises(AgentError, match="one of its options"):
        await session.respond(request["requestId"], "perhaps", None)
    assert await session.respond(request["requestId"], "accept", None)
    assert not await session.respond(request["requestId"], "accept", None)
    assert (await turn).stop_reason == StopReason.END_TURN


@pytest.mark.long
async def test_plan_mode_asks_and_proposes_and_is_left_again(place: Place) -> None:
    session = await place.open()
    text = "ask Which one? | Left | Right\nplan walk; run"
    turn = asyncio.create_task(session.prompt(prompt(text, plan_mode=True)))
    request = (await place.heard.until(asked)).payload
    assert request["title"] == "Which one?"
    assert [option["name"] for option in request["options"]] == ["Left", "Right"]
    assert await session.respond(request["requestId"], request["options"][1]["optionId"], None)
    outcome = await turn
    assert (outcome.stop_reason, outcome.planned) == (StopReason.END_TURN, True)
    assert "Right" in json.dumps(place.model.requests[-1].body["input"][-1])
    [plan] = place.heard.payloads("agent_message_chunk")
    assert plan["content"]["text"] == "- walk\n- run\n" and plan["_meta"] == {"item": "plan"}
    await session.prompt(prompt("say done"))
    texts = json.dumps(place.model.requests[-1].body["input"])
    assert texts.count("Plan Mode") >= 1 and "Default" in texts
    assert place.heard.text().endswith("done")


@pytest.mark.long
async def test_a_thread_that_was_left_in_plan_mode_is_reopened_with_its_sandbox(
    place: Place,
) -> None:
    place.configure(configuration(place.model.url, 'sandbox_mode = "workspace-write"'))
    session = await place.open()
    await session.prompt(prompt("say planned", plan_mode=True))
    await session.close()
    again = await place.open(session_id=session.id)
    # The answer that opens a thread names the sandbox of its commands, which are run without asking.
    assert again._settings._sandbox["type"] == "workspaceWrite"


@pytest.mark.long
async def test_a_question_may_be_answered_in_words(place: Place) -> None:
    session = await place.open()
    text = "ask Which one? | Left | Right"
    turn = asyncio.create_task(session.prompt(prompt(text, plan_mode=True)))
    request = (await place.heard.until(asked)).payload
    assert await session.respond(request["requestId"], None, "neither of them")
    assert (await turn).planned is False
    assert "neither of them" in json.dumps(place.model.requests[-1].body["input"][-1])


@pytest.mark.long
async def test_a_tool_of_an_mcp_server(place: Place) -> None:
    config = {
        "command": sys.executable,
        "args": ["-m", "tests.real_agents.codex.notes"],
        "env": {"NOTES": str(place.directory / "notes"), "PYTHONPATH": str(ROOT)},
    }
    place.servers = [
        McpServer(name="notes", transport="stdio", config=config),
        McpServer(name="far", transport="sse", config={"url": "http://127.0.0.1:9"}),
    ]
    session = await place.open()
    await session.prompt(prompt('mcp notes add {"text": "remember"}'))
    assert (place.directory / "notes").read_text() == "remember\n"
    [call] = calls(place)
    assert call["title"] == "notes: add" and call["rawInput"] == {"text": "remember"}
    assert call["content"][0]["content"]["text"] == "noted: remember"
    assert "cannot use these MCP servers: far" in place.heard.text()


@pytest.mark.long
async def test_model_effort_and_images_reach_the_model(place: Place) -> None:
    session = await place.open()
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = Image(
        type="image", source=Base64Source(type="base64", media_type="image/png", data=pixel)
    )
    await session.prompt(prompt("say x", model="gpt-5.5", thinking_level="max", images=[image]))
    body = place.model.requests[-1].body
    assert body["model"] == "gpt-5.5"
    assert body["reasoning"]["effort"] == "xhigh"  # the most that this model has
    assert "data:image/png;base64," in json.dumps(body["input"])
    await session.prompt(prompt("say y", fast_mode=True))
    body = place.model.requests[-1].body
    assert body["model"] == "gpt-5.5" and body["service_tier"] == "priority"


@pytest.mark.long
async def test_two_threads_in_one_home_do_not_meet(place: Place) -> None:
    first, second = await place.open(), await place.open()
    await asyncio.gather(first.prompt(prompt("say one")), second.prompt(prompt("say two")))
    assert first.id != second.id
