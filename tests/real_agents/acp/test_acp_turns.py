"""Turns with real agents: tools, words, permissions, plans, models, questions, interrupts, errors;
and what an agent opens to others on the machine.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from quarterdeck.agents.port import Prompt, StopReason
from quarterdeck.transcript.blocks import ToolState
from tests.real_agents.acp.place import ALLOW, REJECT, Talk, Waiter
from tests.real_agents.model.dialect import USAGE
from tests.real_agents.served import PLANTED
from tests.support.waiting import WAIT_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTENS = "0A"
"""The state of a TCP socket in /proc."""


@pytest.mark.long
async def test_a_tool_changes_a_file_and_its_call_is_told(talk: Talk) -> None:
    outcome = await talk.say("shell echo changed > a.txt; echo printed", "say done")
    assert (outcome.stop_reason, outcome.error) == (StopReason.END_TURN, None)
    assert talk.file("a.txt").read_text() == "changed\n"
    (tool,) = talk.tools
    assert tool.state is ToolState.COMPLETED
    assert "printed" in repr(tool.shown_parts)
    assert talk.heard.text().endswith("done")


@pytest.mark.long
async def test_words_and_thoughts_are_streamed(talk: Talk) -> None:
    outcome = await talk.say("think a while", "stream 40")
    assert outcome.stop_reason == StopReason.END_TURN
    assert talk.heard.text() == "".join(f"{number} " for number in range(40))
    assert len(talk.heard.payloads("agent_message_chunk")) > 1
    thoughts = talk.heard.payloads("agent_thought_chunk")
    assert "a while" in "".join(one["content"]["text"] for one in thoughts)


@pytest.mark.long
async def test_what_a_turn_used_is_told(talk: Talk) -> None:
    for _ in range(2):
        outcome = await talk.say("say x")
        assert outcome.usage is not None
        assert outcome.usage["outputTokens"] == USAGE["output"]
        assert outcome.usage["totalTokens"] == USAGE["input"] + USAGE["output"]


@pytest.mark.long
async def test_the_key_reaches_the_model_s_service(talk: Talk) -> None:
    before = len(talk.model.requests)
    await talk.say("say x")
    headers = talk.model.requests[before].headers
    assert "sk-told-by-the-test" in repr(headers)


@pytest.mark.long
@pytest.mark.parametrize("answers", [ALLOW, REJECT])
async def test_a_permission_is_accepted_or_declined(talk: Talk, answers: str) -> None:
    talk.file("b.txt").write_text("kept?")
    outcome = await talk.say("shell rm b.txt", "say went on", answers=answers)
    assert outcome.stop_reason == StopReason.END_TURN
    assert len(talk.asked) == 1
    assert talk.file("b.txt").exists() == (answers == REJECT)
    went_on = answers == ALLOW or talk.agent.goes_on_when_declined
    assert talk.heard.text().endswith("went on") == went_on
    assert (await talk.say("say usable")).stop_reason == StopReason.END_TURN


@pytest.mark.long
async def test_plan_mode_changes_nothing_and_is_left_again(talk: Talk) -> None:
    planned = await talk.say("shell echo x > planned", plan_mode=True, answers=REJECT)
    assert planned.stop_reason == StopReason.END_TURN
    assert len(talk.asked) == talk.agent.asks_when_planning
    assert not talk.file("planned").exists()
    built = await talk.say("shell echo x > built", "say built")
    assert built.stop_reason == StopReason.END_TURN
    assert talk.file("built").exists()


@pytest.mark.long
async def test_a_plan_is_told(talk: Talk) -> None:
    if not talk.agent.plans:
        return
    await talk.say("plan first; second", "say planned")
    plan = talk.heard.payloads("plan")[-1]
    assert [entry["content"] for entry in plan["entries"]] == ["first", "second"]


@pytest.mark.long
async def test_the_model_is_chosen_in_mid_chat(talk: Talk) -> None:
    for number, chosen in enumerate((*reversed(talk.agent.models), talk.agent.models[1])):
        words = f"say choice {number}"
        outcome = await talk.say(words, model=chosen)
        assert outcome.stop_reason == StopReason.END_TURN
        # Agents ask models of their own beside the talk: for titles, for what may be said next.
        asked = next(
            one
            for one in talk.model.requests
            if one.body.get("tools") and words in json.dumps(one.body)
        )
        assert chosen.rpartition("/")[2] in f"{asked.path} {asked.body.get('model')}"
    await talk.say("say x", model=talk.agent.models[0])


@pytest.mark.long
async def test_a_tool_server_is_used(talk: Talk) -> None:
    outcome = await talk.say('mcp notes add {"text": "remember"}', "say noted")
    assert outcome.stop_reason == StopReason.END_TURN
    assert (talk.place.root / "notes").read_text().splitlines()[-1] == "remember"
    assert talk.tools[-1].state is ToolState.COMPLETED


def command_lines() -> Iterator[str]:
    """The arguments of every process."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            yield file.read_text(errors="replace")


