"""Agents that hang, refuse, and tell things in places of their own."""

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.acp.driver import clear_twins, seconds_to_next_minute
from quarterdeck.agents.availability import spawn
from quarterdeck.agents.port import AgentDiedError, Prompt, StopReason
from quarterdeck.agents.presets import Preset, load_presets
from quarterdeck.agents.session.permissions import MOST_OPEN, TOO_MANY
from quarterdeck.agents.session.process import MOST_SENDING
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.agents.session.session import _duration
from quarterdeck.wire.history import AgentEventType
from quarterdeck.wire.setup import McpServer
from tests.support.waiting import eventually

HELLO = Prompt("m1", "hello")

GOOGLES = '{"error":{"code":401,"message":"No such key","status":"UNAUTHENTICATED"}}'

HANGING = """
    def load(message):
        answer(message, {})
    def prompt(message):
        if os.path.exists("hung"):
            say("awake")
            return answer(message, {"stopReason": "end_turn"})
        open("hung", "w").close()
        say("about to")
        time.sleep(1000)
    serve(prompt, capabilities={"loadSession": True}, session_load=load)
"""


async def test_an_agent_that_hangs_is_ended_and_reopened_with_its_session(scripted, heard) -> None:
    session = await scripted(HANGING, timeouts=Timeouts(silence=1.5))
    with pytest.raises(AgentDiedError, match=r"did nothing for 1\.5 seconds, so it was ended"):
        await session.prompt(HELLO)
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert session.id == "s1"
    assert heard.text() == "about toawake"


async def test_a_silent_turn_says_so_once_for_each_silence(scripted, heard, workspace) -> None:
    os.mkfifo(workspace / "go on")
    session = await scripted(
        """
        def prompt(message):
            update(sessionUpdate="tool_call", toolCallId="t", title="x", status="in_progress")
            for _ in range(2):
                open("go on").read()
                say("alive")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
        """,
        timeouts=Timeouts(notice=0.3),
    )
    turn = asyncio.create_task(session.prompt(HELLO))
    for number in (1, 2):
        notices: list[str] = []
        while len(notices) < number:
            async with heard.changed:
                notices = [e.payload["text"] for e in heard.events if e.type == "notice"]
                if len(notices) < number:
                    await heard.changed.wait()
        await asyncio.to_thread((workspace / "go on").write_text, "now")
    assert (await turn).stop_reason == StopReason.END_TURN
    assert notices == ["No sign of life for 0.3 s; interrupt or wait."] * 2
    assert _duration(Timeouts().notice) == "5 min"


async def test_the_end_of_an_agent_that_runs_in_its_own_child_is_noticed(
    scripted, heard, workspace, gone
) -> None:
    session = await scripted("""
        if len(sys.argv) == 1:
            sys.exit(subprocess.run([sys.executable, "-I", sys.argv[0], "child"]).returncode)
        def prompt(message):
            say(str(os.getpid()))
            time.sleep(1000)
        serve(prompt)
    """)
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(lambda event: True)
    os.kill(session.process_id, signal.SIGKILL)
    with pytest.raises(AgentDiedError, match="killed by signal 9"):
        await turn
    assert await gone(int(heard.text()))


WRONG: list[Any] = [7, 1.5, True, [], ["x"], {}, {"x": [1]}, [[[]]]]
KINDS = (
    *("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"),
    *("current_mode_update", "config_option_update", "usage_update", "available_commands_update"),
)
FIELDS = (
    *("sessionUpdate", "toolCallId", "messageId", "status", "title", "kind", "content", "_meta"),
    *("rawInput", "rawOutput", "locations", "entries", "currentModeId", "configOptions", "cost"),
)


