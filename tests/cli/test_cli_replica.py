"""The verbs on replicas: the real program, service, engine, sandbox and agent."""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.waiting import pauses

HOSTILE = r"printf '\033]0;owned\007\033[31mred\033[0m \302\233[2J\r\nend\n'"
ESCAPES = ("\x1b", "\x9b", "\x07")


def test_ls_show_and_prefixes(deck):
    (record,) = [
        r for r in deck.qd("replica", "ls", "--json").json["replicas"] if r["name"] == "probe"
    ]
    shown = deck.qd("replica", "show", record["id"][:12], "--json").json["replica"]
    assert shown["id"] == record["id"]
    assert deck.qd("replica", "show", "prob", "--json").json["replica"]["id"] == record["id"]
    plain = deck.qd("replica", "ls").out.splitlines()
    assert plain[0].split() == ["NAME", "STATE", "ACTIVE", "REPOSITORIES", "ID"]
    assert any(line.startswith("probe") and "shop" in line for line in plain)
    end = time.monotonic() + 30
    for pause in pauses(0.05):  # the engine reads the branch after the replica has become active
        text = deck.qd("replica", "show", "probe").out
        if "shop on -" not in text or time.monotonic() > end:
            break
        time.sleep(pause)
    assert "status      active" in text and "shop on qd/probe" in text


@pytest.mark.long
def test_create_connects_the_repository_where_one_stands(deck):
    made = deck.qd("replica", "create", "-m", "Fix the *login* time-out!", cwd=deck.repository)
    assert (made.code, made.out) == (0, "fix-the-login-time\n")
    state = deck.qd("replica", "git", "fix-the-login-time")  # it is being set up, or just was
    assert state.out or "is being set up" in state.err
    again = deck.qd("replica", "create", "-m", "Fix the login time", cwd=deck.repository)
    assert again.out == "fix-the-login-time-2\n"
    outside = deck.qd("replica", "create", "--name", "bare", "--json")
    assert outside.json["replica"]["repositories"] == []
    assert outside.err == "It has no repository: there is none here. Give one with --repo.\n"
    assert "no repository" not in made.err + again.err
    for name in ("fix-the-login-time", "fix-the-login-time-2", "bare"):
        assert deck.qd("replica", "rm", "--yes", name).code == 0


@pytest.mark.long
def test_an_ambiguous_prefix_names_the_candidates(deck):
    for name in ("twin-one", "twin-two"):
        assert deck.qd("replica", "create", "--name", name).code == 0
    ended = deck.qd("replica", "show", "twin")
    assert ended.code == 2
    assert "twin-one" in ended.err and "twin-two" in ended.err
    deleted = deck.qd("replica", "rm", "--yes", "--json", "twin-one", "twin-two")
    assert len(deleted.json["deleted"]) == 2


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (["create", "--name", "a b"], 2, "white space"),
        (["create", "--name", "a/../b"], 2, "A name has no spaces"),
        (["create", "--name", "probe"], 1, "has this name"),
        (["create", "--environment", "nope"], 1, "no environment"),
        (["create", "--repo", "/", "--env", "global"], 2, "--repo"),
        (["create", "--repo", "/usr"], 1, "not a git repository"),
        (["show", "nobody"], 1, "no replica"),
        (["show", ""], 1, "There is no replica ''"),  # every name begins with nothing
        (["show", "00000000-0000-4000-8000-000000000000"], 1, ""),
        (["send", "probe", "  "], 2, "empty"),
        (["send", "probe", "x", "--chat", "nope"], 1, "no chat"),
        (["send", "probe", "x", "--chat", ""], 1, "no chat"),
        (["exec", "probe"], 2, "COMMAND"),
        (["exec", "--timeout", "51", "probe", "--", "true"], 2, "51"),
        (["rm", "probe"], 2, "--yes"),
        (["attach", "probe"], 2, "terminal"),
        (["attach", "--new", "--session", "x", "probe"], 2, "--new"),
        (["nothing"], 2, "nothing"),
        (["shw"], 2, "Did you mean show?"),
        (["delete", "probe"], 2, "Did you mean rm?"),
        (["create", "do it"], 2, "(do it). Did you mean -m/--message? First message"),
        (["send", "probe", "do", "it"], 2, "(it). Put a text of several words in quotes."),
        (["exec", "probe", "ls", "-l"], 2, "Put -- before the command and its options."),
        (["goal", "probe", "do it"], 2, "(do it). Did you mean --set? Set a new goal."),
        (["wait", "probe", "other"], 2, "(other)"),
        (["queue", "probe"], 2, "Its commands are ls, rm, clear,"),
        (["--nothing"], 2, "--nothing"),
    ],
)
def test_bad_input_gets_a_sentence_and_its_exit_code(deck, line, code, told):
    ended = deck.qd("replica", *line)
    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_a_command_of_replicas_is_suggested_where_their_word_is_missing(deck):
    for given, meant in ("ls", "replica ls"), ("list", "replica ls"), ("pus", "replica push"):
        ended = deck.qd(given)
        assert (ended.code, ended.out) == (2, "")
        assert f"Did you mean {meant}?" in ended.err