@pytest.mark.long
async def test_values_of_a_tool_server_are_in_no_command_line(talk: Talk) -> None:
    await talk.say('mcp notes add {"text": "remember"}', "say noted")
    assert not [line for line in command_lines() if PLANTED in line]


@pytest.mark.long
async def test_a_question_is_answered(talk: Talk) -> None:
    if not talk.agent.asks_questions:
        return
    await talk.say("ask Which colour? | red | blue", "say asked")
    (asked,) = talk.asked
    assert asked["title"] == "Which colour?"
    assert [one["name"] for one in asked["options"]][:2] == ["red", "blue"]
    assert "red" in repr(talk.tools[-1].shown_parts)


@pytest.mark.long
async def test_it_continues_after_a_turn_when_a_background_command_ends(talk: Talk) -> None:
    if not talk.agent.works_in_background:
        return
    began = asyncio.Event()
    session = await talk.place.open(on_own_turn=began.set)
    background = Talk(talk.place, session)
    # The agent repeats the description when the command has ended: it is the model's next script.
    call = {
        "command": "while [ ! -e go ]; do sleep 0.1; done",
        "description": "later\nshell touch own.txt; rm own.txt\nsay continued\nend",
        "run_in_background": True,
    }
    outcome = await background.say(f"tool Bash {json.dumps(call)}", "say first")
    assert (outcome.stop_reason, session.own_turn_waits) == (StopReason.END_TURN, False)
    assert talk.heard.text().endswith("first")
    talk.begin_part()
    talk.file("go").touch()
    async with asyncio.timeout(60):
        await began.wait()
        assert not talk.heard.payloads("agent_message_chunk")
        own = await session.prompt(Prompt("own", "", own_turn=True))
    assert own.stop_reason == StopReason.END_TURN
    assert len(talk.asked) == 1
    assert talk.heard.text() == "continued"
    assert (await background.say("say usable")).stop_reason == StopReason.END_TURN
    assert talk.heard.text() == "continuedusable"
    talk.place.sessions.remove(session)
    await session.close()


