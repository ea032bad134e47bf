"""The driver against agents that are written here: good ones, bad ones, dying ones."""

import asyncio
import json
import re
import time
from dataclasses import replace

import pytest

from quarterdeck.agents.port import (
    AgentDiedError,
    AgentError,
    AgentUnavailableError,
    ModelOffer,
    ModelSession,
    Prompt,
    StopReason,
)
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.wire.chats import Base64Source, Image

HELLO = Prompt("m1", "hello")


async def test_a_turn_brings_updates_in_order_and_the_end(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            for n in range(3):
                say(message["params"]["prompt"][0]["text"] + str(n))
            answer(message, {"stopReason": "end_turn", "usage": {"totalTokens": 7}})
        serve(prompt)
    """)
    outcome = await session.prompt(HELLO)
    assert heard.text() == "hello0hello1hello2"
    assert outcome.stop_reason == StopReason.END_TURN
    assert outcome.usage == {"totalTokens": 7}
    assert session.id == "s1"


async def test_unknown_updates_and_fields_pass_through_untouched(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            update(sessionUpdate="hologram", shape={"sides": [1, {"x": None}]}, _meta={"k": 1})
            update(sessionUpdate="tool_call", toolCallId="t", title="x", kind="teleport", extra=5)
            send(method="vendor/notify", params={"x": 1})
            send(id="v1", method="vendor/ask", params={})
            assert read()["error"]["code"] == -32601
            answer(message, {"stopReason": "galloping"})
        serve(prompt)
    """)
    outcome = await session.prompt(HELLO)
    assert outcome.stop_reason == "galloping"
    assert [e.payload for e in heard.events] == [
        {
            "sessionUpdate": "hologram",
            "shape": {"sides": [1, {"x": None}]},
            "_meta": {"k": 1},
        },
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "t",
            "title": "x",
            "kind": "teleport",
            "extra": 5,
        },
    ]


async def test_what_comes_between_turns_is_heard_in_the_next(
    scripted, heard, workspace, appears
) -> None:
    session = await scripted(
        """
        def prompt(message):
            answer(message, {"stopReason": "end_turn"})
            say("late ")
            send(id=9, method="vendor/ask")
            read()
            open("said", "w").write("x")
        serve(prompt)
        """,
        timeouts=Timeouts(rest=0.2),
    )
    await session.prompt(HELLO)
    await appears(workspace / "said")
    assert heard.events == []
    await session.prompt(HELLO)
    assert heard.text() == "late "


async def test_a_slow_sink_holds_the_agent_back(scripted, heard) -> None:
    """An event is given only after the sink has taken the one before."""
    session = await scripted("""
        def prompt(message):
            for n in range(20):
                say(f"{n} ")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    inside = 0

    async def slow(event) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0.001)
        await heard(event)
        inside -= 1

    session._recorder._sink = slow
    await session.prompt(HELLO)
    assert heard.text() == "".join(f"{n} " for n in range(20))


async def test_a_failing_sink_fails_the_turn_with_its_own_error(scripted) -> None:
    session = await scripted("""
        def prompt(message):
            say("x")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)

    async def full(event) -> None:
        raise OSError(28, "No space left on device")

    session._recorder._sink = full
    with pytest.raises(OSError, match="No space"):
        await session.prompt(HELLO)