async def test_updates_of_wrong_types_end_no_turn(scripted, heard, workspace) -> None:
    """Each is skipped or recorded; text that follows is heard."""
    wrong = [
        {"sessionUpdate": kind, "toolCallId": "t", name: value}
        for kind in KINDS
        for name in FIELDS
        for value in WRONG
    ]
    wrong += [
        {"sessionUpdate": kind, "content": {"type": "text", "text": value}}
        for kind in KINDS
        for value in WRONG
    ]
    ended = {"sessionUpdate": "tool_call_update", "toolCallId": "o", "status": "completed"}
    output = {"sessionUpdate": "tool_call", "toolCallId": "o", "title": "x"}
    for value in WRONG:
        pieces = {"_meta": {"terminal_output": {"data": "out"}}}
        wrong += [{**output, **pieces}, {**ended, "content": value}]
        option = {
            "id": "model",
            "category": value,
            "currentValue": value,
            "options": [{"value": value}],
        }
        wrong.append({"sessionUpdate": "config_option_update", "configOptions": [option]})
    (workspace / "wrong").write_text(json.dumps(wrong))
    session = await scripted("""
        def prompt(message):
            for fields in json.load(open("wrong")):
                update(**fields)
            for params in (7, [], {"update": 7}, {"update": []}, None):
                send(method="session/update", params=params)
            say("done")
            meta = {"quota": {"token_count": {"input_tokens": "1", "output_tokens": [2]}}}
            answer(message, {"stopReason": "end_turn", "_meta": meta})
        serve(prompt)
    """)
    outcome = await session.prompt(HELLO)
    assert outcome.stop_reason == StopReason.END_TURN, outcome.error
    assert heard.payloads("agent_message_chunk")[-1]["content"]["text"] == "done"
    json.dumps([session.settings.model_dump(mode="json"), session.models and session.models.models])


