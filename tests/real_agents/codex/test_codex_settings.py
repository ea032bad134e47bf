"""Codex's permission modes, models, thinking levels and commands."""

import asyncio
import json
from typing import Any

import pytest

from quarterdeck.agents.codex.session import CodexSession
from quarterdeck.agents.port import AgentError, Prompt, StopReason
from quarterdeck.engine.settings import model_in_use
from quarterdeck.wire.chats import ChatSetting
from quarterdeck.wire.history import NOTED_STATE, AgentEvent
from tests.real_agents.codex.place import MODEL, Place, configuration

pytestmark = pytest.mark.long


def prompt(text: str, **more: Any) -> Prompt:
    return Prompt("m", text, **more)


def current(setting: ChatSetting | None) -> str | None:
    return setting.current.id if setting and setting.current else None


def asked(event: AgentEvent) -> bool:
    return event.type == "acp-permission_request"


async def touches(place: Place, session: CodexSession, name: str, **more: Any) -> bool:
    """Run a turn that makes a file; whatever is asked is declined. Return whether it was made."""
    known = len(place.heard.events)
    turn = asyncio.create_task(session.prompt(prompt(f"shell touch {name}", **more)))
    while not turn.done():
        new, known = place.heard.events[known:], len(place.heard.events)
        for event in filter(asked, new):
            await session.respond(event.payload["requestId"], "decline", None)
        await asyncio.wait({turn}, timeout=0.05)
    assert (await turn).error is None
    return (place.directory / name).exists()


async def test_the_model_of_the_configuration_is_in_use_not_the_default(place: Place) -> None:
    session = await place.open()
    await session.prompt(prompt("say x"))
    assert place.model.requests[-1].body["model"] == MODEL
    assert session.models is not None and session.models.default != MODEL
    assert model_in_use(session) == MODEL


async def test_permission_modes_decide_what_is_asked(place: Place) -> None:
    session = await place.open()
    assert current(session.settings.permission_mode) == "agent"
    assert await touches(place, session, "a")
    assert not any(map(asked, place.heard.events))
    await session.set_permission_mode("ask")
    assert current(session.settings.permission_mode) == "ask"
    assert not await touches(place, session, "b")
    assert sum(map(asked, place.heard.events)) == 1
    assert await touches(place, session, "c", permission_mode="full-access")
    assert current(session.settings.permission_mode) == "full-access"
    assert sum(map(asked, place.heard.events)) == 1
    with pytest.raises(AgentError, match="no permission mode x"):
        await session.set_permission_mode("x")
    reopened = await place.open(session_id=session.id)
    assert not await touches(place, reopened, "d", permission_mode="ask")


async def test_what_a_person_configured_is_no_mode(place: Place) -> None:
    place.configure(
        configuration(
            place.model.url, 'approval_policy = "never"\nsandbox_mode = "workspace-write"'
        )
    )
    session = await place.open()
    assert current(session.settings.permission_mode) == "configured"


async def test_models_and_thinking_levels_are_those_that_codex_lists(place: Place) -> None:
    place.configure(configuration(place.model.url, model="gpt-6-sol"))
    session = await place.open()
    settings = session.settings
    assert current(settings.model) == "gpt-6-sol" and settings.model is not None
    listed = {choice.id: choice.name for choice in settings.model.choices}
    assert listed["gpt-6-sol"] == "GPT-6-Sol"
    assert session.models is not None and session.models.default in listed
    levels = settings.thinking_level
    assert levels is not None and "ultra" in [choice.id for choice in levels.choices]
    await session.prompt(prompt("say x", thinking_level="ultra"))
    assert current(session.settings.thinking_level) == "ultra"
    await session.prompt(prompt("say x", thinking_level="xhigh"))
    assert place.model.requests[-1].body["reasoning"]["effort"] == "xhigh"
    assert current(session.settings.thinking_level) == "xhigh"


async def test_commands_and_skills_are_listed_and_carried_out(place: Place) -> None:
    skill = place.home / ".codex" / "skills" / "pears"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: pears\ndescription: Peels a pear.\n---\nFrom its top.\n"
    )
    session = await place.open()
    await session.prompt(prompt("say hello"))
    [update] = place.heard.payloads("available_commands_update")
    told = {command["name"]: command["description"] for command in update["availableCommands"]}
    assert {"compact", "review", "init", "pears"} <= set(told) and told["pears"] == "Peels a pear."

    outcome = await session.prompt(prompt("/pears say peeled"))
    assert outcome.stop_reason == StopReason.END_TURN
    assert "From its top." in json.dumps(place.model.requests[-1].body["input"])
    outcome = await session.prompt(prompt("/init"))
    assert outcome.stop_reason == StopReason.END_TURN
    assert "AGENTS.md at the top of this repository" in json.dumps(place.model.requests[-1].body)
    outcome = await session.prompt(prompt("/review say nothing to complain of"))
    assert outcome.stop_reason == StopReason.END_TURN
    assert "nothing to complain of" in json.dumps(place.model.requests[-1].body["input"])
    outcome = await session.prompt(prompt("/compact"))
    assert outcome.stop_reason == StopReason.END_TURN
    titles = [call["title"] for call in place.heard.payloads("tool_call")]
    assert any("ontext" in title for title in titles), titles
    outcome = await session.prompt(prompt("say on we go"))
    assert outcome.stop_reason == StopReason.END_TURN and place.heard.text().endswith("on we go")


async def test_warnings_are_notices_and_another_try_is_a_state(place: Place) -> None:
    text = configuration(place.model.url, 'service_tier = "nonsense"').replace(
        "stream_max_retries = 0", "stream_max_retries = 1"
    )
    place.configure(text)
    session = await place.open()
    outcome = await session.prompt(prompt("cut"))
    assert outcome.stop_reason == StopReason.FAILED
    states = [
        p["_meta"][NOTED_STATE] for p in place.heard.payloads("session_info_update") if "_meta" in p
    ]
    assert states and "econnecting" in states[0]
    thoughts = place.heard.payloads("agent_thought_chunk")
    assert not any("econnecting" in json.dumps(thought) for thought in thoughts)
    notices = [event.payload["text"] for event in place.heard.events if event.type == "notice"]
    assert notices  # the model is unknown to codex
