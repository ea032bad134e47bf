"""What a person does with the work of a replica: look, compare, commit, update."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.framing import fault_line, result_line
from quarterdeck.engine.link import EngineLink
from quarterdeck.local.processes import read_stat
from quarterdeck.service.git.inside import GitInside
from quarterdeck.wire.engine import EngineHello
from quarterdeck.wire.git import Against
from quarterdeck.wire.git_state import EngineRepository
from tests.git.conftest import Shop, commit
from tests.support.git import git, make_repository
from tests.support.installation import Installation, command_of, refused
from tests.support.waiting import eventually, until

TWO_FILES = "echo new > 'a b.txt' && printf '\\0\\1' > binary && sed -i s/Open/Shut/ README"


def test_the_state_tells_branch_commits_and_what_is_not_committed(lasting: Shop) -> None:
    state = lasting.state()
    start = git(lasting.checkout, "rev-parse", "HEAD")
    assert (state["repository"], state["base_branch"], state["head"]) == ("shop", "main", start)
    assert state["branch"].startswith("qd/")
    assert (state["ahead"], state["behind"], state["commits"]) == (0, 0, [])
    assert state["uncommitted"] == {"files": 0, "added": 0, "removed": 0}
    lasting.run(
        "git rm -q --cached README; echo one > kept; git add kept; git commit -qm 'Keep it'"
    )
    lasting.run("echo two >> kept; echo new > new")
    state = lasting.state()
    assert (state["ahead"], state["behind"]) == (1, 0)
    assert [one["title"] for one in state["commits"]] == ["Keep it"]
    assert state["commits"][0]["sha"] == state["head"] == lasting.run("git rev-parse HEAD").strip()
    # The README is there, and no commit has it any more.
    assert state["uncommitted"] == {"files": 3, "added": 4, "removed": 0}


@pytest.mark.parametrize("asleep", [False, True])
def test_commits_that_were_merged_in_the_checkout_are_not_ahead_any_more(
    shop: Shop, asleep: bool
) -> None:
    shop.run("git commit -q --allow-empty -m Work")
    state = shop.state()
    assert state["ahead"] == 1
    if asleep:
        shop.sleep()
    done = shop.deck.qd("replica", "fetch", shop.id, cwd=shop.checkout)
    assert done.returncode == 0, done.stderr
    git(shop.checkout, "merge", "-q", str(state["branch"]))
    git(shop.checkout, "commit", "-q", "--allow-empty", "-m", "After it")
    state = shop.state()
    assert (state["ahead"], state["behind"]) == (0, 1)
    record = shop.deck.get(f"/v1/replica/{shop.id}")["replica"]
    assert record["repository_statuses"][0]["ahead"] == 0


def test_a_base_branch_that_moved_is_reported_once(shop: Shop) -> None:
    shop.run("git commit -q --allow-empty -m Work")
    assert shop.state()["ahead"] == 1
    shop.sleep()
    commit(shop.checkout, "theirs", "theirs\n")
    state = shop.state()
    assert (state["ahead"], state["behind"]) == (1, 1)
    reported = shop.deck.replica(shop.id)["log_index"]
    assert shop.state() == state
    assert shop.deck.replica(shop.id)["log_index"] == reported


def test_a_source_that_did_not_change_is_not_fetched(
    shop: Shop, person: Path, tmp_path: Path
) -> None:
    shop.run("git commit -q --allow-empty -m Work")
    witness = tmp_path / "fetched"
    settings = str(person / ".gitconfig")
    program = f"touch {witness}; git upload-pack"
    git(person, "config", "--file", settings, "remote.origin.uploadpack", program)
    assert (shop.state()["ahead"], shop.state()["behind"]) == (1, 0)
    assert not witness.exists()
    commit(shop.checkout, "theirs", "theirs\n")
    assert (shop.state()["ahead"], shop.state()["behind"]) == (1, 1)
    assert witness.exists()


@pytest.mark.long
def test_a_source_that_cannot_be_read_does_not_hold_up_the_others(
    git_deck: Installation, person: Path, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    require_tool("bwrap")
    names = ("gone", "stuck", "there")
    checkouts = {name: make_repository(tmp_path / name) for name in names}
    connected = [git_deck.connect(str(place)) for place in checkouts.values()]
    body = {"name": f"three {uuid4()}", "repositories": connected}
    group = git_deck.post("/v1/replica/repository-sets", body, 201)["repository_set"]["id"]
    body = {"name": f"three {uuid4()}", "repository_set_id": group}
    environment = git_deck.post("/v1/environments", body, 201)["environment"]["id"]
    id = git_deck.create(environment)

    def states() -> dict[str, tuple[int, int]]:
        """How many commits each repository is ahead and behind."""
        told = git_deck.get(f"/v1/replica/{id}/git")["repositories"]
        return {one["repository"]: (one["ahead"], one["behind"]) for one in told}

    try:
        for name in names:
            done = git_deck.run(id, f"cd {name} && git commit -q --allow-empty -m Work")
            assert done["exit_code"] == 0, done
        assert states() == dict.fromkeys(names, (1, 0))
        for place in checkouts.values():
            commit(place, "theirs", "theirs\n")
        shutil.rmtree(checkouts["gone"])
        os.mkfifo(tmp_path / "never")
        waits = f"case $1 in */stuck*) read line < {tmp_path}/never;; esac"
        program = f'serve() {{ {waits}; git upload-pack "$1"; }}; serve'
        settings = str(person / ".gitconfig")
        git(person, "config", "--file", settings, "remote.origin.uploadpack", program)
        assert states() == {"gone": (1, 0), "stuck": (1, 0), "there": (1, 1)}
    finally:
        git_deck.delete(id)


@pytest.mark.long
def test_hostile_commit_metadata_is_shown(lasting: Shop) -> None:
    lasting.run(
        """
        for when in 99999999999999999999 253402300800 -99999999999 1; do
          printf 'tree %s\\nparent %s\\nauthor A\\037B <a@b> %s +9999\\ncommitter C <c@d> 1 +0000\\n\\n%s' \\
            "$(git rev-parse HEAD^{tree})" "$(git rev-parse HEAD)" "$when" \\
            "$(printf 'A\\037title\\037'; printf '%04000d' 0)" > /tmp/commit
          git reset -q "$(git hash-object -t commit -w --literally --stdin < /tmp/commit)"
        done
        git branch origin/main
        """
    )
    state = lasting.state()
    assert state["ahead"] == 4
    assert {one["author"] for one in state["commits"]} == {"A\x1fB"}
    assert {one["title"][:10] for one in state["commits"]} == {"A\x1ftitle\x1f00"}
    assert {len(one["title"]) for one in state["commits"]} == {500}


@pytest.mark.long
def test_conflicts_and_an_operation_that_waits_are_told(lasting: Shop) -> None:
    lasting.run("git switch -qc other && echo other > README && git commit -qam other")
    lasting.run("git switch -q - && echo mine > README && git commit -qam mine")
    lasting.run("git merge other || true")
    state = lasting.state()
    assert (state["operation"], state["conflicts"]) == ("merge", ["README"])
    patch = lasting.deck.ask("GET", f"{lasting.path}/shop/diff?against=uncommitted").text
    assert "\n+<<<<<<< HEAD\n" in patch and "Unmerged" not in patch
    lasting.run("git merge --abort")
    assert (lasting.state()["operation"], lasting.state()["conflicts"]) == (None, [])


@pytest.mark.long
@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize("then", ["true", "git add more"])
def test_a_patch_makes_the_checkout_what_the_replica_is(
    lasting: Shop, asleep: bool, then: str, tmp_path: Path
) -> None:
    lasting.run(f"{TWO_FILES} && git add -A && git commit -qm Two && echo more > more && rm binary")
    lasting.run(then)
    if asleep:
        lasting.sleep()
    patches = {
        against: lasting.deck.ask("GET", f"{lasting.path}/shop/diff?against={against}").content
        for against in ("base", "head", "uncommitted")
    }
    for steps in (["base"], ["head", "uncommitted"]):
        copy = make_repository(tmp_path / "-".join(steps))
        for against in steps:
            command = ["git", "apply", "--index"]
            subprocess.run(command, cwd=copy, input=patches[against], check=True)
        assert (copy / "a b.txt").read_text() == "new\n"
        assert "Shut" in (copy / "README").read_text()
        assert (copy / "more").exists() and not (copy / "binary").exists()
    one = lasting.deck.ask("GET", f"{lasting.path}/shop/diff?path=README").text
    assert "README" in one and "a b.txt" not in one
    if asleep:
        assert lasting.deck.replica(lasting.id)["status"] == "sleeping"


@pytest.mark.long
@pytest.mark.parametrize("asleep", [False, True])
def test_closing_a_patch_early_ends_its_processes(lasting: Shop, asleep: bool) -> None:
    """And the running engine makes it: starting a sandbox would take as long as git itself."""
    lasting.run("head -c 30000000 /dev/urandom > much")
    engine = lasting.deck.engine(lasting.id)
    if asleep:
        lasting.sleep()

    def making() -> list[int]:
        pids = lasting.deck.processes(lasting.id)
        return [pid for pid in pids if " diff --no-color " in command_of(pid)]

    for _ in range(3):
        with (
            lasting.deck.client(Authorization=f"Bearer {lasting.deck.key}") as client,
            client.stream("GET", f"{lasting.path}/shop/diff") as answer,
        ):
            assert answer.status_code == 200
            parts = answer.iter_bytes(1)  # its end would end the stream
            next(parts)
            assert making()
            assert all((engine in ancestors(pid)) is not asleep for pid in making())
    until(lambda: not making(), "the end of git")


def ancestors(pid: int) -> list[int]:
    """Return the parent of a process, its parent and so on."""
    found: list[int] = []
    while (stat := read_stat(pid)) and stat.parent:
        found.append(pid := stat.parent)
    return found


class OneSandbox:
    """A sandbox driver whose every command prints the same."""

    saved_work = None

    async def layout(self, _: str) -> None:
        return None

    async def stream_command(self, *_: object, **__: object) -> AsyncGenerator[bytes]:
        yield b"a patch"


@pytest.mark.long
async def test_an_engine_of_an_older_release_is_done_without(tmp_path: Path) -> None:
    """It outlives the upgrade of the service, and cannot stream a command."""
    hello = EngineHello(version="0.0.1", workspace_id=uuid4(), last_index=0, boot_time_ms=0, pid=1)
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        unknown = EngineRefusedError.not_found("The engine has no method 'command.stream'.")
        for line in (result_line(1, hello), fault_line(2, unknown)):
            asked.append(json.loads(await reader.readline())["method"])
            writer.write(line)
        asked.append((await reader.read()).decode())
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "engine.sock"):
        streams = await asyncio.open_unix_connection(tmp_path / "engine.sock")
        link = await EngineLink.open(*streams, "secret")

        async def open_link() -> EngineLink:
            return link

        row: Any = SimpleNamespace(id="1")
        driver: Any = OneSandbox()
        shop = EngineRepository(id=uuid4(), name="shop", path="/shop", default_branch="main")
        made = GitInside(driver, row, [shop], open_link).patch(shop, Against.BASE, [])
        assert [part async for part in made] == [b"a patch"]
        await eventually(lambda: len(asked) == 3)
    assert asked == ["open", "command.stream", ""] and link.closed


def test_a_difference_of_an_unknown_repository_is_refused(lasting: Shop) -> None:
    answer = lasting.deck.ask("GET", f"{lasting.path}/other/diff")
    refused(answer, 404, "NOT_FOUND", "no repository other", "shop")


@pytest.mark.long
@pytest.mark.parametrize("asleep", [False, True])
def test_everything_or_some_files_are_committed(lasting: Shop, asleep: bool) -> None:
    lasting.run(f"{TWO_FILES}; echo '*' > '*'")
    if asleep:
        lasting.sleep()
    done = lasting.deck.post(
        f"{lasting.path}/shop/commit", {"message": "A star\n\nAnd why.", "paths": ["*"]}
    )
    assert done["commit"]["title"] == "A star"
    assert done["branch"] == lasting.state()["branch"]
    state = lasting.state()
    assert (state["ahead"], state["uncommitted"]["files"]) == (1, 3)
    done = lasting.deck.post(f"{lasting.path}/shop/commit", {})
    assert done["commit"]["title"] == lasting.deck.replica(lasting.id)["name"]
    state = lasting.state()
    assert (state["ahead"], state["uncommitted"]["files"]) == (2, 0)
    assert state["head"] == done["commit"]["sha"]
    answer = lasting.deck.ask("POST", f"{lasting.path}/shop/commit", {})
    refused(answer, 409, "CONFLICT", "nothing to commit")
    if asleep:
        assert lasting.deck.replica(lasting.id)["status"] == "sleeping"


def test_a_commit_runs_the_hooks_of_the_repository(lasting: Shop) -> None:
    lasting.run(
        "mkdir -p .git/hooks; printf '#!/bin/sh\\necho spaces >&2; exit 1\\n' > .git/hooks/pre-commit"
    )
    lasting.run("chmod +x .git/hooks/pre-commit; echo new > new")
    answer = lasting.deck.ask("POST", f"{lasting.path}/shop/commit", {"message": "New"})
    refused(answer, 409, "CONFLICT", "git refused", "spaces")


def test_conflict_markers_are_not_committed(lasting: Shop) -> None:
    lasting.run(
        "git checkout -qb theirs && echo theirs > README && git commit -qam Theirs"
        " && git checkout -q - && echo mine > README && git commit -qam Mine; ! git merge theirs"
    )
    answer = lasting.deck.ask("POST", f"{lasting.path}/shop/commit", {"message": "Both"})
    assert answer.status_code == 409 and answer.json()["conflicts"] == ["README"], answer.text
    assert "Conflict markers" in answer.json()["error"]
    lasting.run("echo both > README")
    done = lasting.deck.post(f"{lasting.path}/shop/commit", {"message": "Both"})
    assert done["commit"]["title"] == "Both" and lasting.state()["operation"] is None


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["merge", "rebase"])
def test_the_base_branch_comes_in(shop: Shop, strategy: str) -> None:
    shop.run("echo mine > mine && git add -A && git commit -qm Mine && echo open > open")
    theirs = commit(shop.checkout, "theirs", "theirs\n")
    body = {"strategy": strategy, "autostash": True}
    done = shop.deck.post(f"{shop.path}/shop/update", body)
    assert (done["base"], done["changed"]) == (theirs, True)
    state = shop.state()
    assert (state["head"], state["behind"]) == (done["head"], 0)
    assert state["ahead"] == (2 if strategy == "merge" else 1)
    assert shop.run("cat mine theirs open") == "mine\ntheirs\nopen\n"
    assert not shop.deck.post(f"{shop.path}/shop/update", body)["changed"]
    # What came in is not the replica's own change.
    patch = shop.deck.ask("GET", f"{shop.path}/shop/diff").text
    assert "mine" in patch and "theirs" not in patch


def test_an_update_over_uncommitted_changes_says_what_is_in_the_way(shop: Shop) -> None:
    shop.run("echo mine >> README")
    commit(shop.checkout, "README", "theirs\n")
    answer = shop.deck.ask("POST", f"{shop.path}/shop/update", {"strategy": "merge"})
    refused(answer, 409, "UNCOMMITTED_CHANGES", "git refused", "overwritten by merge: README")
    answer = shop.deck.ask("POST", f"{shop.path}/shop/update", {"strategy": "rebase"})
    refused(answer, 409, "UNCOMMITTED_CHANGES", "git refused", "cannot rebase")
    shop.run("git add README")
    answer = shop.deck.ask("POST", f"{shop.path}/shop/update", {"strategy": "rebase"})
    refused(answer, 409, "UNCOMMITTED_CHANGES", "git refused", "cannot rebase")


def test_only_changes_that_can_be_stashed_are_named_as_such(shop: Shop) -> None:
    shop.run("echo mine >> README; echo mine > new")
    commit(shop.checkout, "new", "theirs\n")
    answer = shop.deck.ask("POST", f"{shop.path}/shop/update", {"strategy": "merge"})
    refused(answer, 409, "CONFLICT", "git refused", "untracked")


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["merge", "rebase"])
def test_a_conflict_leaves_everything_as_it_was(shop: Shop, strategy: str) -> None:
    shop.run("echo mine > README && git commit -qam Mine && echo open > open && echo x >> README")
    before = shop.run("git rev-parse HEAD; git status --porcelain; cat README open")
    commit(shop.checkout, "README", "theirs\n")
    body = {"strategy": strategy, "autostash": True}
    answer = shop.deck.ask("POST", f"{shop.path}/shop/update", body)
    assert answer.status_code == 409
    assert answer.json()["conflicts"] == ["README"]
    assert shop.run("git rev-parse HEAD; git status --porcelain; cat README open") == before
    state = shop.state()
    assert (state["behind"], state["operation"], state["conflicts"]) == (1, None, [])


@pytest.mark.parametrize("strategy", ["merge", "rebase"])
def test_stashed_changes_that_conflict_are_named_and_kept(shop: Shop, strategy: str) -> None:
    shop.run("echo mine >> README")
    commit(shop.checkout, "README", "theirs\n")
    body = {"strategy": strategy, "autostash": True}
    done = shop.deck.post(f"{shop.path}/shop/update", body)
    assert (done["changed"], done["conflicts"]) == (True, ["README"])
    assert shop.run("git stash show -p").endswith("+mine\n")
    left = shop.run("git stash list; git status --porcelain; cat README")
    assert "UU README" in left and "<<<<<<<" in left
    answer = shop.deck.ask("POST", f"{shop.path}/shop/update", body)
    assert answer.status_code == 409 and answer.json()["conflicts"] == ["README"], answer.text
    assert "not resolved" in answer.json()["error"]
    assert shop.run("git stash list; git status --porcelain; cat README") == left


@pytest.mark.parametrize("resolved", [False, True])
def test_an_update_leaves_an_unfinished_merge_alone(lasting: Shop, resolved: bool) -> None:
    lasting.run(
        "git checkout -qb theirs && echo theirs > README && git commit -qam Theirs"
        " && git checkout -q - && echo mine > README && git commit -qam Mine; ! git merge theirs"
    )
    if resolved:
        lasting.run("echo both > README; git add README")
    before = lasting.run("git rev-parse MERGE_HEAD; git status --porcelain; cat README")
    answer = lasting.deck.ask("POST", f"{lasting.path}/shop/update", {"strategy": "merge"})
    assert answer.status_code == 409, answer.text
    assert lasting.run("git rev-parse MERGE_HEAD; git status --porcelain; cat README") == before


@pytest.mark.long
def test_a_source_that_is_away_is_told(shop: Shop) -> None:
    shop.checkout.rename(shop.checkout.with_name("away"))
    answer = shop.deck.ask("POST", f"{shop.path}/shop/update", {})
    refused(answer, 409, "CONFLICT", "could not be fetched", "cannot be reached")
