"""The whole job in lines: by pipes, and on a narrow terminal."""

import os
import re
import signal
import subprocess
from uuid import uuid4

import pytest

from tests.cli.conftest import PROGRAM
from tests.plain.conftest import NEW, Shop, create
from tests.support.program import Program

pytestmark = pytest.mark.timeout(240)


def git(shop: Shop, *arguments: str) -> str:
    command = ["git", "-C", str(shop.repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_whole_job_by_pipes(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "fix", "mend the README,", "please")
        talk.type("wait", "status")
        asked = talk.until("needs you: fix")
        assert asked[asked.index("You: mend the README,") : -1] == [
            "You: mend the README,",
            "  please",
            "Tool: Edit README",
            "Scripted asks: Edit README",
            "Change of README: 1 line added, 1 removed",
            "1. Yes, mend it",
            "2. No",
            "Type a number or reject and a reason.",
        ]

        talk.type("reject Only with a test.", "wait", "status")
        rejected = talk.until("none needs you")
        assert "Answered: No" in rejected
        assert "Scripted: I left it alone." in rejected
        reason = rejected.index("You: Only with a test.")
        assert rejected[reason + 1 : reason + 3] == [
            "Scripted: You said: Only with a test..",
            "fix is idle.",
        ]

        talk.type("mend it now", "wait", "1", "wait", "changes", "changes 1")
        mended = talk.until("+A better shop.")
        assert "Answered: Yes, mend it" in mended
        speech = mended.index("Scripted: The README is mended.")
        assert mended[speech + 1] == "  It sells apples."
        start = mended.index("shop, branch qd/fix: 1 file changed, 1 line added, 1 removed.")
        assert mended[start + 1] == "1. README, changed: 1 line added, 1 removed."
        assert mended[-3:] == ["At line 1:", "-A shop.", "+A better shop."]

        talk.type("fetch", "commit", "A better shop", "push", "push")
        got = talk.until("is up to date")
        assert got[0].startswith("Fetched qd/fix, ")
        assert got[0].endswith("1 file stays uncommitted in the replica; commit takes them along.")
        assert got[1] == "Message (Enter for fix):"
        committed, pushed = (
            [line for line in got if line.startswith(word)] for word in ("Committed", "Pushed")
        )
        (line,) = committed  # told by the transcript
        assert re.fullmatch(r"Committed [0-9a-f]+ to qd/fix in shop: A better shop", line)
        (line,) = pushed
        assert re.fullmatch(r"Pushed qd/fix \([0-9a-f]+\) to the source of shop", line)
        assert git(shop, "show", "qd/fix:README") == "A better shop.\n"

        talk.type("wait a while")
        talk.until("Scripted: Waiting.")
        talk.type("interrupt", "wait")
        talk.until("Interrupted.")
        talk.type("quit")
        assert talk.finish() == 0
    assert talk.lines[-1] == "Left. Agents keep running."
    (record,) = shop.qd("replica", "ls", "--json").json["replicas"]
    assert (record["name"], record["status"]) == ("fix", "active")


def test_messages_are_joined_and_go_into_the_turn(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "turn", "wait here")
        talk.until("Scripted: Waiting.")
        talk.type("join", "steer")
        talk.until("Fewer than two messages wait.")
        talk.until("No message waits.")
        talk.type("first", "second", "join")
        talk.until("Joined 2 messages to one.")
        talk.type("status", "steer third", "no")
        asked = talk.until("yes or no:")
        queued = asked.index("Queued: first")
        assert asked[queued + 1 : queued + 3] == ["", "second"]
        talk.until("Canceled.")
        talk.type("steer third", "yes")
        talk.until("Interrupted.")
        talk.until("Scripted: You said: third.")
        talk.until("You: first")
        talk.type("wait", "quit")
        assert talk.finish() == 0


@pytest.mark.long
def test_news_of_others_and_the_way_to_them(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "one", "hello")
        create(talk, "two", "hello")
        talk.type("wait", "status")
        talk.until("two is idle")
        assert shop.qd("replica", "send", "one", "mend").code == 0
        talk.until("one asks you something.")
        talk.type("next")
        assert "Opened one, Scripted." in talk.until("Opened")[-1]
        opened = talk.until("Type a number")
        assert opened[0] == "Type earlier for what came before."
        assert opened[1] == "You: mend"
        talk.type("earlier")
        assert talk.until("You said")[-2:] == ["You: hello", "Scripted: You said: hello."]
        talk.type("earlier", "answer b", "wait", "list")
        talk.until("This is the beginning.")
        left = talk.until("1. ")
        assert "Scripted: I left it alone." in left
        names = [left[-1].split()[1], talk.until("2. ")[-1].split()[1]]
        talk.type("open 2")
        talk.until(f"Opened {names[1]}")
        assert shop.qd("replica", "rm", "--yes", "one", "two").code == 0
        talk.until("one was deleted.")
        talk.until("two was deleted.")
        talk.type("interrupt")
        assert talk.until("No replica is open")
        assert talk.finish() == 0


@pytest.mark.long
def test_what_is_no_command_is_a_message_but_no_slip_is(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("hello")
        assert "There is no command hello." in talk.until("no command")[-1]
        create(talk, "words")
        talk.until("words is idle.")
        talk.type(
            "lst", "changes look good", "wait", "answer yes", "open nowhere", "say help", "wait"
        )
        said = talk.until("You: help")
        assert "Did you mean list? To send it, type: say lst" in said[0]
        assert "You: changes look good" in said
        assert "Scripted: You said: changes look good." in said
        assert any(line.startswith("No question is open.") for line in said)
        assert "There is no replica nowhere. Type list to hear them." in said
        talk.type("say", "two", "lines", ".", "wait", "status")
        said = talk.until("needs you")
        assert said[said.index("You: two") + 1] == "  lines"
        assert talk.finish() == 0


@pytest.mark.long
def test_environment_and_model_are_asked_for_where_there_is_a_choice(shop: Shop) -> None:
    url = str(shop.repository)
    if all(known["url"] != url for known in shop.qd("repo", "ls", "--json").json["repositories"]):
        assert shop.qd("repo", "add", url).code == 0
    first, second = uuid4().hex, uuid4().hex
    for name in (first, second):
        assert shop.qd("env", "create", name, "--repository", "shop").code == 0
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("new", "", "third", second, "scripted", "chosen", "hello", ".")
        said = talk.until("Opened chosen")
        assert "Environment, by number or name (Enter for the usual one):" in said
        assert "There is no environment third." in said
        talk.type("wait", "quit")
        assert talk.finish() == 0
    (record,) = shop.qd("replica", "ls", "--json").json["replicas"]
    chosen = shop.qd("env", "show", second, "--json").json
    assert record["environment_id"] == chosen["environment"]["id"]
    assert shop.qd("replica", "rm", "--yes", "chosen").code == 0
    for name in (first, second):
        assert shop.qd("env", "rm", "--yes", name).code == 0


def test_a_plan_is_approved(shop: Shop) -> None:
    plan = ("--agent", "builtin", "--plan", "--wait", "-m", "```sh\necho hi\n```")
    assert shop.qd("replica", "create", "--name", "planned", *plan).code == 0
    with shop.plain() as talk:
        talk.until("needs you: planned")
        talk.type("next", "accept", "wait", "accept")
        said = talk.until("No plan waits for you.")
        asked = said.index("planned has a plan for you to review.")
        assert said[asked + 1] == "Type accept, or a message that says what to change."
        assert "You: The plan is approved. Go ahead and implement it." in said
        assert talk.finish() == 0


@pytest.mark.long
def test_nothing_of_a_refused_replica_is_lost(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "taken")
        talk.type(*NEW, "taken", "a long prompt", ".", *NEW, "two words", "free", ".", "wait")
        said = talk.until("You: a long prompt")
        assert any("taken" in line and "Creating" not in line for line in said)
        assert "Names cannot contain spaces; use - instead. Name:" in said
        talk.type("new", "cancel")
        talk.until("Canceled.")
        assert talk.finish() == 0


def test_a_lost_connection_is_said_once(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "lost")
        talk.until("lost is idle.")
        pid = shop.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        lost = talk.until("Connected again.")
        assert len(lost) == 2 and lost[0].startswith("Not connected: ")
        talk.type("hello again", "wait", "quit")
        talk.until("Scripted: You said: hello again.")
        assert talk.finish() == 0


def test_a_service_that_was_stopped_is_not_called_lost(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Connected.")
        assert shop.qd("stop").code == 0
        talk.until("The service was stopped by qd stop")
        assert not any("Trying again" in line for line in talk.lines)
        talk.type("quit")
        assert talk.finish() == 0
    with shop.plain() as talk:  # which starts it
        talk.until("Connected.")
        talk.type("quit")
        assert talk.finish() == 0


@pytest.mark.long
def test_the_whole_job_on_a_narrow_terminal(shop: Shop) -> None:
    assert (
        shop.qd("replica", "create", "--name", "other", "--agent", "scripted", "--wait").code == 0
    )
    program = Program(
        [*PROGRAM, "--plain"],
        columns=40,
        lines=200,
        environment={**shop.environment, "TERM": "dumb"},
        directory=shop.repository,
    )
    with program:

        def answer(question: str, *lines: str) -> None:
            program.wait_for(question)
            program.type("".join(f"{line}\r" for line in lines))

        answer("Type help", "new")
        answer("for none):", "")
        answer("by number or name", "1" if "1. Scripted" in program.text else "scripted")
        answer("prompt):", "narrow")
        answer("only a dot.", "mend the README", ".")
        answer("reject and a reason.", "1")
        program.wait_for("It sells apples.")
        answer("narrow is idle.\n>", "wait here")
        program.wait_for("Scripted: Waiting.")
        seen = program.text
        program.type("interru")
        program.wait_for("> interru")
        assert shop.qd("replica", "send", "other", "mend").code == 0
        assert shop.qd("replica", "wait", "other", "--for", "asking").code == 0
        program.type("pt\r")
        program.wait_for("> interrupt\n")  # nothing was printed into it
        program.wait_for("other asks you something.")
        program.wait_for("Interrupted.")
        assert program.text.startswith(seen.rstrip())
        program.type("\x04")
        assert program.finish() == 0
    text = program.text
    assert "Left. Agents keep running." in text
    assert b"\x1b" not in program.raw
    assert "  with a line that is only a dot." in text.splitlines()
    assert "Repository, a path or git URL (Enter" in text.splitlines()


def test_what_ends_it(shop: Shop) -> None:
    ended = shop.qd("--plain", stdin="help\nquit\nlist\n")
    assert ended.code == 0 and ended.err == ""
    assert ended.out.splitlines()[-1] == "Left. Agents keep running."
    assert shop.qd("--plain", "--json").code == 2
    assert shop.qd("--plain", "status").code == 2
    far = shop.qd("--plain", QD_URL="http://127.0.0.1:9", QD_API_KEY="x")
    assert far.code == 3 and "Not connected" in far.out