async def test_ten_thousand_chunks_none_lost_and_cheap(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            for n in range(10_000):
                say(f"{n},")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    before = time.process_time()
    await session.prompt(HELLO)
    spent = time.process_time() - before
    assert heard.text() == "".join(f"{n}," for n in range(10_000))
    assert spent / 10_000 < 0.0002, f"{spent / 10_000 * 1e6:.0f} us a chunk"


PERMISSION = """
    def prompt(message):
        send(id=77, method="session/request_permission", params={
            "sessionId": "s1",
            "toolCall": {"toolCallId": "t", "title": "rm", "vendor": 1},
            "options": [
                {"optionId": "yes", "name": "Yes", "kind": "allow_once", "vendor": 2},
                {"optionId": "no", "name": "No", "kind": "reject_once"},
            ],
        })
        reply = read()
        cancelled = reply.get("method") == "session/cancel"
        if cancelled:
            reply = read()
        say(json.dumps(reply["result"]["outcome"]))
        answer(message, {"stopReason": "cancelled" if cancelled else "end_turn"})
    serve(prompt)
"""


def _asked(event) -> bool:
    return event.type == "acp-permission_request"


@pytest.mark.parametrize("option", ["yes", "no"])
async def test_a_permission_is_asked_and_answered(scripted, heard, option) -> None:
    session = await scripted(PERMISSION)
    turn = asyncio.create_task(session.prompt(HELLO))
    asked = (await heard.until(_asked)).payload
    assert asked["toolCall"] == {"toolCallId": "t", "title": "rm", "vendor": 1}
    assert asked["options"][0]["vendor"] == 2
    with pytest.raises(AgentError, match="one of its options: no, yes"):
        await session.respond(asked["requestId"], "maybe", None)
    assert await session.respond(asked["requestId"], option, None)
    assert not await session.respond(asked["requestId"], option, None)
    assert (await turn).stop_reason == StopReason.END_TURN
    chosen = {"outcome": "selected", "optionId": option}
    assert [e.type for e in heard.events] == [
        "acp-permission_request",
        "acp-permission_outcome",
        "acp-session_update",
    ]
    assert heard.events[1].payload == {"requestId": asked["requestId"], "outcome": chosen}
    assert json.loads(heard.text()) == chosen


async def test_an_interrupt_cancels_an_open_permission(scripted, heard) -> None:
    session = await scripted(PERMISSION)
    turn = asyncio.create_task(session.prompt(HELLO))
    asked = (await heard.until(_asked)).payload
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    assert json.loads(heard.text()) == {"outcome": "cancelled"}
    assert not await session.respond(asked["requestId"], "yes", None)


async def test_an_agent_that_dies_asking_leaves_no_open_permission(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            send(id=1, method="session/request_permission", params={
                "toolCall": {}, "options": [{"optionId": "yes"}]})
            sys.exit(4)
        serve(prompt)
    """)
    with pytest.raises(AgentDiedError, match="exit status 4"):
        await session.prompt(HELLO)
    assert [e.type for e in heard.events] == ["acp-permission_request", "acp-permission_outcome"]


async def test_death_in_mid_turn_tells_status_and_last_words(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            say("about to")
            sys.stderr.write("x" * 100_000 + "\\nboom: the end\\n")
            sys.stderr.flush()
            os._exit(3)
        serve(prompt)
    """)
    with pytest.raises(AgentDiedError) as caught:
        await session.prompt(HELLO)
    assert "Scripted ended with exit status 3" in str(caught.value)
    assert "boom: the end" in str(caught.value)
    assert len(str(caught.value)) < 5000
    assert heard.text() == "about to"


async def test_after_a_death_the_next_prompt_reopens_the_session(scripted, heard) -> None:
    session = await scripted(
        """
        def load(message):
            say("history, not news")
            answer(message, {})
        def prompt(message):
            if not os.path.exists("died"):
                open("died", "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            say("back")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, capabilities={"loadSession": True}, session_load=load)
    """
    )
    with pytest.raises(AgentDiedError, match="killed by signal 9"):
        await session.prompt(HELLO)
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert heard.text() == "back"


async def test_a_forgotten_session_starts_afresh_and_says_so(scripted, heard, spec) -> None:
    session = await scripted(
        """
        def load(message):
            refuse(message, -32002, "No such session")
        def prompt(message):
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, capabilities={"loadSession": True}, session_load=load)
    """,
        replace(spec, session_id="old"),
    )
    assert session.id == "s1"
    await session.prompt(HELLO)
    assert "could not be reopened (No such session)" in heard.text()


async def test_resume_is_preferred_to_load(scripted, spec) -> None:
    capabilities = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
    session = await scripted(
        f"""
        def resume(message):
            answer(message, {{}})
        def load(message):
            refuse(message, -32603, "not this way")
        serve(None, capabilities={capabilities}, session_load=load, session_resume=resume)
    """,
        replace(spec, session_id="old"),
    )
    assert session.id == "old"


async def test_an_error_of_the_model_fails_the_turn_in_a_sentence(scripted) -> None:
    session = await scripted("""
        def prompt(message):
            refuse(message, -32603, "Internal error", {"details": "401 invalid key"})
        serve(prompt)
    """)
    outcome = await session.prompt(HELLO)
    assert outcome.stop_reason == StopReason.FAILED
    assert outcome.error == (
        "Scripted reported an error: Internal error (401 invalid key). Check its key."
    )


async def test_garbage_on_stdout_is_skipped(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            sys.stdout.write("Welcome to the agent!\\n\\n[1, 2]\\n{}\\n" + "[" * 5000 + "\\n")
            sys.stdout.buffer.write(b'\\xff\\xfe\\n{"id": [], "result": 1}\\n')
            say("still here")
            sys.stdout.write('{"jsonrpc":"2.0","method":"session/update","params":7}\\n')
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert heard.text() == "still here"


async def test_what_cannot_be_stored_is_made_storable(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            update(sessionUpdate="x", bad="\\ud800!", good="\\U0001f600", n=float("nan"))
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    await session.prompt(HELLO)
    payload = {"sessionUpdate": "x", "bad": "?!", "good": "\U0001f600", "n": None}
    assert heard.events[0].payload == payload
    heard.events[0].model_dump_json()


async def test_an_agent_that_only_prints_notices_is_unavailable(scripted) -> None:
    with pytest.raises(AgentUnavailableError, match="end of life"):
        await scripted("print('this program has reached its end of life')")


async def test_an_agent_that_never_answers_is_unavailable_and_killed(
    scripted, workspace, gone
) -> None:
    with pytest.raises(AgentUnavailableError, match=r"did not answer within 0\.3 seconds"):
        await scripted(
            """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open("pid", "w").write(str(os.getpid()))
            time.sleep(1000)
            """,
            timeouts=Timeouts(start=0.3),
        )
    pid = workspace / "pid"
    assert not pid.exists() or await gone(int(pid.read_text()))


async def test_a_flood_without_an_end_of_line_is_stopped(scripted, monkeypatch) -> None:
    monkeypatch.setattr("quarterdeck.agents.session.process.LINE_LIMIT", 2 << 20)
    session = await scripted("""
        def prompt(message):
            while True:
                sys.stdout.write("y" * 65536)
        serve(prompt)
    """)
    with pytest.raises(AgentDiedError, match="a line of more than 2 MB"):
        await session.prompt(HELLO)


async def test_a_long_line_is_no_flood(scripted, heard) -> None:
    session = await scripted("""
        def prompt(message):
            say("z" * 3_000_000)
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    await session.prompt(HELLO)
    assert len(heard.text()) == 3_000_000


async def test_a_flood_of_lines_leaves_the_loop_responsive(scripted) -> None:
    session = await scripted(
        """
        def prompt(message):
            sys.stdout.write("noise\\n" * 200_000)
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """
    )
    turn = asyncio.create_task(session.prompt(HELLO))
    others = 0
    while not turn.done():
        await asyncio.sleep(0)
        others += 1
    assert (await turn).stop_reason == StopReason.END_TURN
    assert others > 1000, "other tasks ran only when the buffer was empty"


async def test_an_agent_that_ignores_cancel_is_killed_and_reopened(
    scripted, heard, workspace, gone
) -> None:
    session = await scripted(
        """
        def prompt(message):
            if os.path.exists("child"):
                say("second life")
                return answer(message, {"stopReason": "end_turn"})
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            with open("child", "w") as file:
                file.write(str(child.pid))
            say("busy")
            time.sleep(1000)
        serve(prompt)
    """,
        timeouts=Timeouts(cancel=0.2),
    )
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(lambda event: True)
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    assert await gone(int((workspace / "child").read_text()))
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert heard.text().endswith("second life")


async def test_an_interrupt_without_a_turn_does_nothing(scripted) -> None:
    session = await scripted("serve(None)")
    await session.interrupt()


MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "https://x/modes#plan"}]}
OPTIONS = [
    {"id": "mode", "category": "mode", "currentValue": "build", "options": [
        {"value": "build", "name": "b"}, {"value": "plan", "name": "p"}]},
    {"id": "model", "category": "model", "currentValue": "small", "options": [
        {"group": "g", "options": [{"value": "small"}, {"value": "big"}]}]},
]  # fmt: skip
CHOOSING = """
    def chosen(message):
        params = dict(message["params"])
        del params["sessionId"]
        say(json.dumps(params) + "\\n")
        answer(message, {{}})
    def prompt(message):
        answer(message, {{"stopReason": "end_turn"}})
    serve(prompt, session={session}, session_set_mode=chosen, session_set_config_option=chosen)
"""


async def test_plan_mode_is_entered_and_left_by_modes(scripted, heard) -> None:
    session = await scripted(CHOOSING.format(session={"sessionId": "s1", "modes": MODES}))
    for plan in (False, True, True, False):
        await session.prompt(Prompt("m", "x", plan_mode=plan))
    told = [json.loads(line)["modeId"] for line in heard.text().splitlines()]
    assert told == ["https://x/modes#plan", "ask"]


async def test_modes_of_a_configured_agent(scripted, heard) -> None:
    listed = [{"id": id, "name": id.title()} for id in ("ask", "auto", "drafting")]
    modes = {"currentModeId": "ask", "availableModes": listed}
    body = CHOOSING.format(session={"sessionId": "s1", "modes": modes})
    session = await scripted(body, permission_mode="auto", plan_mode="drafting")
    offered = session.settings.permission_mode
    assert offered is not None and [choice.id for choice in offered.choices] == ["ask", "auto"]
    for plan, mode in ((False, None), (True, None), (False, "ask"), (False, "gone")):
        await session.prompt(Prompt("m", "x", plan_mode=plan, permission_mode=mode))
    told = [json.loads(line)["modeId"] for line in heard.text().splitlines()]
    assert told == ["auto", "drafting", "ask"]
    with pytest.raises(AgentError, match="does not offer the permission mode gone"):
        await session.set_permission_mode("gone")


async def test_a_plan_approved_in_its_turn_is_not_left_to_review(scripted) -> None:
    session = await scripted(
        """
        def prompt(message):
            if "approved" in message["params"]["prompt"][0]["text"]:
                update(sessionUpdate="current_mode_update", currentModeId="ask")
            answer(message, {{"stopReason": "end_turn"}})
        def chosen(message):
            answer(message, {{}})
        serve(prompt, session={session}, session_set_mode=chosen)
        """.format(session={"sessionId": "s1", "modes": MODES})
    )
    planned = await session.prompt(Prompt("m", "x", plan_mode=True))
    approved = await session.prompt(Prompt("m", "approved", plan_mode=True))
    assert (planned.planned, approved.planned) == (None, False)


async def test_plan_mode_and_model_are_chosen_by_options(scripted, heard) -> None:
    session = await scripted(CHOOSING.format(session={"sessionId": "s1", "configOptions": OPTIONS}))
    await session.prompt(Prompt("m", "x", plan_mode=True, model="big"))
    await session.prompt(Prompt("m", "x", model="big"))
    told = [json.loads(line) for line in heard.text().splitlines()]
    assert told == [
        {"configId": "model", "value": "big"},
        {"configId": "mode", "value": "plan"},
        {"configId": "mode", "value": "build"},
    ]
    outcome = await session.prompt(Prompt("m", "x", model="huge"))
    assert outcome.stop_reason == StopReason.FAILED
    assert "does not offer the model huge. It offers: small, big" in (outcome.error or "")


async def test_the_thinking_level_is_the_nearest_that_is_offered(scripted, heard) -> None:
    levels = [{"value": value, "name": value} for value in ("low", "high", "max")]
    option = {"id": "e", "category": "thought_level", "currentValue": "low", "options": levels}
    opened = {"sessionId": "s1", "configOptions": [option]}
    session = await scripted(CHOOSING.format(session=opened))
    for level in ("low", "medium", "xhigh", "high", "max", None):
        await session.prompt(Prompt("m", "x", thinking_level=level))
    told = [json.loads(line)["value"] for line in heard.text().splitlines()]
    assert told == ["high", "max"]
    plain = await scripted(CHOOSING.format(session={"sessionId": "s1"}))
    outcome = await plain.prompt(Prompt("m", "x", thinking_level="max"))
    assert outcome.stop_reason == StopReason.END_TURN


async def test_what_the_agent_cannot_do_fails_before_it_is_asked(scripted) -> None:
    session = await scripted(CHOOSING.format(session={"sessionId": "s1"}))
    planned = await session.prompt(Prompt("m", "x", plan_mode=True))
    assert planned.stop_reason == StopReason.FAILED
    assert "no plan mode" in (planned.error or "")
    source = Base64Source(type="base64", media_type="image/png", data="AAAA")
    shown = await session.prompt(Prompt("m", "x", images=[Image(source=source)]))
    assert "does not accept images" in (shown.error or "")


async def test_another_model_restarts_an_agent_that_takes_it_at_start(scripted, heard) -> None:
    session = await scripted(
        """
        def load(message):
            answer(message, {})
        def prompt(message):
            say(os.environ.get("THE_MODEL", "none") + " ")
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, capabilities={"loadSession": True}, session_load=load)
    """,
        model_variable="THE_MODEL",
    )
    for model in (None, "big", "big", None):
        await session.prompt(Prompt("m", "x", model=model))
    assert heard.text() == "none big big big "


async def test_an_agent_that_wants_a_key_says_which(scripted) -> None:
    with pytest.raises(AgentUnavailableError, match=r"not logged in\. Set the variable THE_KEY"):
        await scripted(
            """
            def new(message):
                refuse(message, -32000, "Authentication required")
            serve(None, session_new=new)
            """,
            keys=("THE_KEY",),
        )


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        (None, "Scripted needs a login. Set auth_method to one that it offers: key, web."),
        ("old", "Scripted does not offer the login old. It offers: key, web."),
    ],
)
async def test_the_logins_that_an_agent_offers_are_named(scripted, chosen, reason) -> None:
    with pytest.raises(AgentUnavailableError, match=f"^{re.escape(reason)}$"):
        await scripted(
            """
            def hello(message):
                methods = [{"id": "key", "name": "Key"}, {"id": "web", "name": "Web"}]
                answer(message, {"protocolVersion": 1, "authMethods": methods})
            def new(message):
                refuse(message, -32000, "Authentication required")
            serve(None, initialize=hello, session_new=new)
            """,
            auth_method=chosen,
        )


async def test_another_protocol_version_is_refused(scripted) -> None:
    with pytest.raises(AgentUnavailableError, match="speaks version 2"):
        await scripted("""
            def hello(message):
                answer(message, {"protocolVersion": 2})
            serve(None, initialize=hello)
        """)


async def test_a_missing_directory_is_told(scripted, spec) -> None:
    with pytest.raises(AgentUnavailableError, match="does not exist"):
        await scripted("serve(None)", replace(spec, working_directory="/no/such/place"))


async def test_closing_ends_everything_and_may_be_repeated(scripted, heard, gone) -> None:
    session = await scripted("""
        def prompt(message):
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            say(str(child.pid))
            answer(message, {"stopReason": "end_turn"})
        serve(prompt)
    """)
    await session.prompt(HELLO)
    await session.close()
    await session.close()
    assert await gone(int(heard.text()))
    with pytest.raises(AgentUnavailableError, match="closed"):
        await session.prompt(HELLO)


BUSY = """
    def prompt(message):
        with open("lives", "a") as file:
            file.write("x")
        say("busy")
        time.sleep(0 if os.path.getsize("lives") > 1 else 1000)
        answer(message, {"stopReason": "end_turn"})
    serve(prompt)
"""


async def test_closing_in_mid_turn_cancels_it(scripted, heard) -> None:
    session = await scripted(BUSY)
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(lambda event: True)
    await session.close()
    assert (await turn).stop_reason == StopReason.CANCELLED


async def test_a_prompt_that_is_given_up_leaves_nothing_to_the_next(scripted, heard) -> None:
    session = await scripted(BUSY)
    turn = asyncio.create_task(session.prompt(HELLO))
    await heard.until(lambda event: True)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    heard.events.clear()
    assert (await session.prompt(HELLO)).stop_reason == StopReason.END_TURN
    assert heard.text().endswith("busy")
    assert heard.text().count("busy") == 1


MODELS = """
    def prompt(message):
        answer(message, {"stopReason": "end_turn"})

    serve(prompt, TOLD)
"""
OLDER = {
    "currentModelId": "m1",
    "availableModels": [
        {"modelId": "m1", "name": "First", "description": "d"},
        {"modelId": "m2"},
        {"modelId": ""},
    ],
}
NEWER = [
    {"id": "mode", "category": "mode", "currentValue": "a", "options": [{"value": "a"}]},
    {
        "id": "llm",
        "category": "model",
        "type": "select",
        "currentValue": "m1",
        "options": [
            {"group": "g", "name": "Group", "options": [{"value": "m1", "name": "First"}]},
            {"value": "m2"},
        ],
    },
]
OFFER = ModelOffer((("m1", "First"), ("m2", "m2")), "m1")


@pytest.mark.parametrize(
    ("told", "offered"),
    [
        ({"models": OLDER}, OFFER),
        ({"configOptions": NEWER}, OFFER),
        ({"models": OLDER, "configOptions": NEWER[:1]}, OFFER),
        ({}, None),
        ({"models": {"availableModels": []}}, None),
    ],
    ids=["older", "newer", "both", "none", "empty"],
)
async def test_the_models_that_an_agent_announces(
    scripted, told: dict[str, object], offered: ModelOffer | None
) -> None:
    session = await scripted(MODELS.replace("TOLD", repr({"sessionId": "s1", **told})))
    assert isinstance(session, ModelSession)
    assert session.models == offered
