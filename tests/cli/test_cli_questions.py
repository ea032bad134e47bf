"""What the command line says of agents that ask, work, fail and end; and how it answers them."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from quarterdeck.cli.replica.waiting import NEEDS_PERSON, wait_for_state
from tests.cli.conftest import Installation, new_installation, serving
from tests.support.waiting import pauses

if TYPE_CHECKING:
    from quarterdeck.client import Client

SECONDS = 60
AGENT = Path(__file__).parents[1] / "fleet" / "scripted_agent.py"
ORDERS = {
    "one": ("ask", "asking"),
    "hurt": ("fail", "failed"),
    "busy": ("wait", "working"),
    "over": ("hello", "done"),
}
"""Replicas: the message that each is sent, and the state that this leads to."""


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A service whose replicas have agents that do as they are told."""
    base = tmp_path_factory.mktemp("scripted")
    program = base / "scripted"
    program.write_text(f"#!{sys.executable} -IS\n{AGENT.read_text()}")
    program.chmod(0o755)
    made = new_installation(base / "home")
    made.kept = tuple(ORDERS)
    made.home.mkdir()
    table = f'[agents.scripted]\nname = "Scripted"\ncommand = ["{program}"]\n'
    (made.home / "config.toml").write_text(table)
    with serving(made):
        try:
            for name in ORDERS:
                created = made.qd("replica", "create", "--name", name, "--agent", "scripted")
                assert created.code == 0, created.err
            yield made
        finally:
            made.qd("replica", "rm", "--yes", *ORDERS)
            made.qd("stop")


def record(installation: Installation, name: str) -> dict[str, Any]:
    """What `ls` says of a replica."""
    found = installation.qd("replica", "ls", "--json").json["replicas"]
    return next(one for one in found if one["name"] == name)


def reach(installation: Installation, name: str, state: str, message: str | None = None) -> None:
    """Wait until `ls` shows a replica in a state, which a message may lead to."""
    if message is not None and record(installation, name)["state"] != state:
        sent = installation.qd("replica", "send", name, message)
        assert sent.code == 0, sent.err
    end = time.monotonic() + SECONDS
    for pause in pauses(0.1):
        found = record(installation, name)["state"]
        if found == state:
            return
        assert time.monotonic() < end, f"{name} is {found}, not {state}"
        time.sleep(pause)


@pytest.mark.long
def test_ls_shows_the_state_that_a_person_sees(scripted):
    for name, (message, state) in ORDERS.items():
        reach(scripted, name, state, message)
    assert scripted.qd("replica", "create", "--name", "idle", "--wait").code == 0
    header, *rows = scripted.qd("replica", "ls").out.splitlines()
    assert header.split() == ["NAME", "STATE", "ACTIVE", "REPOSITORIES", "ID"]
    shown = dict(row.split()[:2] for row in rows)
    assert shown == {name: state for name, (_, state) in ORDERS.items()} | {"idle": "idle"}
    assert record(scripted, "one")["status"] == "active"  # the service's record stays as it is
    chats = scripted.qd("replica", "chats", "one").out.splitlines()
    assert chats[1].split()[1:3] == ["scripted", "asking"]
    only = scripted.qd("replica", "ls", "--state", "asking", "--json").json["replicas"]
    assert [one["name"] for one in only] == ["one"]
    assert scripted.qd("replica", "sleep", "idle", "over").code == 0
    assert record(scripted, "idle")["state"] == "sleeping"
    assert record(scripted, "over")["state"] == "done"  # nobody has looked at what it did
    assert scripted.qd("replica", "wake", "over", "--wait").code == 0
    assert scripted.qd("replica", "rm", "--yes", "idle").code == 0


@pytest.mark.long
def test_what_the_cockpit_has_shown_is_not_done(scripted):
    reach(scripted, "over", "done", "hello")
    seen = scripted.home / "client" / "local" / "seen.json"
    seen.parent.mkdir(parents=True)
    seen.write_text(json.dumps({record(scripted, "over")["id"]: "2999-01-01T00:00:00Z"}))
    assert record(scripted, "over")["state"] == "idle"
    seen.unlink()


def test_the_only_open_question_is_answered_without_its_id(scripted):
    reach(scripted, "one", "asking", "ask")
    shown = scripted.qd("replica", "respond", "one")
    assert shown.code == 0, shown.err
    assert "? ask" in shown.out and "Yes (yes)" in shown.out
    (question,) = scripted.qd("replica", "respond", "one", "--json").json["questions"]
    assert question["options"] == [{"optionId": "yes", "name": "Yes"}]
    missing = scripted.qd("replica", "respond", "one", "yes")
    assert missing.code == 2 and "qd replica respond one" in missing.err
    other = scripted.qd("replica", "respond", "one", "--option", "9")
    assert other.code == 1 and "does not have this answer" in other.err
    answered = scripted.qd("replica", "respond", "one", "--option", "1")
    assert (answered.code, answered.err) == (0, "Answered.\n")
    reach(scripted, "one", "done")
    for arguments in ((), ("--option", "yes")):
        none = scripted.qd("replica", "respond", "one", *arguments)
        assert none.code == 1 and "No question is open" in none.err


@pytest.mark.long
def test_of_several_open_questions_one_has_to_be_named(scripted):
    reach(scripted, "hurt", "asking", "ask 2")
    refused = scripted.qd("replica", "respond", "hurt", "--option", "yes")
    assert refused.code == 2 and "2 questions are open" in refused.err
    assert scripted.qd("replica", "respond", "hurt", "--option", "a", "--text", "b").code == 2
    questions = scripted.qd("replica", "respond", "hurt", "--json").json["questions"]
    assert len(questions) == 2
    for one in questions:
        answer = ("respond", "hurt", one["requestId"], "--option", "yes")
        answered = scripted.qd("replica", *answer)
        assert answered.code == 0, answered.err
    reach(scripted, "hurt", "done")