def test_exec(deck):
    assert deck.qd("replica", "exec", "probe", "--", "cat", "README").out == "A shop.\n"
    assert deck.qd("replica", "exec", "probe", "--", "echo $((6*7)); exit 0").out == "42\n"
    failed = deck.qd("replica", "exec", "probe", "--json", "--", "exit 7")
    assert (failed.code, failed.json["exit_code"]) == (1, 7)
    assert "status 7" in failed.err
    stopped = deck.qd("replica", "exec", "--timeout", "1", "probe", "--", "sleep", "30")
    assert stopped.code == 1 and "after 1 seconds" in stopped.err


@pytest.mark.long
def test_nothing_printed_obeys_as_a_control_sequence(deck):
    plain = deck.qd("replica", "exec", "probe", "--", HOSTILE)
    assert plain.out == "red\nend\n" or ("red" in plain.out and "end" in plain.out)
    message = f"```\n{HOSTILE}\n```"
    turn = deck.qd("replica", "send", "probe", message, "--wait")
    lines = deck.qd("replica", "send", "probe", message, "--wait", "--json")
    exact = deck.qd("replica", "exec", "probe", "--json", "--", HOSTILE)
    assert "\x1b[31mred" in exact.json["output"]
    for ended in (plain, turn, lines, exact):
        assert ended.code == 0, ended.err
        assert not any(mark in ended.out + ended.err for mark in ESCAPES)


def test_send_from_stdin_is_followed_to_its_end(deck):
    sent = deck.qd(
        "replica", "send", "probe", "-", "--wait", stdin="```\necho one; echo two\n```\n"
    )
    assert sent.code == 0, sent.err
    assert "[started]  echo one; echo two" in sent.out
    assert "  one\n  two\n[completed]" in sent.out
    accepted, *events = deck.qd(
        "replica", "send", "probe", "```\ntrue\n```", "--wait", "--json"
    ).lines
    types = [event["type"] for event in events]
    assert accepted["status"] == "sent"
    assert types[-1] == "chat.turn.completed"
    indexes = [event["index"] for event in events]
    assert indexes == list(range(indexes[0], indexes[0] + len(indexes)))


@pytest.mark.long
def test_chats_are_searched(deck):
    sent = deck.qd("replica", "send", "probe", "--wait", "a time-out in the haystack")
    assert sent.code == 0, sent.err
    end = time.monotonic() + 30
    for pause in pauses(0.05):  # a turn is indexed after its end was told
        found = deck.qd("search", "haystack", "time", "--json").json["hits"]
        if found or time.monotonic() > end:
            break
        time.sleep(pause)
    (hit,) = [one for one in found if one["role"] == "user"]
    assert (hit["workspace_name"], hit["excerpt"]) == ("probe", "a time-out in the haystack")
    printed = deck.qd("search", "a time out", "--limit", "1")
    assert printed.out.rstrip().endswith("user: a time-out in the haystack")
    nothing = deck.qd("search", "haystack", "needle")
    assert (nothing.code, nothing.out) == (0, "") and "Nothing found" in nothing.err
    refused = deck.qd("search", "--", "--")
    assert refused.code == 2 or "nothing to search for" in refused.err


@pytest.mark.long
def test_watch_prints_what_was_and_goes_on(deck):
    deck.qd("replica", "send", "probe", "```\necho earlier\n```", "--wait")
    once = deck.qd("replica", "watch", "probe", "--once")
    assert once.code == 0 and "  earlier\n" in once.out
    watcher = deck.start("replica", "watch", "probe", "--last", "0")
    events = deck.start("replica", "watch", "probe", "--json", "--after", "0")
    assert watcher.stdout is not None and events.stdout is not None
    # The log is followed from its beginning, so the first line shows that it is open.
    assert '"index": 1,' in events.stdout.readline()
    deck.qd("replica", "send", "probe", '```\necho la""ter\n```', "--wait")
    while "later" not in events.stdout.readline():
        pass
    for process in (watcher, events):
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130


