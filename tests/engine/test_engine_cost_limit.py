"""The cost limit of a workspace: what it stops, what waits, and what goes on when it is raised."""

import asyncio
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.port import AgentDriver
from quarterdeck.agents.presets import Preset
from quarterdeck.wire.permissions import Permissions
from tests.agents.conftest import PRELUDE
from tests.engine.conftest import NoAgents, stop
from tests.engine.test_engine_chats import deltas, new_chat

AGENT = """
    stored = COUNTS_ON and os.path.exists("total")
    total = float(open("total").read()) if stored else 0.0
    def prompt(message):
        global total
        for word in message["params"]["prompt"][0]["text"].split():
            if word == "later":
                open("pid", "w").write(str(os.getpid()))
                answer(message, {"stopReason": "end_turn"})
                open("begin").read()
                return say("more")
            if word == "fail":
                return refuse(message, -32603, "It does not want to.")
            if word == "wait":
                while read().get("method") != "session/cancel":
                    pass
                return answer(message, {"stopReason": "cancelled"})
            if word != "free":
                total += float(word)
                update(sessionUpdate="usage_update", used=1, size=10,
                       cost={"amount": total, "currency": "USD"})
                open("total", "w").write(str(total))
        say("worked")
        answer(message, {"stopReason": "end_turn"})
    serve(prompt)
"""


class Scripted(NoAgents):
    """A catalog of one agent, which costs what its messages say.

    `counts_on`: it reports the total of its session, also that of an earlier process.
    """

    def __init__(self, root: Path, counts_on: bool = True) -> None:
        script = root / "agent.py"
        body = textwrap.dedent(AGENT).replace("COUNTS_ON", str(counts_on))
        script.write_text(PRELUDE + body)
        self._driver = AcpDriver(
            Preset(name="Scripted", command=(sys.executable, "-I", str(script)))
        )

    def driver(self, agent_id: str) -> AgentDriver:
        return self._driver


def limit(dollars: float | None) -> Permissions:
    return Permissions(cost_limit=dollars)


def results(entries: Any, chat: Any) -> list[str]:
    """How turns ended: their reasons, or their errors."""
    return [
        payload["error"] or payload["stopReason"]
        for kind, payload in deltas(entries, chat)
        if kind == "turn-result"
    ]


def notices(entries: Any, chat: Any) -> list[str]:
    return [payload["text"] for kind, payload in deltas(entries, chat) if kind == "notice"]


def record(entries: Any) -> dict[str, Any]:
    return [entry.payload["chat"] for entry in entries.all if entry.type == "chat.updated"][-1]


REACHED = "The cost limit of $1.00 is reached: ${} so far. Raise or remove it in the permissions of the replica to go on."


async def test_a_turn_over_the_limit_is_stopped_and_the_queue_waits(
    place, message, wait_until
) -> None:
    place.permissions = limit(1.0)
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "0.4"))
    await link.chat_send(message(chat, "0.8 wait"))
    await link.chat_send(message(chat, "0.1"))
    await wait_until(lambda: len(results(entries, chat)) == 2)
    assert results(entries, chat) == ["end_turn", REACHED.format("1.20")]
    await wait_until(lambda: not record(entries)["processing"])
    assert record(entries)["turnFailed"]
    assert not notices(entries, chat)
    await link.permissions_set(limit(5.0))
    await wait_until(lambda: len(results(entries, chat)) == 3)
    assert results(entries, chat)[2] == "end_turn" and not record(entries)["turnFailed"]


async def test_a_message_that_waits_is_told_and_runs_without_a_limit(
    place, message, wait_until
) -> None:
    place.permissions = limit(1.0)
    task = await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "0.6"))
    await wait_until(lambda: len(results(entries, chat)) == 1)
    await stop(task)
    # The next engine knows what was spent.
    place.permissions = limit(0.5)
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    await link.chat_send(message(chat, "0.1"))
    await wait_until(lambda: notices(entries, chat))
    assert notices(entries, chat) == [
        "The cost limit of $0.50 is reached: $0.60 so far. Raise or remove it in the permissions of the replica to go on."
    ]
    assert record(entries)["turnFailed"] and not record(entries)["processing"]
    await link.permissions_set(limit(None))
    await wait_until(lambda: len(results(entries, chat)) == 2)
    assert results(entries, chat)[1] == "end_turn"


def costs(entries: Any, chat: Any) -> list[float | None]:
    """What the turns have cost."""
    return [
        payload["cost"] and payload["cost"]["amount"]
        for kind, payload in deltas(entries, chat)
        if kind == "turn-result"
    ]