async def test_permission_requests_of_wrong_types_are_refused_or_asked(
    scripted, heard, workspace
) -> None:
    once = [{"optionId": "yes", "kind": "allow_once"}]
    names = ("toolCallId", "title", "kind", "rawInput", "locations", "content", "status")
    asked = [
        {"toolCall": {"toolCallId": "t", "kind": "edit", name: value}, "options": once}
        for name in names
        for value in WRONG
    ]
    asked += [{"toolCall": value, "options": once} for value in WRONG]
    asked += [{"toolCall": {"toolCallId": "t"}, "options": value} for value in WRONG]
    asked += [{"toolCall": {"toolCallId": "t"}, "options": [{"optionId": one}]} for one in WRONG]
    (workspace / "asked").write_text(json.dumps(asked))
    session = await scripted("""
        def prompt(message):
            asked = json.load(open("asked"))
            for number, params in enumerate(asked):
                send(id=f"q{number}", method="session/request_permission", params=params)
            say("asked")
            answered = 0
            while answered < len(asked):
                reply = read()
                answered += str(reply.get("id", "")).startswith("q")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(
        lambda event: event.payload.get("content") == {"type": "text", "text": "asked"}
    )
    for event in [one for one in heard.events if one.type == AgentEventType.PERMISSION_REQUEST]:
        await session.respond(event.payload["requestId"], "yes", None)
    outcome = await turn
    assert outcome.stop_reason == StopReason.END_TURN, outcome.error


async def test_questions_beyond_a_bound_are_refused(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            options = [{"optionId": "yes", "kind": "allow_once"}]
            for number in range(130):
                call = {"toolCallId": str(number)}
                params = {"toolCall": call, "options": options}
                send(id=f"q{number}", method="session/request_permission", params=params)
            refused = [read()["error"]["message"] for _ in range(30)]
            say(f"{len(refused)} {refused[-1]}")
            for _ in range(100):
                assert read()["result"]["outcome"]["optionId"] == "yes"
            send(id="again", method="session/request_permission", params=params)
            assert read()["result"]["outcome"]["optionId"] == "yes"
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(lambda event: event.payload.get("sessionUpdate") == "agent_message_chunk")
    assert heard.text() == f"30 {TOO_MANY}"
    asked = [event for event in heard.events if event.type == AgentEventType.PERMISSION_REQUEST]
    assert len(asked) == MOST_OPEN
    assert [event.type for event in heard.events].count("notice") == 1
    for event in asked:
        await session.respond(event.payload["requestId"], "yes", None)
    again = await heard.until(
        lambda event: event.type == AgentEventType.PERMISSION_REQUEST and event not in asked
    )
    await session.respond(again.payload["requestId"], "yes", None)
    assert (await turn).stop_reason == StopReason.END_TURN


async def test_a_tool_that_runs_may_be_silent(scripted, heard) -> None:
    session = await scripted(
        """
        def prompt(message):
            update(sessionUpdate="tool_call", toolCallId="t", title="long", status="pending")
            update(sessionUpdate="tool_call_update", toolCallId="t", status="in_progress")
            time.sleep(2)
            update(sessionUpdate="tool_call_update", toolCallId="t", status="completed")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
        """,
        timeouts=Timeouts(silence=1.0),
    )
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN


async def test_an_agent_that_waits_for_an_answer_may_be_silent(scripted, heard) -> None:
    session = await scripted(
        """
        def prompt(message):
            send(id=77, method="session/request_permission", params={
                "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "yes"}]})
            read()
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
        """,
        timeouts=Timeouts(silence=1.0),
    )
    turn = asyncio.create_task(session.prompt(HELLO))
    asked = await heard.until(lambda event: event.type == "acp-permission_request")
    done, _ = await asyncio.wait({turn}, timeout=2)
    assert not done
    await session.respond(asked.payload["requestId"], "yes", None)
    assert (await turn).stop_reason == StopReason.END_TURN


@pytest.mark.parametrize(
    ("code", "text", "data", "expected"),
    [
        (401, "Unauthorized", None, "Unauthorized. Check its key (THE_KEY)."),
        (-32603, "Internal error", {"status": 429}, "send the message again later."),
        (-32603, "API Error: 401 no such key", None, "Check its key (THE_KEY)."),
        (-32603, "API Error: Request rejected (429) \u00b7 slow down", None, "again later."),
        (-32603, "It read files (401) and stopped", None, "(401) and stopped."),
        (-32603, GOOGLES, None, "error: No such key. Check its key (THE_KEY)."),
        (500, GOOGLES, None, "error: No such key. Check its key (THE_KEY)."),
        (-32603, "Failed", GOOGLES, "error: Failed (No such key). Check its key (THE_KEY)."),
        (-32603, "got status: 429. " + GOOGLES, None, "got status: 429. No such key. "),
        (-32603, '{"told": {"x": 1}}', None, 'error: {"told": {"x": 1}}.'),
        (-32603, "Failed", "HTTP 503", "The fault is with the model's service"),
        (-32603, "Failed", {"data": {"message": "why"}}, "Failed (why)."),
        (-32603, "500 files could not be read", None, "500 files could not be read."),
        (-32000, "Log in", None, "Log in. Set the variable THE_KEY, or check the key in it."),
    ],
)
async def test_an_error_says_what_can_be_done(scripted, code, text, data, expected) -> None:
    told = json.dumps([code, text, data])
    session = await scripted(
        f"""
        def prompt(message):
            refuse(message, *json.loads({told!r}))
        serve(prompt)
        """,
        keys=("THE_KEY",),
    )
    outcome = await session.prompt(HELLO)
    assert outcome.stop_reason == StopReason.FAILED
    assert expected in (outcome.error or "")
    again = await session.prompt(HELLO)
    assert again.error == outcome.error, "the chat is usable"


MODELS: dict[str, Any] = {
    "sessionId": "s1",
    "models": {
        "currentModelId": "small",
        "availableModels": [{"modelId": "small", "name": "S"}, {"modelId": "big", "name": "B"}],
    },
}
TELLING = """
    started = os.environ.get("THE_MODEL", "none")
    def chosen(message):
        say(message["params"]["modelId"] + "! ")
        answer(message, {{}})
    def load(message):
        answer(message, {session})
    def prompt(message):
        say(started + " ")
        answer(message, {{"stopReason": "end_turn"}})
    serve(prompt, session={session}, capabilities={{"loadSession": True}},
          session_set_model=chosen, session_load=load)
"""


async def test_a_listed_model_is_chosen_in_the_session_without_a_restart(scripted, heard) -> None:
    session = await scripted(TELLING.format(session=MODELS), model_variable="THE_MODEL")
    for model in ("small", "big", "big", None):
        await session.prompt(Prompt("m", "x", model=model))
    assert heard.text() == "none big! none none none "


async def test_a_model_that_is_not_listed_is_given_at_start_where_that_is_possible(
    scripted, heard
) -> None:
    session = await scripted(TELLING.format(session=MODELS), model_variable="THE_MODEL")
    for model in ("huge", "huge", "small"):
        outcome = await session.prompt(Prompt("m", "x", model=model))
        assert outcome.stop_reason == StopReason.END_TURN
    assert heard.text() == "huge huge huge "
    fixed = await scripted(TELLING.format(session=MODELS))
    outcome = await fixed.prompt(Prompt("m", "x", model="huge"))
    assert "does not offer the model huge. It offers: small, big" in (outcome.error or "")


async def test_a_session_that_cannot_be_resumed_is_loaded(scripted, heard, spec) -> None:
    session = await scripted(
        """
        def resume(message):
            refuse(message, -32601, "Method not found")
        def load(message):
            say("history, not news")
            update(sessionUpdate="available_commands_update", availableCommands=[])
            answer(message, {})
        def prompt(message):
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, session_resume=resume, session_load=load,
              capabilities={"loadSession": True, "sessionCapabilities": {"resume": {}}})
        """,
        replace(spec, session_id="old"),
    )
    assert session.id == "old"
    await session.prompt(HELLO)
    assert [e.payload["sessionUpdate"] for e in heard.events] == ["available_commands_update"]


async def test_tokens_are_found_where_the_agent_tells_them(scripted) -> None:
    session = await scripted("""
        def prompt(message):
            counts = {"input_tokens": 7, "output_tokens": 2}
            answer(message, {"stopReason": "end_turn", "_meta": {"quota": {"token_count": counts}}})
        serve(prompt)
    """)
    outcome = await session.prompt(HELLO)
    assert outcome.usage == {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}


async def test_a_tool_for_todos_tells_the_plan(scripted, heard) -> None:
    session = await scripted(
        """
        def prompt(message):
            todos = [{"content": "one", "status": "pending", "priority": "high"}]
            for tool in ("todowrite", "other"):
                update(sessionUpdate="tool_call", toolCallId=tool, title=tool, rawInput={})
                update(sessionUpdate="tool_call_update", toolCallId=tool, rawInput={"todos": todos})
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
        """,
        traps={"todo_tool": "todowrite"},
    )
    await session.prompt(HELLO)
    (plan,) = heard.payloads("plan")
    assert plan["entries"] == [{"content": "one", "status": "pending", "priority": "high"}]
    assert len(heard.events) == 5


async def test_errors_told_as_last_words_fail_the_turn_and_usage_is_of_the_turn(scripted) -> None:
    session = await scripted(
        """
        total = 0
        def prompt(message):
            global total
            total += 10
            say("Error: at first ")
            say("fine" if total < 20 else "Error: no luck (HTTP 401)")
            answer(message, {"stopReason": "end_turn", "usage": {"totalTokens": total}})
        serve(prompt)
        """,
        traps={"error_prefix": "Error: ", "usage_adds_up": True},
    )
    good, bad = await session.prompt(HELLO), await session.prompt(HELLO)
    assert (good.stop_reason, good.error) == (StopReason.END_TURN, None)
    assert bad.stop_reason == StopReason.FAILED
    assert bad.error == "Scripted reported an error: no luck (HTTP 401). Check its key."
    assert [one.usage for one in (good, bad)] == [{"totalTokens": 10}] * 2


async def test_any_model_may_be_set_where_none_is_listed(scripted, heard) -> None:
    session = await scripted(
        TELLING.format(session={"sessionId": "s1"}),
        model_variable="THE_MODEL",
        traps={"takes_any_model": True},
    )
    for model in ("huge", "huge", "small"):
        await session.prompt(Prompt("m", "x", model=model))
    assert heard.text() == "huge! none none small! none "


async def test_servers_over_stdio_are_given_at_start_in_a_file(scripted, heard, spec) -> None:
    config = {"command": "notes", "args": ["-v"], "env": {"TOKEN": "secret"}}
    server = McpServer(name="notes", transport="stdio", config=config)
    session = await scripted(
        """
        def new(message):
            servers.extend(message["params"]["mcpServers"])
            answer(message, SESSION)
        servers = []
        def prompt(message):
            file = sys.argv[2].removeprefix("@")
            say(json.dumps([sys.argv[1], os.stat(file).st_mode & 0o777, servers]))
            say(open(file).read())
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, session_new=new)
        """,
        replace(spec, mcp_servers=(server,)),
        traps={"stdio_mcp_arguments": ("--servers", "@{file}")},
    )
    await session.prompt(HELLO)
    told, content = (chunk["content"]["text"] for chunk in heard.payloads("agent_message_chunk"))
    assert json.loads(told) == ["--servers", 0o600, []]
    listed = {"type": "stdio", **config, "tools": ["*"]}
    assert json.loads(content) == {"mcpServers": {"notes": listed}}


async def test_servers_that_may_not_be_shown_are_given_in_a_file(scripted, heard, spec) -> None:
    own = {"command": "notes", "env": {"TOKEN": "secret"}}
    far = {"url": "http://127.0.0.1:9", "headers": {"Authorization": "secret"}}
    servers = (
        McpServer(name="own", transport="stdio", config=own),
        McpServer(name="far", transport="http", config=far),
    )
    session = await scripted(
        """
        def new(message):
            params.update(message["params"])
            answer(message, SESSION)
        params = {}
        def prompt(message):
            file = params["_meta"]["x"]["options"]["servers"]
            say(json.dumps([params["mcpServers"], params["_meta"], os.stat(file).st_mode & 0o777]))
            say(open(file).read())
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, session_new=new, capabilities={"mcpCapabilities": {"http": True}})
        """,
        replace(spec, mcp_servers=servers),
        traps={
            "session_meta": {"x": {"options": {"plain": True}}},
            "mcp_file_meta": {"x": {"options": {"servers": "{file}"}}},
        },
    )
    await session.prompt(HELLO)
    told, content = (chunk["content"]["text"] for chunk in heard.payloads("agent_message_chunk"))
    file = Path(spec.state_directory, "mcp.json")
    options = {"plain": True, "servers": str(file)}
    assert json.loads(told) == [[], {"x": {"options": options}}, 0o600]
    listed = json.loads(content)["mcpServers"]
    assert listed["own"]["env"] == own["env"]
    assert listed["far"] == {"type": "http", **far}
    await session.close()
    assert not os.path.exists(file)  # noqa: PTH110, ASYNC240


async def test_history_told_after_a_load_is_no_news(
    scripted, heard, spec, workspace, appears
) -> None:
    session = await scripted(
        """
        def load(message):
            answer(message, {"modes": {"currentModeId": "a", "availableModes": []}})
            say("history")
            update(sessionUpdate="usage_update", used=1, size=2)
            send(id=9, method="vendor/ask")
            read()
            open("told", "w").write("x")
        def prompt(message):
            say("news")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, capabilities={"loadSession": True}, session_load=load)
        """,
        replace(spec, session_id="old"),
    )
    await appears(workspace / "told")
    await session.prompt(HELLO)
    assert heard.text() == "news"
    assert len(heard.payloads("usage_update")) == 1


async def test_history_that_is_told_late_is_waited_for(scripted, heard, spec) -> None:
    session = await scripted(
        """
        def load(message):
            answer(message, {})
            for word in ("late ", "history "):
                time.sleep(0.1)
                say(word)
        def prompt(message):
            say("news")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, capabilities={"loadSession": True}, session_load=load)
        """,
        replace(spec, session_id="old"),
        traps={"tells_history_late": True},
    )
    await session.prompt(HELLO)
    assert heard.text() == "news"


@pytest.mark.parametrize(
    ("made", "now", "left"), [(600, 600, 60), (615, 659.5, 0.5), (659, 660, 0), (0, 660, 0)]
)
def test_the_minute_of_a_session_passes_first(made: float, now: float, left: float) -> None:
    assert seconds_to_next_minute(made, now) == left


def test_of_a_session_s_files_the_one_that_holds_it_stays(spec, tmp_path) -> None:
    preset = load_presets()["gemini"]
    chats = tmp_path / ".gemini/tmp/project/chats"
    chats.mkdir(parents=True)
    sizes = {"01-abcdef01": 30, "02-abcdef01": 10, "03-abcdef01": 20, "03-abcdef02": 10}
    for name, size in sizes.items():
        (chats / f"session-{name}.jsonl").write_text("x" * size)
    here = replace(spec, environment={"HOME": str(tmp_path)}, session_id="abcdef01-7")
    for _ in range(2):
        clear_twins(preset, here)
    left = sorted(path.name for path in chats.iterdir())
    assert left == ["session-01-abcdef01.jsonl", "session-03-abcdef02.jsonl"]
    clear_twins(preset, replace(here, session_id=None))
    clear_twins(preset, replace(here, session_id="*"))
    assert sorted(path.name for path in chats.iterdir()) == left


async def test_a_session_of_an_earlier_minute_is_reopened_at_once(scripted, heard, spec) -> None:
    traps = {"reopens_next_minute": True}
    session = await scripted(HANGING, timeouts=Timeouts(silence=1.5), traps=traps)
    mark = Path(spec.state_directory, "session-made")
    os.utime(mark, (0, 0))
    with pytest.raises(AgentDiedError):
        await session.prompt(HELLO)
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert await asyncio.to_thread(os.path.getmtime, mark) == 0


async def test_a_sandbox_is_given_settings_and_keeps_its_own(spec, tmp_path) -> None:
    preset = Preset(name="Scripted", command=("true",), home_files={".it/settings.json": "ours"})
    environment = {**spec.environment, "HOME": str(tmp_path)}
    settings = tmp_path / ".it" / "settings.json"
    for isolated, found in ((False, None), (True, "ours"), (True, "theirs")):
        if found == "theirs":
            settings.write_text(found)
        given = replace(spec, environment=environment, isolated=isolated)
        process = await spawn(preset, given, ["true"])
        await process.end(0)
        assert (settings.read_text() if settings.exists() else None) == found


@pytest.mark.parametrize("preset", load_presets().values(), ids=lambda preset: preset.name)
def test_what_homes_are_given_is_json(preset: Preset) -> None:
    assert all(json.loads(text) for text in preset.home_files.values())


LOSING = """
    def load(message):
        answer(message, {})
    def prompt(message):
        text = message["params"]["prompt"][0]["text"]
        opened = os.path.exists("lost")
        if text == "lose" or (text == "work and lose" and not opened):
            open("lost", "w").close()
            if text != "lose":
                say("worked ")
            global lost
            lost = True
        if lost:
            return refuse(message, -32002, "Resource not found")
        say(text)
        answer(message, {"stopReason": "end_turn"})
    lost = False
    serve(prompt, capabilities={"loadSession": True}, session_load=load)