@pytest.mark.long
async def test_a_turn_that_waits_for_a_hidden_question_is_named(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not talk.agent.hides_helpers:
        return
    timeouts = replace(talk.session._timeouts, notice=1.0)
    monkeypatch.setattr(talk.session, "_timeouts", timeouts)
    talk.file("kept.txt").touch()
    helper = {
        "description": "helper",
        "prompt": "shell rm kept.txt\nsay removed",
        "subagent_type": "general",
    }
    turn = talk.begin(f"tool task {json.dumps(helper)}", "say never")
    notice = await talk.heard.until(lambda event: event.type == "notice")
    assert notice.payload["text"] == "No sign of life for 1 s; interrupt or wait."
    await talk.session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    assert not talk.asked and talk.file("kept.txt").exists()


@pytest.mark.long
async def test_an_interrupt_ends_words(talk: Talk) -> None:
    turn = talk.begin("say before", "wait words", "say after")
    await talk.model.waits("words")
    await talk.session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    talk.model.release("words")
    assert (await talk.say("say usable")).stop_reason == StopReason.END_TURN
    assert "after" not in talk.heard.text()


@pytest.mark.long
async def test_an_interrupt_ends_a_shell_and_its_child(talk: Talk, appears: Waiter, gone) -> None:
    pids = talk.file("pids")
    child = "python3 -c 'import time; time.sleep(1000)'"
    turn = talk.begin(f"shell {child} & echo $$ $! > {pids.name}; wait", "say never")
    started = [int(pid) for pid in (await appears(pids)).split()]
    assert len(started) == 2
    await talk.session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    assert await gone(*started)
    assert (await talk.say("say usable")).stop_reason == StopReason.END_TURN


@pytest.mark.long
@pytest.mark.parametrize("status", [401, 429, 500])
async def test_an_error_of_the_model_is_told_and_the_chat_goes_on(talk: Talk, status: int) -> None:
    outcome = await talk.say(f"fail {status}")
    assert outcome.stop_reason == StopReason.FAILED
    assert "reported an error" in (outcome.error or "")
    assert str(status) in (outcome.error or "") or (
        status == 401 and "key" in (outcome.error or "")
    )
    again = await talk.say("say usable")
    assert again.stop_reason == StopReason.END_TURN
    assert talk.heard.text().endswith("usable")


@pytest.mark.long
async def test_nonsense_of_the_model_does_not_end_the_chat(talk: Talk) -> None:
    outcome = await talk.say("garbage")
    assert outcome.stop_reason in (StopReason.FAILED, StopReason.END_TURN)
    assert (outcome.error is not None) == (outcome.stop_reason == StopReason.FAILED)
    assert (await talk.say("say usable")).stop_reason == StopReason.END_TURN


@pytest.mark.long
@pytest.mark.more_agents  # they try again for as long as a minute
@pytest.mark.timeout(300)
async def test_a_connection_that_is_cut_in_mid_stream_is_told(talk: Talk) -> None:
    outcome = await talk.say("say x", "cut")
    if talk.agent.tells_cuts:
        assert outcome.stop_reason == StopReason.FAILED
        assert "reported an error" in (outcome.error or "")
    else:
        assert outcome.stop_reason == StopReason.END_TURN, outcome.error
    assert (await talk.say("say usable")).stop_reason == StopReason.END_TURN
    assert talk.heard.text().endswith("usable")


@pytest.mark.long
async def test_its_slash_commands_are_told(talk: Talk) -> None:
    await talk.say("say hello")  # some tell them with the first turn only
    heard = [*talk.told, *talk.heard.events]
    updates = [
        one.payload
        for one in heard
        if one.payload.get("sessionUpdate") == "available_commands_update"
    ]
    told = updates[-1]["availableCommands"]
    assert all(one["name"] for one in told)
    if talk.agent.id == "opencode":
        assert "greet" in [one["name"] for one in told]
        talk.begin_part()
        assert (await talk.say("/greet Bert")).stop_reason == StopReason.END_TURN
        assert talk.heard.text() == "hello Bert"


def ports_of(pid: int) -> list[int]:
    """TCP ports on which a process listens."""
    sockets = {str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if row[3] == LISTENS and f"socket:[{row[9]}]" in sockets
    ]


@pytest.mark.long
async def test_nobody_else_is_let_in(talk: Talk) -> None:
    assert talk.session.process_id
    ports = ports_of(talk.session.process_id)
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as client:
        for port in ports:
            for path in ("/session", "/config", "/"):
                answer = await client.get(f"http://127.0.0.1:{port}{path}")
                assert answer.status_code == 401, (port, path, answer.text)
    if talk.agent.id == "opencode":
        assert ports, "it has always had one"


@pytest.mark.long
async def test_its_settings_are_those_that_it_announces(talk: Talk) -> None:
    await talk.say("say x", model=talk.agent.models[0])
    settings = talk.session.settings
    if not talk.agent.announces_models:
        assert settings.model is None
        return
    assert settings.model is not None and settings.model.current is not None
    assert settings.model.current.id == talk.agent.models[0]
    assert {choice.id for choice in settings.model.choices} >= set(talk.agent.models)
    await talk.say("say x", model=talk.agent.models[1])
    settings = talk.session.settings
    assert settings.model is not None and settings.model.current is not None
    assert settings.model.current.id == talk.agent.models[1]
    modes = settings.permission_mode
    assert modes is None or all(choice.id.rpartition("#")[2] != "plan" for choice in modes.choices)
