"""Questions that are no permission requests: forms, asked field by field."""

import asyncio
import json
from typing import Any

import pytest

from quarterdeck.agents.acp.link import FormQuestion
from quarterdeck.agents.port import AgentError, Prompt, StopReason

HELLO = Prompt("m1", "hello")

ASKING = """
    def prompt(message):
        send(id=7, method="elicitation/create", params={params})
        reply = read()
        if reply.get("method") == "session/cancel":
            reply = read()
        say(json.dumps(reply["result"]))
        answer(message, {{"stopReason": "end_turn"}})
    serve(prompt)
"""


def form(*required: str, message: str = "Which?", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"sessionId": "s1", "mode": "form", "message": message, "requestedSchema": schema}


def asked(number: int):
    """Whether an event is the question of this number, from 0."""
    seen: list[Any] = []

    def check(event) -> bool:
        if event.type == "acp-permission_request" and event not in seen:
            seen.append(event)
        return len(seen) > number and event is seen[number]

    return check


async def test_a_choice_is_answered_with_an_option(scripted, heard) -> None:
    colours = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b"}]}
    session = await scripted(ASKING.format(params=form(colour=colours) | {"toolCallId": "t"}))
    turn = asyncio.create_task(session.prompt(HELLO))
    question = (await heard.until(asked(0))).payload
    assert question["title"] == "Which?"
    assert question["toolCall"] == {"toolCallId": "t"}
    offered = [(one["optionId"], one["name"]) for one in question["options"]]
    assert offered == [("r", "Red"), ("b", "b"), ("decline", "Do not answer")]
    with pytest.raises(AgentError, match="one of its options: Red, b"):
        await session.respond(question["requestId"], None, "green")
    assert await session.respond(question["requestId"], "r", None)
    assert (await turn).stop_reason == StopReason.END_TURN
    assert json.loads(heard.text()) == {"action": "accept", "content": {"colour": "r"}}


async def test_the_fields_of_a_form_are_asked_one_after_the_other(scripted, heard) -> None:
    properties = {
        "name": {"type": "string", "title": "Name", "description": "What is it called?"},
        "size": {"type": "integer", "title": "Size"},
        "sure": {"type": "boolean"},
        "parts": {"type": "array", "items": {"enum": ["a", "b"]}},
    }
    session = await scripted(ASKING.format(params=form(**properties)))
    turn = asyncio.create_task(session.prompt(HELLO))
    titles = []
    answers = [(None, "Bert"), (None, "3"), ("yes", None), ("b", None)]
    for number, (option, text) in enumerate(answers):
        question = (await heard.until(asked(number))).payload
        titles.append(question["title"])
        if text == "3":
            with pytest.raises(AgentError, match="a number"):
                await session.respond(question["requestId"], None, "large")
        assert await session.respond(question["requestId"], option, text)
    await turn
    assert titles == ["What is it called?", "Size", "sure", "parts"]
    content = {"name": "Bert", "size": 3, "sure": True, "parts": ["b"]}
    assert json.loads(heard.text()) == {"action": "accept", "content": content}
    outcomes = [e.payload["outcome"] for e in heard.events if e.type == "acp-permission_outcome"]
    assert outcomes[0] == {"outcome": "answered", "text": "Bert"}


async def test_a_question_may_be_declined(scripted, heard) -> None:
    session = await scripted(ASKING.format(params=form(name={"type": "string"})))
    turn = asyncio.create_task(session.prompt(HELLO))
    question = (await heard.until(asked(0))).payload
    await session.respond(question["requestId"], "decline", None)
    await turn
    assert json.loads(heard.text()) == {"action": "decline"}


async def test_an_interrupt_cancels_a_question(scripted, heard) -> None:
    two = form(name={"type": "string"}, size={"type": "integer"})
    session = await scripted(ASKING.format(params=two))
    turn = asyncio.create_task(session.prompt(HELLO))
    question = (await heard.until(asked(0))).payload
    await session.interrupt()
    assert (await turn).stop_reason == StopReason.CANCELLED
    assert json.loads(heard.text()) == {"action": "cancel"}
    assert not await session.respond(question["requestId"], None, "late")


@pytest.mark.parametrize(
    "params",
    [
        {"mode": "url", "elicitationId": "e", "url": "https://example.invalid", "message": "go"},
        {"mode": "form", "requestedSchema": {"properties": {"x": 7}}},
    ],
)
async def test_what_cannot_be_asked_is_declined(scripted, heard, params) -> None:
    session = await scripted(ASKING.format(params=params))
    await session.prompt(HELLO)
    assert [e.type for e in heard.events] == ["acp-session_update"]
    assert json.loads(heard.text()) == {"action": "decline"}


async def test_a_form_without_fields_is_agreed_to(scripted, heard) -> None:
    session = await scripted(ASKING.format(params=form(message="Go on?")))
    turn = asyncio.create_task(session.prompt(HELLO))
    question = (await heard.until(asked(0))).payload
    assert question["title"] == "Go on?"
    await session.respond(question["requestId"], "yes", None)
    await turn
    assert json.loads(heard.text()) == {"action": "accept", "content": {}}


async def test_forms_are_told_to_be_known_and_files_are_not(scripted, heard) -> None:
    session = await scripted("""
        told = {}
        def hello(message):
            told.update(message["params"]["clientCapabilities"])
            answer(message, {"protocolVersion": 1})
        def prompt(message):
            say(json.dumps(told))
            answer(message, {"stopReason": "end_turn"})
        serve(prompt, initialize=hello)
    """)
    await session.prompt(HELLO)
    assert json.loads(heard.text()) == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        "elicitation": {"form": {}},
        "_meta": {"terminal_output": True, "terminal_output_delta": True},
    }


async def test_a_choice_with_a_field_for_other_words_is_one_question(scripted, heard) -> None:
    fields = {
        "q": {"type": "string", "title": "Header", "enum": ["red", "blue"]},
        "q_custom": {"type": "string", "title": "Other"},
    }
    session = await scripted(ASKING.format(params=form(**fields)))
    turn = asyncio.create_task(session.prompt(HELLO))
    question = (await heard.until(asked(0))).payload
    assert (question["title"], question["acceptsText"]) == ("Which?", True)
    await session.respond(question["requestId"], None, "green, rather")
    await turn
    assert json.loads(heard.text()) == {
        "action": "accept",
        "content": {"q_custom": "green, rather"},
    }


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "9" * 5000, "many"])
def test_what_json_has_no_word_for_is_no_number(text: str) -> None:
    question = FormQuestion("price", "Which price?", "number")
    with pytest.raises(AgentError, match="a number"):
        question.check(text)
    question.check("2.5")
