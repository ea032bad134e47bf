"""What the service does with git is a line in the history of a chat."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.git.conftest import Shop, block, commit
from tests.git.remotes import bare_copy
from tests.support.git import git, make_repository
from tests.support.installation import refused
from tests.support.waiting import until

pytestmark = pytest.mark.long

Open = Callable[..., Shop]


def operations(shop: Shop, chat: str | None = None) -> list[dict[str, Any]]:
    """Return the payloads of git operations in a chat, or in all."""
    page = shop.deck.get(f"/v1/replica/{shop.id}/history" + (f"?chat_id={chat}" if chat else ""))
    return [one["payload"] for one in page["events"] if one["type"] == "git-operation"]


def new_chat(shop: Shop, message: str) -> str:
    """Make a chat in which something was said; return its id once its turn has ended."""
    made = shop.deck.post(f"/v1/replica/{shop.id}/chats", {"provider": "builtin"}, 201)["chat"][
        "id"
    ]
    sent = shop.deck.send(shop.id, message, chat_id=made)
    shop.deck.result(shop.id, sent["message_id"])
    until(lambda: not any(one["processing"] for one in chats(shop)), "rest")
    return made


def chats(shop: Shop) -> list[dict[str, Any]]:
    return shop.deck.replica(shop.id)["chats"]


@pytest.mark.parametrize("asleep", [False, True])
def test_commits_updates_and_pushes_are_lines_of_the_newest_chat(
    open_shop: Open, tmp_path: Path, asleep: bool
) -> None:
    theirs = make_repository(tmp_path / "first")
    shop = open_shop(str(bare_copy(theirs, tmp_path / "shop.git")))
    new_chat(shop, block("echo old"))
    chat = new_chat(shop, block("echo more > more"))
    commit(theirs, "theirs", "theirs")
    git(theirs, "push", "-q", str(shop.checkout), "main")
    branch = shop.run("git branch --show-current").strip()
    if asleep:
        shop.sleep()
    made = shop.deck.post(f"{shop.path}/shop/commit", {"message": "Add more\n\nMuch more."})
    updated = shop.deck.post(f"{shop.path}/shop/update", {})
    shop.deck.post(f"{shop.path}/shop/push", {})
    told = [
        f"Committed {made['commit']['sha'][:8]} to {branch} in shop: Add more",
        f"Merged main ({updated['base'][:8]}) into shop",
        f"Pushed {branch} ({updated['head'][:8]}) to the source of shop",
    ]
    assert (
        operations(shop, chat)
        == operations(shop)
        == [
            {"operation": operation, "repository": "shop", "text": text}
            for operation, text in zip(("commit", "update", "push"), told, strict=True)
        ]
    )
    printed = shop.deck.qd("replica", "history", shop.id, "--chat", chat).stdout
    assert printed.splitlines()[-3:] == [f"({text})" for text in told]
    # What changes nothing is not an event.
    assert not shop.deck.post(f"{shop.path}/shop/push", {})["changed"]
    assert not shop.deck.post(f"{shop.path}/shop/update", {})["changed"]
    refused(shop.deck.ask("POST", f"{shop.path}/shop/commit", json={}), 409, "CONFLICT", "nothing")
    assert len(operations(shop)) == 3
    if asleep:
        assert shop.deck.replica(shop.id)["status"] == "sleeping"
    else:
        shop.deck.kill()
        shop.deck.start()
        assert len(operations(shop)) == 3


def test_a_push_from_inside_is_a_line_of_the_chat_that_pushed(
    open_shop: Open, tmp_path: Path
) -> None:
    remote = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    shop = open_shop(str(remote), push="any")
    first = new_chat(shop, block("echo first"))
    second = new_chat(shop, block("echo second"))
    work = "git commit -q --allow-empty -m More; git push -q origin HEAD HEAD:refs/heads/x"
    sent = shop.deck.send(shop.id, block(work), chat_id=first)
    shop.deck.result(shop.id, sent["message_id"])
    head = git(remote, "rev-parse", "x")[:8]
    branch = shop.run("git branch --show-current").strip()
    assert operations(shop, first) == [
        {
            "operation": "push",
            "repository": "shop",
            "text": f"Pushed {branch} ({head}), x ({head}) to the source of shop",
        }
    ]
    shop.run("git push -q -f origin HEAD~1:refs/heads/" + branch)
    shop.run(f"git push -q origin :{branch}")
    base = git(remote, "rev-parse", "main")[:8]
    # No chat asked for these, so the newest one has them.
    newest = [one["text"] for one in operations(shop, first)[1:] + operations(shop, second)]
    assert newest == [
        f"Force-pushed {branch} ({base}) to the source of shop",
        f"Removed {branch} at the source of shop",
    ]


def test_a_line_goes_to_the_chat_that_works_and_nothing_else_changes(shop: Shop) -> None:
    working = new_chat(shop, block("echo first"))
    newest = new_chat(shop, block("echo second"))
    script = "echo begun > begun; until [ -e go ]; do sleep 0.02; done; rm go; echo more"
    sent = shop.deck.send(shop.id, block(script), chat_id=working)
    until(lambda: "begun" in shop.run("ls"), "the turn")
    shop.deck.post(f"{shop.path}/shop/commit", {"message": "Begin"})
    shop.run("touch go")
    shop.deck.result(shop.id, sent["message_id"])
    assert [one["operation"] for one in operations(shop, working)] == ["commit"]
    assert operations(shop, newest) == []


def test_without_a_chat_there_is_no_line_and_no_error(shop: Shop) -> None:
    for chat in chats(shop):
        shop.deck.ask("DELETE", f"/v1/replica/{shop.id}/chats/{chat['id']}")
    shop.run("echo more > more")
    assert shop.deck.post(f"{shop.path}/shop/commit", {"message": "More"})["commit"]
    assert operations(shop) == []
