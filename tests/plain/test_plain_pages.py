"""The rest of the cockpit in lines: search, the queue, commands, chats, environments, automations."""

from uuid import uuid4

import pytest

from tests.plain.conftest import Shop, create
from tests.support.waiting import until

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]


def test_messages_that_wait_are_listed_edited_and_removed(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "busy", "wait a while")
        talk.until("Scripted: Waiting.")
        talk.type("say one", "say two", "say three", "queue edit", "1", "one, better", ".")
        talk.until("Changed.")
        talk.type("queue remove", "7", "2", "queue", "queue the rest")
        talk.until("Type a number from 1 to 3.")
        talk.until("Removed.")
        assert talk.until("Queued after the running turn, number 3.")[:2] == [
            "1. one, better",
            "2. three",
        ]
        talk.type("queue remove", "", "interrupt", "wait", "queue edit")
        talk.until("Canceled.")
        talk.until("Scripted: You said: one, better.")
        talk.until("Scripted: You said: three.")
        talk.until("Scripted: You said: queue the rest.")
        talk.until("No message waits.")
        assert not any("You said: two" in line for line in talk.lines)
        assert talk.finish() == 0


def test_a_command_runs_and_chats_are_created_and_deleted(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "side", "hello")
        talk.until("Scripted: You said: hello.")
        talk.type("exec cat README; exit 3", "exec", "exit 4", "exec", "")
        talk.until("A shop.")
        talk.until("Ended with exit status 3.")
        talk.until("Ended with exit status 4.")
        talk.until("Canceled.")
        talk.type("settings", "settings mode", "chat new", "builtin")
        talk.until("The agent offers no settings yet: they come with its first turn.")
        talk.until("The agent offers no choice of mode.")
        talk.until("Opened side, chat 2, builtin.")
        talk.type("chat delete", "n", "chats", "chat delete", "maybe", "y", "chats")
        talk.until("Canceled.")
        talk.until("2. builtin is idle.")
        talk.until("Type yes or no.")
        talk.until("Deleted.")
        talk.until("Opened side, Scripted.")
        talk.until("1. Scripted is idle.")
        assert talk.finish() == 0
    assert not any(line.startswith("2. ") for line in talk.lines[-2:])


def test_words_are_found_in_all_chats_and_their_chat_is_opened(shop: Shop) -> None:
    word = uuid4().hex  # a replica that is gone may have said the word of another run
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "told", f"The word is {word}")
        talk.until("You said")
        until(lambda: len(shop.qd("search", word, "--json").json["hits"]) == 2)
        talk.type("close", "search", uuid4().hex, "search", word, "9", "", "search", word, "2")
        talk.until("Nothing found. A turn is searched once it has ended.")
        found = talk.until("Type a number from 1 to 2.")
        hits = [line for line in found if word in line]
        assert hits == [
            f"1. told, agent: You said: The word is {word}.",
            f"2. told, you: The word is {word}",
        ]
        talk.until("Opened told, Scripted.")
        assert talk.finish() == 0


def test_environments_are_created_shown_and_deleted(shop: Shop) -> None:
    name = uuid4().hex
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("environments", "environments new", name, "")
        talk.until("Files, skills, MCP servers and hooks are changed in a shell, by qd env.")
        talk.until(f"Created {name}.")
        talk.type("environments")
        place = next(line.split(".")[0] for line in talk.until("Files, skills") if name in line)
        talk.type("environments set", place, "A B", "x")
        talk.until("key: ")
        talk.type("environments set", place, "TOKEN", "secret", f"environments show {name}")
        talk.until("Set TOKEN. Replicas have it from their next start.")
        talk.until("Variable TOKEN.")
        talk.type("environments set", place, "TOKEN", "other", "environments unset", place, "1")
        talk.until("Removed TOKEN.")
        talk.type("environments unset", place, "environments delete", place, "no")
        talk.until("It has no variables of its own.")
        talk.until("Canceled.")
        talk.type("environments delete nowhere", place, name)
        talk.until("There is no nowhere.")
        talk.until(f"Deleted {name}.")
        assert talk.finish() == 0
    assert not any("secret" in line for line in talk.lines)
    known = shop.qd("env", "ls", "--json").json["environments"]
    assert name not in {one["name"] for one in known}


def test_automations_are_created_run_switched_and_deleted(shop: Shop) -> None:
    name = f"nightly {uuid4()}"
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("automations", "automations new", name, "global", "scripted")
        talk.until("No automations yet. Type automations new to create one.")
        talk.type("61 9 * * *", "0 9 * * *", "Nowhere", "Europe/Paris", "hello", ".")
        talk.until("The minute '61' is none")
        talk.until("Unknown time zone 'Nowhere'")
        talk.until(f"Created. {name} is scheduled.")
        talk.type("automations new", name, "cancel", "automations approve", "1")
        talk.until(f"An automation has the name {name} already.")
        talk.until(f"No run of {name} waits for approval.")
        talk.type("automations run 1", "automations off", name)
        talk.until(f"Started a run of {name}.")
        assert any(name in line for line in talk.until(f"Switched {name} off."))
        talk.type("automations", "automations delete", "1", "yes", "automations")
        talk.until(f"1. {name} is off.")
        talk.until(f"Deleted {name}.")
        talk.until("No automations yet.")
        assert talk.finish() == 0