@pytest.mark.long
def test_sleep_wake_and_a_message_that_wakes(deck):
    made = deck.qd("replica", "create", "--name", "sleeper", "--wait", cwd=deck.repository)
    assert made.code == 0, made.err
    assert deck.qd("replica", "sleep", "sleeper").code == 0
    refused = deck.qd("replica", "exec", "sleeper", "--", "true")
    assert refused.code == 1 and refused.err.lower().count("wake") == 1
    woken = deck.qd("replica", "wake", "sleeper", "--wait", "--json")
    assert (woken.code, woken.json["status"]) == (0, "active")
    deck.qd("replica", "sleep", "sleeper")
    sent = deck.qd("replica", "send", "sleeper", "```\necho up\n```", "--wait")
    assert sent.code == 0 and "  up\n" in sent.out
    assert deck.qd("replica", "rm", "--yes", "sleeper").code == 0
    assert deck.qd("replica", "show", "sleeper").code == 1


@pytest.mark.long
def test_a_fork_is_waited_for_whatever_the_copied_turns_were(deck):
    """The copied chat begins with a turn that failed, which is not the fork's."""
    made = ("replica", "create", "--name", "origin", "-m", "```\necho early; false\n```", "--wait")
    assert deck.qd(*made, cwd=deck.repository).code == 1
    fork = ("replica", "fork", "origin", "--wait", "-m")
    done = deck.qd(*fork, "```\necho new\n```")
    assert (done.code, done.out.splitlines()[0]) == (0, "origin-fork"), done.err
    assert "  new\n" in done.out and "  early\n" not in done.out
    assert "early" in deck.qd("replica", "history", "origin-fork").out
    failed = deck.qd(*fork, "```\nfalse\n```", "--name", "second", "--json")
    assert failed.code == 1 and failed.lines[0]["replica"]["name"] == "second"
    assert deck.qd("replica", "fork", "origin", "--wait", "--name", "third").code == 0
    assert statuses(deck, "third") == ["active"]
    assert deck.qd("replica", "rm", "--yes", "origin", "origin-fork", "second", "third").code == 0


def statuses(deck, *names):
    found = deck.qd("replica", "ls", "--json").json["replicas"]
    return [next(one["status"] for one in found if one["name"] == name) for name in names]


@pytest.mark.long
def test_several_replicas_sleep_wake_and_are_archived_in_one_command(deck):
    names = ("several-one", "several-two")
    for name in names:
        assert deck.qd("replica", "create", "--name", name, "--wait").code == 0
    slept = deck.qd("replica", "sleep", *names, "--json")
    assert slept.code == 0, slept.err
    assert len(slept.json["replicas"]) == 2
    assert statuses(deck, *names) == ["sleeping"] * 2
    woken = deck.qd("replica", "wake", *names, "--wait", "--json")
    assert woken.code == 0, woken.err
    assert [one["status"] for one in woken.lines] == ["active"] * 2
    assert all(f"{name} is active" in woken.err for name in names)
    # One that is not found keeps all as they are.
    assert deck.qd("replica", "archive", *names, "several-three").code == 1
    assert statuses(deck, *names) == ["active"] * 2
    archived = deck.qd("replica", "archive", *names)
    assert (archived.code, archived.out) == (0, "")
    assert statuses(deck, *names) == ["archived"] * 2
    assert deck.qd("replica", "rm", "--yes", *names).code == 0


@pytest.mark.long
def test_one_that_is_refused_does_not_keep_the_others_back(deck):
    assert deck.qd("replica", "create", "--name", "willing", "--wait").code == 0
    # Its repository was removed after it was connected, so it fails and cannot be put to sleep.
    repository = deck.repository.with_name("broken")
    shutil.copytree(deck.repository, repository)
    added = deck.qd("repo", "add", str(repository), "--json").json["repository"]
    shutil.rmtree(repository)
    # Its mirror alone: clones of other repositories borrow the objects of theirs.
    shutil.rmtree(deck.home / "mirrors" / added["id"])
    environment = ["env", "create", "broken", "--repository", "broken"]
    assert deck.qd(*environment).code == 0
    created = deck.qd("replica", "create", "--name", "unwilling", "--env", "broken", "--wait")
    assert created.code == 1, created.out
    ended = deck.qd("replica", "sleep", "unwilling", "willing")
    assert ended.code == 1
    assert "unwilling: " in ended.err and "1 of 2" in ended.err
    assert statuses(deck, "willing") == ["sleeping"]
    assert deck.qd("replica", "rm", "--yes", "willing", "unwilling").code == 0


def test_an_interrupted_turn_is_not_done(deck):
    waiting = deck.start("replica", "send", "probe", "```\necho began; sleep 60\n```", "--wait")
    assert waiting.stdout is not None
    while "[started]" not in waiting.stdout.readline():
        pass
    stopped = deck.qd("replica", "interrupt", "probe", "--json")
    assert (stopped.code, stopped.json["interrupted"]) == (0, True)
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 1
    assert "interrupted" in err or "not complete" in err
    idle = deck.qd("replica", "interrupt", "probe")
    assert idle.code == 0 and "Nothing to interrupt" in idle.err


