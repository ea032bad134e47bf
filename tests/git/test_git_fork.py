"""Forking a replica."""

import json

import pytest

from tests.git.conftest import Shop, block
from tests.support.installation import refused
from tests.support.waiting import until


@pytest.mark.long
def test_a_fork_has_the_files_branches_changes_and_the_chat(shop: Shop) -> None:
    shop.deck.send(shop.id, block("echo more > more; git add more; git commit -qm More"))
    until(lambda: "turn-result" in str(shop.deck.history(shop.id)), "the turn")
    until(lambda: not shop.deck.replica(shop.id)["chats"][0]["processing"], "its end")
    shop.run("git branch other; echo new > new; echo staged > README; git add README")
    before = shop.run("git status --porcelain; git log --format=%s; cat new README more")
    made = shop.deck.qd("replica", "fork", shop.id)
    assert made.returncode == 0, made.stderr
    name = made.stdout.strip()
    assert name == shop.deck.replica(shop.id)["name"] + "-fork"
    (fork,) = [one for one in shop.deck.get("/v1/replica")["replicas"] if one["name"] == name]
    shop.deck.reach(fork["id"], "active")
    there = Shop(shop.deck, shop.checkout, fork["id"])
    assert there.run("git status --porcelain; git log --format=%s; cat new README more") == before
    assert there.run("git branch --show-current").strip() == f"qd/{name}"
    assert "other" in there.run("git branch")
    assert shop.deck.history(fork["id"])[:-1] == shop.deck.history(shop.id)
    assert shop.deck.history(fork["id"])[-1]["payload"]["text"].startswith("Forked from ")
    sent = shop.deck.send(fork["id"], block("echo here too"))
    shop.deck.result(fork["id"], sent["message_id"])
    (session,) = json.loads(f"[{there.run('cat /var/lib/replica/agents/*/*.json')}]")
    said = [one for one in session["history"] if one["sessionUpdate"] == "user_message_chunk"]
    assert len(said) == 2 and "git commit -qm More" in said[0]["content"]["text"]
    assert "transcript" not in there.run("ls ..")
    there.run("echo x > more; git commit -qam Theirs")
    assert "Theirs" not in shop.run("git log --format=%s")
    again = shop.deck.qd("replica", "fork", shop.id, "--json")
    assert f"{name}-2" in again.stdout
    for one in shop.deck.get("/v1/replica")["replicas"]:
        if one["name"].startswith(name):
            shop.deck.reach(one["id"], "active")
            shop.deck.delete(one["id"])


@pytest.mark.long
def test_what_does_not_go_along_is_in_the_transcript(shop: Shop) -> None:
    for word in ("first", "second"):
        made = shop.deck.post(f"/v1/replica/{shop.id}/chats", {"provider": "builtin"}, 201)
        sent = shop.deck.send(shop.id, block(f"echo {word}"), chat_id=made["chat"]["id"])
        shop.deck.result(shop.id, sent["message_id"])
    until(lambda: not any(c["processing"] for c in shop.deck.replica(shop.id)["chats"]), "rest")
    noted = f"/var/lib/replica/agents/{made['chat']['id']}/session"
    for taken in (True, False):
        if not taken:  # which is no reason to fail
            shop.run(f"rm {noted}")
        fork = shop.deck.post(f"/v1/replica/{shop.id}/fork", {}, 201)["replica"]["id"]
        shop.deck.reach(fork, "active")
        told = Shop(shop.deck, shop.checkout, fork).run("cat ../transcript-of-*.md")
        assert "## Person" in told and "echo first" in told and "echo second" in told
        assert "## Agent" in told
        said = shop.deck.said(fork)
        assert said == ([block("echo second")] if taken else [])
        shop.deck.delete(fork)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True])
def test_a_replica_that_sleeps_is_forked(shop: Shop, killed: bool) -> None:
    shop.run("echo new > new; head -c 30000000 /dev/urandom > large")
    shop.sleep()
    made = shop.deck.post(f"/v1/replica/{shop.id}/fork", {"name": "copied"}, 201)["replica"]
    if killed:
        shop.deck.kill()
        shop.deck.start()
    shop.deck.reach(made["id"], "active")
    there = Shop(shop.deck, shop.checkout, made["id"])
    assert there.run("cat new; wc -c < large").split() == ["new", "30000000"]
    shop.deck.delete(made["id"])


@pytest.mark.long
def test_what_cannot_be_forked_is_refused(shop: Shop) -> None:
    path = f"/v1/replica/{shop.id}/fork"
    shop.deck.send(shop.id, block("until [ -e go ]; do sleep 0.02; done"))
    until(lambda: shop.deck.replica(shop.id)["chats"][0]["processing"], "the turn")
    refused(shop.deck.ask("POST", path, json={}), 409, "CONFLICT", "The agent is working")
    shop.run("touch go")
    until(lambda: not shop.deck.replica(shop.id)["chats"][0]["processing"], "its end")
    name = shop.deck.replica(shop.id)["name"]
    answer = shop.deck.ask("POST", path, json={"name": name})
    refused(answer, 409, "CONFLICT", "has this name already")
    assert shop.deck.ask("POST", path, json={"name": "a b"}).status_code == 400
    shop.deck.post(f"/v1/replica/{shop.id}/archive")
    refused(shop.deck.ask("POST", path, json={}), 409, "WORKSPACE_NOT_ACTIVE", "Wake it first")