@pytest.mark.long
def test_a_script_waits_until_it_is_needed(scripted: Installation) -> None:
    def waited(name: str, *options: str) -> tuple[int, str]:
        ended = scripted.qd("replica", "wait", name, *options)
        return ended.code, ended.out.strip() or ended.err

    for name in ("one", "hurt", "over"):
        reach(scripted, name, ORDERS[name][1], ORDERS[name][0])
    reach(scripted, "busy", *ORDERS["busy"][::-1])
    assert waited("one") == (0, "asking")
    assert waited("hurt") == (0, "failed")
    assert waited("over") == (0, "done")
    assert waited("over", "--for", "idle", "--for", "failed") == (0, "idle")
    code, why = waited("hurt", "--for", "done")
    assert code == 1 and "The replica is failed and idle" in why
    code, why = waited("busy", "--timeout", "0.3")
    assert code == 1 and "in none of these states in time" in why
    for count in range(1, 4):
        # The result of the turn before the message is not taken for its own.
        text = f"hello number {count}"
        assert scripted.qd("replica", "send", "over", text).code == 0
        reached = scripted.qd("replica", "wait", "over", "--json")
        assert reached.json == {"state": "done"}
        shown = scripted.qd("replica", "history", "over").out
        assert shown.partition(f"> {text}\n")[2].count(text) == 1, shown


async def test_a_turn_that_begins_between_two_requests_is_waited_for() -> None:
    """The record says that a turn is done; before the queue is read, the next one leaves it."""
    rest = {"id": 1, "status": "active", "chats": [SimpleNamespace(id=2)], "asking": False}
    done, failed = rest | {"turn_failed": False}, rest | {"turn_failed": True}
    records = iter(
        SimpleNamespace(working=working, log_index=index, plan_ready=False, **record)
        for working, index, record in (
            *((False, 7, done), (True, 8, done)),
            *((True, 8, done), (False, 9, failed), (False, 9, failed)),
        )
    )

    async def get(_: object) -> object:
        return next(records)

    async def queue(*_: object) -> object:
        return SimpleNamespace(queue=[])

    client = SimpleNamespace(
        replicas=SimpleNamespace(get=get), messages=SimpleNamespace(queue=queue)
    )
    assert (
        await wait_for_state(cast("Client", client), uuid4(), frozenset(NEEDS_PERSON)) == "failed"
    )


@pytest.mark.long
def test_changes_of_state_are_watched(scripted: Installation) -> None:
    reach(scripted, "over", "done", "hello")
    watching = scripted.start("replica", "ls", "--watch", "--json")
    assert watching.stdout is not None
    try:
        first = {
            one["name"]: one["state"] for one in json.loads(watching.stdout.readline())["replicas"]
        }
        assert first.keys() == ORDERS.keys() and first["over"] == "done"
        assert scripted.qd("replica", "send", "over", "ask").code == 0
        seen = ""
        while seen != "asking":
            told = json.loads(watching.stdout.readline())["replicas"]
            (seen,) = [one["state"] for one in told if one["name"] == "over"]
        assert scripted.qd("replica", "respond", "over", "--option", "yes").code == 0
        while seen != "done":
            told = json.loads(watching.stdout.readline())["replicas"]
            (seen,) = [one["state"] for one in told if one["name"] == "over"]
    finally:
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=SECONDS)
    assert "Traceback" not in err


@pytest.mark.long
def test_an_open_question_and_its_options_are_watched(scripted: Installation) -> None:
    reach(scripted, "over", "done", "hello")
    earlier = scripted.qd("replica", "history", "over").out.count("> ask\n")
    watching = scripted.start("replica", "watch", "over")
    assert watching.stdout is not None
    try:
        lines = iter(watching.stdout)
        assert next(lines) == "> hello\n"
        assert scripted.qd("replica", "send", "over", "ask").code == 0
        for _ in range(earlier + 1):  # those of other tests, then this one
            assert "> ask\n" in lines
        assert "? ask\n" in lines
        assert next(lines) == "  1. Yes (yes)\n"
    finally:
        scripted.qd("replica", "respond", "over", "--option", "yes")
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=SECONDS)
    assert "Traceback" not in err


@pytest.mark.long
def test_settings_of_an_agent_are_shown_and_changed(scripted):
    # Another test leaves it asleep: a message wakes it.
    assert scripted.qd("replica", "send", "over", "hello", "--wait").code == 0
    header, first, *_ = scripted.qd("replica", "settings", "over").out.splitlines()
    assert header.split() == ["SETTING", "NOW", "ID", "DESCRIPTION"]
    assert first.split()[:3] == ["mode", "*", "ask"]
    change = "--mode", "edits", "--thinking", "ultra"
    changed = scripted.qd("replica", "settings", "over", *change, "--json")
    assert changed.code == 0, changed.err
    assert changed.json["permission_mode"]["current"] == {"id": "edits", "name": "Accept edits"}
    assert changed.json["thinking_level"]["current"]["id"] == "ultra"
    sent = scripted.qd("replica", "send", "over", "settings", "--thinking", "high", "--wait")
    assert "settings edits high" in sent.out
    wrong = scripted.qd("replica", "settings", "over", "--mode", "plan")
    assert wrong.code == 1 and "does not offer the permission mode plan" in wrong.err
    assert scripted.qd("replica", "settings", "over", "--mode", "ask").code == 0