def test_chats_are_listed_and_renamed(deck):
    renamed = deck.qd("replica", "rename", "probe", "The first one")
    assert renamed.code == 0, renamed.err
    (chat,) = deck.qd("replica", "chats", "probe", "--json").json["chats"]
    assert (chat["title"], chat["provider"]) == ("The first one", "builtin")
    header, row = deck.qd("replica", "chats", "probe").out.splitlines()
    assert header.split() == ["TITLE", "AGENT", "STATE", "UPDATED", "ID"]
    assert row.startswith("The first one  builtin  ") and chat["id"][:8] in row
    by_title = deck.qd("replica", "rename", "probe", "Another", "--chat", "The first one")
    assert by_title.code == 0
    assert deck.qd("replica", "rename", "probe", " ").code == 2


def attach(deck, directory, *arguments):
    line = " ".join([*deck.argv, "replica", "attach", "probe", *arguments])
    script = f'stty -a >before; {line}; echo "left $?"; stty -a >after; echo over'
    return Program(["sh", "-c", script], environment=deck.environment, directory=directory)


@pytest.mark.long
def test_attach_is_a_real_terminal_and_gives_the_tty_back(deck, tmp_path):
    with attach(deck, tmp_path, "--new", "--json") as program:
        program.wait_for("Ctrl+] detaches")
        program.type("PS1='ready> '\r")
        program.wait_for("\nready>")
        assert b"\x1b[3J" not in program.raw  # the person's scrollback
        program.type("echo $((40+2)); stty size\r")
        program.wait_for("42")
        program.wait_for("24 80")
        program.resize(100, 30)
        program.type("until stty size | grep '30 100'; do sleep 0.05; done; echo re''sized\r")
        program.wait_for("\nresized")
        program.type("clear; cat\r")
        program.wait_gone("resized")
        program.type("meow\r")
        program.wait_for("meow\nmeow")
        program.type("\x03")
        program.wait_for("^C\nready>")
        program.type("echo inter''rupted\r")
        program.wait_for("\ninterrupted\nready>")
        program.type("\x1d")
        program.wait_for("over")
        assert "left 0" in program.text
        # What the session showed stays; the shell goes on below it.
        kept = program.text.partition("\ninterrupted\nready>")[2]
        assert "Detached" in kept, program.text
        assert (tmp_path / "before").read_text().splitlines()[1:] == (
            tmp_path / "after"
        ).read_text().splitlines()[1:]
        session = re.search(rb'"session": "([0-9a-f-]{36})"', bytes(program.raw))
        assert session is not None
    with attach(deck, tmp_path, "--session", session[1].decode()) as program:
        program.wait_for("interrupted")
        program.type("exit 4\r")
        program.wait_for("over")
        assert "status 4" in program.text


@pytest.mark.long
def test_attach_passes_on_nothing_but_drawing(deck, tmp_path):
    hostile = (
        "\\033]52;c;QQ==\\a\\033P+q544e\\033\\\\\\033_Gi=1\\033\\\\\\033[5i\\033[3J\\033]0;t\\a"
    )
    with attach(deck, tmp_path, "--new", "--json") as program:
        program.wait_for("Ctrl+] detaches")
        program.type(f"clear; printf '{hostile}\\033[1mbo''ld'; cat\r")
        program.wait_for("bold")
        program.type("\x1d")
        program.wait_for("over")
    session = re.search(rb'"session": "([0-9a-f-]{36})"', bytes(program.raw))
    assert session is not None
    with attach(deck, tmp_path, "--session", session[1].decode()) as again:  # what is replayed
        again.wait_for("bold")
        again.type("\x1d")
        again.wait_for("over")
    for raw in (bytes(program.raw), bytes(again.raw)):
        assert b"\x1b[1mbold" in raw
        for sequence in (b"\x1b]52", b"\x1bP", b"\x1b_", b"\x1b[5i", b"\x1b[3J", b"\x1b]0"):
            assert sequence not in raw


@pytest.mark.long
def test_attach_restores_the_tty_when_it_is_ended(deck, tmp_path):
    with attach(deck, tmp_path, "--new") as program:
        program.wait_for("Ctrl+] detaches")
        program.type("clear; printf '\\033[?1049h\\033[?25lsc''reen'; cat\r")
        program.wait_for("screen")
        # The verb's own process, found by its parent: the shell of the test.
        shell = program.process.pid
        (pid,) = map(int, Path(f"/proc/{shell}/task/{shell}/children").read_text().split())
        os.kill(pid, signal.SIGTERM)
        program.wait_for("over")
        assert "left 130" in program.text
        assert not program.screen.cursor.hidden
        before, after = ((tmp_path / name).read_text() for name in ("before", "after"))
        assert before.splitlines()[1:] == after.splitlines()[1:]