@pytest.mark.parametrize("counts_on", [True, False])
async def test_the_first_turn_of_each_engine_is_counted(place, message, counts_on: bool) -> None:
    place.permissions = limit(1.0)
    task = await place.start(lambda: Scripted(place.root, counts_on))
    chat = await new_chat(await place.link())
    for number, text in enumerate(("0.6", "0.3", "0.2 wait"), 1):
        entries, link = await place.entries(), await place.link()
        await link.chat_send(message(chat, text))
        await entries.wait("chat.turn.completed", number)
        if number < 3:
            await stop(task)
            task = await place.start(lambda: Scripted(place.root, counts_on))
    assert results(entries, chat) == ["end_turn", "end_turn", REACHED.format("1.10")]
    assert costs(entries, chat) == [0.6, 0.3, 0.2]


async def test_the_cost_of_a_turn_whose_engine_was_killed_is_counted(
    place, message, wait_until
) -> None:
    place.permissions = limit(1.0)
    task = await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "0.6 wait"))
    await wait_until(lambda: '"usage_update"' in place.journal.read_text())
    await stop(task)
    lines = place.journal.read_text().splitlines(keepends=True)
    used = next(n for n, line in enumerate(lines) if '"usage_update"' in line)
    place.journal.write_text("".join(lines[: used + 1]))  # as if nothing was written afterwards
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    await link.chat_send(message(chat, "0.5 wait"))
    await wait_until(lambda: len(results(entries, chat)) == 2)
    assert results(entries, chat)[1] == REACHED.format("1.10")


async def test_what_an_agent_begins_by_itself_is_ended_at_the_limit(
    place, message, wait_until
) -> None:
    place.permissions = limit(1.0)
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chat, other = await new_chat(link), await new_chat(link)
    os.mkfifo(place.workspace / "begin")
    await link.chat_send(message(chat, "0 later"))
    await wait_until(lambda: len(results(entries, chat)) == 1)
    await link.chat_send(message(other, "1.1"))
    await wait_until(lambda: len(results(entries, other)) == 1)
    process = Path("/proc", (place.workspace / "pid").read_text())
    await asyncio.to_thread((place.workspace / "begin").write_text, "")
    await wait_until(lambda: notices(entries, chat))
    assert notices(entries, chat) == [REACHED.format("1.10")]
    assert record(entries)["turnFailed"] and not record(entries)["processing"]
    await wait_until(lambda: not process.exists())
    assert len(results(entries, chat)) == 1


async def test_a_message_behind_a_turn_that_failed_is_told_once_for_each_limit(
    place, message, wait_until
) -> None:
    place.permissions = limit(1.0)
    task = await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chat, other = await new_chat(link), await new_chat(link)
    await link.chat_send(message(chat, "fail"))
    await link.chat_send(message(other, "1.1"))
    await entries.wait("chat.turn.completed", 2)
    told = [REACHED.format("1.10")]
    await link.chat_send(message(chat, "free"))
    await wait_until(lambda: notices(entries, chat) == told)
    await stop(task)
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    await link.chat_send(message(chat, "free"))
    await link.permissions_set(limit(0.5))
    told.append(told[0].replace("1.00", "0.50"))
    await wait_until(lambda: notices(entries, chat) == told)
    await link.permissions_set(limit(2))
    await entries.wait("chat.turn.completed", 4)
    assert results(entries, chat)[1:] == ["end_turn", "end_turn"]


async def test_nothing_is_told_of_a_queue_that_may_still_be_canceled(
    place, message, wait_until
) -> None:
    task = await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "0.6"))
    await wait_until(lambda: len(results(entries, chat)) == 1)
    await stop(task)
    place.permissions, place.hold = limit(0.5), True
    await place.start(lambda: Scripted(place.root))
    entries, link = await place.entries(), await place.link()
    await link.chat_send(message(chat, "0.1"))
    await link.permissions_set(limit(0.25))
    assert not notices(entries, chat)
    await link.queue_release()
    await wait_until(lambda: notices(entries, chat))


async def test_an_agent_without_a_cost_is_stopped_only_by_others_and_that_is_said_once(
    place, message, wait_until
) -> None:
    place.permissions = limit(1.0)
    task = await place.start(lambda: Scripted(place.root))
    chat = await new_chat(await place.link())
    # A turn that failed or was canceled tells nothing about what the agent reports.
    for number, text in enumerate(("fail", "wait", "free", "free"), 1):
        entries, link = await place.entries(), await place.link()
        await link.chat_send(message(chat, text))
        await entries.wait("chat.turn.started", number)
        if text == "wait":
            await link.chat_interrupt(chat)
        await entries.wait("chat.turn.completed", number)
        assert len(notices(entries, chat)) == (number > 2)
        if number == 3:
            await stop(task)
            await place.start(lambda: Scripted(place.root))
    assert notices(entries, chat) == [
        "The agent does not report its cost in dollars, so it does not count towards the limit of"
        " $1.00. Once other agents have reached the limit, it is stopped too."
    ]
    other = await new_chat(link)
    await link.chat_send(message(other, "1.1"))
    await entries.wait("chat.turn.completed", 5)
    await link.chat_send(message(chat, "free"))
    await wait_until(lambda: notices(entries, chat)[1:] == [REACHED.format("1.10")])