"""


async def test_a_session_that_the_agent_has_lost_is_reopened(scripted, heard) -> None:
    session = await scripted(LOSING)
    first = session.process_id
    assert (await session.prompt(Prompt("m1", "lose"))).stop_reason == StopReason.FAILED  # twice
    assert session.process_id != first and session.id == "s1"
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert heard.text() == "hello"


async def test_a_session_whose_inner_process_ended_is_reopened(scripted, heard) -> None:
    body = """
    def load(message):
        answer(message, {})
    def prompt(message):
        if not os.path.exists("ended"):
            open("ended", "w").close()
            return refuse(message, -32603, "Internal error: the process exited unexpectedly.")
        say("usable")
        answer(message, {"stopReason": "end_turn"})
    serve(prompt, capabilities={"loadSession": True}, session_load=load)
    """
    session = await scripted(body, traps={"inner_end": "process exited unexpectedly"})
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert (session.id, heard.text()) == ("s1", "usable")


async def test_a_prompt_that_the_agent_has_worked_on_is_not_repeated(scripted, heard) -> None:
    session = await scripted(LOSING)
    failed = await session.prompt(Prompt("m1", "work and lose"))
    assert failed.stop_reason == StopReason.FAILED and heard.text() == "worked "
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert heard.text() == "worked hello"


FLOOD = """
    def prompt(message):
        line, wrote = b'{"jsonrpc": "2.0", "id": 1, "method": "none", "params": {}}\\n', 0
        os.set_blocking(1, False)
        while wrote < 200_000:
            if select.select([], [1], [], 2)[1]:
                try:
                    os.write(1, line)
                    wrote += 1
                except BlockingIOError:
                    pass
            elif os.path.exists("limited"):
                break
        os.set_blocking(1, True)
        threading.Thread(target=sys.stdin.read, daemon=True).start()
        say(f"wrote {wrote}.")
        answer(message, {"stopReason": "end_turn"})
    import select, threading
    serve(prompt)
"""


async def test_one_that_does_not_read_its_answers_is_not_read(scripted, heard, workspace) -> None:
    session = await scripted(FLOOD)
    turn = asyncio.create_task(session.prompt(HELLO))
    await eventually(lambda: session._link._transport._sending >= MOST_SENDING, "the limit")
    (workspace / "limited").touch()
    assert (await turn).stop_reason == StopReason.END_TURN
    assert int(heard.text().removeprefix("wrote ").rstrip(".")) < 100_000


async def test_one_that_is_not_read_can_be_interrupted(scripted) -> None:
    session = await scripted(FLOOD, timeouts=replace(Timeouts(), cancel=0.1))
    turn = asyncio.create_task(session.prompt(HELLO))
    await eventually(lambda: session._link._transport._sending >= MOST_SENDING, "the limit")
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
