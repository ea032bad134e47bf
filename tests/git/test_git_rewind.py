"""Checkpoints at the beginning of turns, and rewinding to them."""

import json
import re
from typing import Any

import pytest

from tests.git.conftest import Shop, block
from tests.support.installation import refused
from tests.support.waiting import until


def turn(shop: Shop, script: str) -> None:
    """Let the built-in agent run a script, and wait for the end of the turn."""
    ended = len(results(shop))
    shop.deck.send(shop.id, block(script))
    until(lambda: len(results(shop)) > ended, "the end of the turn")
    until(lambda: not shop.deck.replica(shop.id)["chats"][0]["processing"], "rest")


def results(shop: Shop) -> list[object]:
    return [one for one in shop.deck.history(shop.id) if one["type"] == "turn-result"]


def checkpoints(shop: Shop) -> list[dict[str, object]]:
    return shop.deck.get(f"/v1/replica/{shop.id}/checkpoints")["checkpoints"]


def contents(shop: Shop) -> str:
    return shop.run("git log --format=%s -1; git status --porcelain; cat README more 2>&1 || true")


def test_files_and_commits_of_a_turn_are_taken_back_and_restored(shop: Shop) -> None:
    shop.run("echo mine > mine; echo ignored > .gitignore; echo kept > ignored")
    before = contents(shop)
    turn(shop, "echo more > more; git add .; git commit -qm More; rm README mine; echo x >> more")
    after = contents(shop)
    (first,) = checkpoints(shop)
    assert first["title"].startswith("echo more > more") and set(first["commits"]) == {"shop"}
    done = shop.deck.post(f"/v1/replica/{shop.id}/rewind", {"checkpoint": first["id"]})
    assert contents(shop) == before
    assert shop.run("cat ignored") == "kept\n"
    assert shop.run("git diff --cached --name-only") == ""
    shop.deck.post(f"/v1/replica/{shop.id}/rewind", {"checkpoint": done["undo"]})
    assert contents(shop) == after
    assert len(checkpoints(shop)) == 3


def test_the_changes_since_a_checkpoint(shop: Shop) -> None:
    shop.run("echo mine > mine; echo kept > .gitignore")
    turn(shop, "echo more > more; git add more; git commit -qm More; echo x >> mine; echo x > kept")
    (first,) = checkpoints(shop)
    path = f"/v1/replica/{shop.id}/git/shop/diff?checkpoint={{}}"
    patch = shop.deck.ask("GET", path.format(first["id"])).text
    heads = [line for line in patch.splitlines() if line.startswith("diff ")]
    assert heads == ["diff --git a/mine b/mine", "diff --git a/more b/more"]
    assert shop.deck.ask("GET", path.format("turns/none")).status_code == 404
    shop.deck.post(f"/v1/replica/{shop.id}/rewind", {"checkpoint": first["id"]})
    assert shop.deck.ask("GET", path.format(first["id"])).text == ""


@pytest.mark.long
def test_the_verb_lists_and_rewinds(shop: Shop) -> None:
    assert "No checkpoints" in shop.deck.qd("replica", "rewind", shop.id).stderr
    turn(shop, "echo more > more")
    shop.sleep()
    (line,) = shop.deck.qd("replica", "rewind", shop.id).stdout.splitlines()
    done = shop.deck.qd("replica", "rewind", shop.id, "--to", line.split()[0])
    assert done.returncode == 0 and "To undo" in done.stderr, done.stderr
    shop.deck.post(f"/v1/replica/{shop.id}/wake", status=202)
    shop.deck.reach(shop.id, "active")
    assert "more" not in shop.run("ls")


@pytest.mark.long
@pytest.mark.parametrize("asleep", [False, True])
def test_the_chat_and_the_agent_are_told_of_a_rewind(shop: Shop, asleep: bool) -> None:
    turn(shop, "echo first")
    shop.deck.post(f"/v1/replica/{shop.id}/chats", {"provider": "builtin"}, 201)
    (first,) = checkpoints(shop)
    if asleep:
        shop.sleep()
    usage = shop.deck.qd("replica", "rewind", shop.id, "--chat")
    assert usage.returncode == 2 and "--chat needs --to" in usage.stderr
    to = ("replica", "rewind", shop.id, "--to", str(first["id"]))
    assert shop.deck.qd(*to).returncode == 0
    done = shop.deck.qd(*to, "--chat", "--json")
    assert done.returncode == 0, done.stderr
    undo = json.loads(done.stdout)["undo"]
    shop.deck.post(f"/v1/replica/{shop.id}/rewind", {"checkpoint": undo, "chat": True})
    # Of the first rewind nothing was to be said, and nothing to a chat that nobody has used.
    told = [one["payload"] for one in shop.deck.history(shop.id) if one["type"] == "git-operation"]
    state = 'Rewound the files to the state before the message "echo first"'
    assert [one["text"] for one in told] == [
        state,
        "Rewound the files to the state before a rewind",
    ]
    if asleep:
        assert shop.deck.replica(shop.id)["status"] == "sleeping"
    else:
        shop.deck.kill()
        shop.deck.start()
        shop.deck.reach(shop.id, "active")
    for script in ("echo second", "echo third"):
        sent = shop.deck.send(shop.id, block(script), chat_id=shop.deck.chat(shop.id))
        shop.deck.result(shop.id, sent["message_id"])
    prompts = agent_prompts(shop)
    assert [len(re.findall(r"\(Notice: a person has rewound", one)) for one in prompts] == [0, 2, 0]
    assert 'before the message "echo first", of' in prompts[1] and "before a rewind" in prompts[1]
    said = [one["payload"]["text"] for one in said_by_person(shop)]
    assert said == [block(f"echo {word}") for word in ("first", "second", "third")]


def said_by_person(shop: Shop) -> list[dict[str, Any]]:
    return [one for one in shop.deck.history(shop.id) if one["type"] == "user-message"]


def agent_prompts(shop: Shop) -> list[str]:
    """Return what the built-in agent has in its session as said by the person."""
    session = json.loads(shop.run(f"cat /var/lib/replica/agents/{shop.deck.chat(shop.id)}/*.json"))
    said = [one for one in session["history"] if one["sessionUpdate"] == "user_message_chunk"]
    return [one["content"]["text"] for one in said]


@pytest.mark.long
def test_what_cannot_be_rewound_is_refused(shop: Shop) -> None:
    path = f"/v1/replica/{shop.id}/rewind"
    answer = shop.deck.ask("POST", path, json={"checkpoint": "turns/none"})
    refused(answer, 404, "NOT_FOUND", "no checkpoint turns/none")
    shop.deck.send(shop.id, block("until [ -e go ]; do sleep 0.02; done"))
    until(lambda: shop.deck.replica(shop.id)["chats"][0]["processing"], "the turn")
    made = until(lambda: checkpoints(shop), "the checkpoint")
    answer = shop.deck.ask("POST", path, json={"checkpoint": made[0]["id"]})
    refused(answer, 409, "CONFLICT", "The agent is working")
    shop.run("touch go")


@pytest.mark.long
def test_hooks_of_the_repository_do_not_run_for_a_checkpoint(shop: Shop) -> None:
    shop.run(
        "mkdir -p .git/hooks; for name in reference-transaction post-checkout pre-commit; do"
        " printf '#!/bin/sh\\ntouch /workspace/hook-ran\\n' > .git/hooks/$name;"
        " chmod +x .git/hooks/$name; done"
    )
    turn(shop, "true")
    assert checkpoints(shop)
    assert "hook-ran" not in shop.run("ls /workspace")
