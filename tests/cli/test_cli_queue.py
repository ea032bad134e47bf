"""The verbs on what waits, on goals, questions and history: the real program, service and engine."""

import pytest

BUSY = "```\nuntil test -e go; do sleep 0.05; done; rm go\n```"


def test_the_queue_is_seen_and_changed(deck):
    before = deck.qd("replica", "history", "probe", "--json").json["canceledMessageIds"]
    assert deck.qd("replica", "send", "probe", BUSY).code == 0
    for word in ("one", "two", "three"):
        assert deck.qd("replica", "send", "probe", f"```\necho {word}\n```").code == 0
    listed = deck.qd("replica", "queue", "ls", "probe")
    head, *rows = listed.out.splitlines()
    assert head.split() == ["PLACE", "ID", "AGE", "MESSAGE"]
    assert [row.split()[5] for row in rows] == ["one", "two", "three"]
    moved = deck.qd("replica", "queue", "move", "probe", "3", "1", "--json").json["queue"]
    assert ["three" in moved[0]["message"], len(moved)] == [True, 3]
    left = deck.qd("replica", "queue", "rm", "probe", moved[1]["id"][:13], "--json")
    assert [one["id"] for one in left.json["queue"]] == [moved[0]["id"], moved[2]["id"]]
    gone = deck.qd("replica", "queue", "rm", "probe", "9")
    assert (gone.code, "No message" in gone.err) == (1, True)
    assert deck.qd("replica", "queue", "move", "probe", "1", "0").code == 2
    assert deck.qd("replica", "queue", "clear", "probe", "--json").json == {"queue": []}
    assert deck.qd("replica", "exec", "probe", "touch go").code == 0
    page = deck.qd("replica", "history", "probe", "--json").json
    assert len(page["canceledMessageIds"]) == len(before) + 3
    last = deck.qd("replica", "history", "probe", "--json", "--limit", "1").json
    assert last["eventsStartIndex"] == last["total"] - 1
    assert "until test -e go" in deck.qd("replica", "history", "probe").out


@pytest.mark.long
def test_messages_are_joined_and_steered(deck):
    busy = "```\ntouch ~/works; while true; do sleep 0.05; done\n```"
    deck.qd("replica", "interrupt", "probe")
    assert deck.qd("replica", "send", "probe", busy).code == 0
    assert (
        deck.qd("replica", "exec", "probe", "until test -e ~/works; do sleep 0.05; done").code == 0
    )
    for word in ("one", "two", "three"):
        deck.qd("replica", "send", "probe", word)
    joined = deck.qd("replica", "queue", "join", "probe", "1", "3", "--json").json["queue"]
    assert [one["message"] for one in joined] == ["one\n\nthree", "two"]
    assert "Two messages" in deck.qd("replica", "queue", "join", "probe", "1").err
    rows = deck.qd("replica", "queue", "join", "probe").out.splitlines()
    assert len(rows) == 2 and "one three two" in rows[1]
    steered = deck.qd("replica", "queue", "steer", "probe", "1", "--json")
    assert steered.json["interrupted"] is True, steered.err
    assert deck.qd("replica", "wait", "probe").code == 0
    assert deck.qd("replica", "queue", "ls", "probe", "--json").json == {"queue": []}
    assert deck.qd("replica", "queue", "steer", "probe", "1").code == 1
    deck.qd("replica", "exec", "probe", "rm ~/works")
    deck.qd("replica", "send", "probe", busy)
    assert (
        deck.qd("replica", "exec", "probe", "until test -e ~/works; do sleep 0.05; done").code == 0
    )
    deck.qd("replica", "send", "probe", "later")
    sent = deck.qd("replica", "send", "probe", "--steer", "--wait", "now")
    assert sent.code == 0 and "The turn was interrupted for it" in sent.err
    idle = deck.qd("replica", "wait", "probe", "--for", "idle")
    assert idle.code == 0, idle.err
    sent = deck.qd("replica", "send", "probe", "--steer", "idle")
    assert (sent.code, "Sent." in sent.err) == (0, True)
    text = deck.qd("replica", "history", "probe").out
    assert text.index("now") < text.index("later")


@pytest.mark.long
def test_an_agent_without_goals_and_no_question(deck):
    assert deck.qd("replica", "goal", "probe").out == "No goal.\n"
    assert deck.qd("replica", "goal", "probe", "--json").json == {"goal": None}
    refused = deck.qd("replica", "goal", "probe", "--set", "All tests pass")
    assert (refused.code, "no goals" in refused.err) == (1, True)
    assert deck.qd("replica", "goal", "probe", "--set", " ").code == 2
    assert deck.qd("replica", "respond", "probe", "x").code == 2
    answered = deck.qd("replica", "respond", "probe", "x", "--option", "yes")
    assert (answered.code, "no longer waits" in answered.err) == (1, True)
