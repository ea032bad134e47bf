"""Pushing a replica's branch to the source of its repository, with the person's credentials."""

import json
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.git.conftest import Shop, commit
from tests.git.remotes import (
    PASSWORD,
    bare_copy,
    credential_helper,
    http_remote,
    ssh_configuration,
    ssh_remote,
)
from tests.support.git import git, make_repository
from tests.support.installation import Installation, refused

Open = Callable[[str], Shop]


def push(shop: Shop, **body: object) -> dict[str, object]:
    """Push the branch that is checked out."""
    return shop.deck.post(f"{shop.path}/shop/push", body)


def work(shop: Shop, text: str = "more") -> tuple[str, str]:
    """Commit in the replica; return the branch and the commit."""
    shop.run(f"echo {text} > more; git add more; git commit -qm '{text}'")
    branch = shop.run("git branch --show-current").strip()
    return branch, shop.run("git rev-parse HEAD").strip()


@pytest.mark.long
@pytest.mark.parametrize("asleep", [False, True])
def test_a_branch_reaches_a_bare_repository(open_shop: Open, tmp_path: Path, asleep: bool) -> None:
    remote = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    for name in ("pre-receive", "update", "post-receive", "reference-transaction"):
        hook = remote / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
        hook.chmod(0o755)
    start = git(remote, "rev-parse", "HEAD")
    shop = open_shop(str(remote))
    branch, head = work(shop)
    git(remote, "config", "core.alternateRefsCommand", f"touch {tmp_path}/hook-ran; :")
    information = remote / "objects" / "info"
    information.mkdir(exist_ok=True)
    (information / "alternates").write_text(f"{tmp_path}/first/.git/objects\n")
    if asleep:
        shop.sleep()
    done = push(shop)
    assert (done["branch"], done["commit"], done["changed"]) == (branch, head, True)
    assert git(remote, "rev-parse", branch) == head
    assert git(remote, "log", "-1", "--format=%s", branch) == "more"
    assert not (tmp_path / "hook-ran").exists()
    assert push(shop)["changed"] is False
    assert (shop.state()["upstream"], shop.state()["unpushed"]) == (f"origin/{branch}", 0)
    (kept,) = shop.deck.replica(shop.id)["repository_statuses"]
    assert kept["upstream"] == f"origin/{branch}" and kept["base_commit"] == start
    git(remote, "fsck", "--full", "--strict")
    if not asleep:
        shop.run("git commit -q --allow-empty -m Later")
        assert (shop.state()["ahead"], shop.state()["unpushed"]) == (2, 1)


@pytest.mark.long
def test_a_checkout_gets_the_branch_unless_it_is_checked_out(shop: Shop, tmp_path: Path) -> None:
    branch, head = work(shop)
    before = git(shop.checkout, "status", "--porcelain", "--branch")
    done = shop.deck.qd("replica", "push", shop.id, "--json")
    assert json.loads(done.stdout)["commit"] == head, done.stderr
    assert git(shop.checkout, "rev-parse", branch) == head
    assert git(shop.checkout, "status", "--porcelain", "--branch") == before
    linked = tmp_path / "linked"
    git(shop.checkout, "worktree", "add", "-q", str(linked), branch)
    git(shop.checkout, "config", "receive.denyCurrentBranch", "updateInstead")
    work(shop, "again")
    answer = shop.deck.ask("POST", f"{shop.path}/shop/push", json={})
    refused(answer, 409, "CONFLICT", f"{branch} is checked out in {linked}.", "qd replica merge")
    shop.run("git checkout -q main; git merge -q qd/* -m x 2>&1 || git merge -q @{-1}")
    done = shop.deck.qd("replica", "push", shop.id)
    assert done.returncode == 1 and "main is checked out" in done.stderr
    assert git(linked, "rev-parse", "HEAD") == head
    assert git(linked, "status", "--porcelain") == ""


@pytest.mark.long
def test_other_commits_are_not_overwritten_unseen(open_shop: Open, tmp_path: Path) -> None:
    remote = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    shop = open_shop(str(remote))
    branch, _ = work(shop)
    push(shop)
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", "-b", branch, str(remote), str(theirs))
    other = commit(theirs, "theirs", "theirs")
    git(theirs, "push", "-q")
    _, head = work(shop, "mine")
    answer = shop.deck.ask("POST", f"{shop.path}/shop/push", json={})
    refused(answer, 409, "CONFLICT", "The branch has other commits at the source", "rejected")
    answer = shop.deck.ask("POST", f"{shop.path}/shop/push", json={"force": True})
    refused(answer, 409, "CONFLICT", "has changed at the source since it was last seen")
    assert git(remote, "rev-parse", branch) == other
    assert push(shop, force=True)["changed"] is True  # it has been seen now
    assert git(remote, "rev-parse", branch) == head


@pytest.mark.long
def test_what_cannot_be_pushed_is_named(shop: Shop) -> None:
    def asked(body: object) -> object:
        return shop.deck.ask("POST", f"{shop.path}/shop/push", json=body)

    refused(asked({"branch": "none"}), 409, "CONFLICT", "git refused", "no commit on a branch none")
    refused(asked({"branch": "a..b"}), 409, "CONFLICT", "git refused", "no commit on a branch")
    assert asked({"branch": ""}).status_code == 400
    shop.run("git checkout -q --detach")
    refused(asked({}), 409, "CONFLICT", "git refused", "No branch is checked out")
    shop.deck.post(f"/v1/replica/{shop.id}/archive")
    refused(asked({}), 409, "WORKSPACE_NOT_ACTIVE", "Wake it first")


@pytest.mark.long
@pytest.mark.parametrize("way", ["key", "agent"])
def test_a_branch_is_pushed_over_ssh(
    open_shop: Open,
    person: Path,
    git_deck: Installation,
    tmp_path: Path,
    require_tool: Callable[[str], str],
    way: str,
) -> None:
    repository = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    with ssh_remote(tmp_path, require_tool) as remote:
        identity = remote.key if way == "key" else "/dev/null"
        command = ssh_configuration(tmp_path / "ssh_config", identity)
        git(person, "config", "--file", str(person / ".gitconfig"), "core.sshCommand", command)
        agent = None
        if way == "agent":
            socket = git_deck.variables["SSH_AUTH_SOCK"]
            agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
        try:
            if agent is not None:
                added = ["ssh-add", "-q", str(remote.key)]
                environment = {**os.environ, "SSH_AUTH_SOCK": git_deck.variables["SSH_AUTH_SOCK"]}
                while subprocess.run(added, env=environment, capture_output=True).returncode == 2:
                    pass  # it does not listen yet
            shop = open_shop(remote.url(repository))
            branch, head = work(shop)
            assert push(shop)["commit"] == head
            assert git(repository, "rev-parse", branch) == head
            seen = shop.run("env; cat ~/.gitconfig .git/config; ls -A ~ /run")
            assert "SSH_AUTH_SOCK" not in seen and "sshCommand" not in seen
        finally:
            if agent is not None:
                agent.terminate()
                agent.wait()


@pytest.mark.long
def test_a_branch_is_pushed_with_a_credential_helper(
    open_shop: Open, person: Path, tmp_path: Path
) -> None:
    repository = bare_copy(make_repository(tmp_path / "first"), tmp_path / "shop.git")
    git(repository, "config", "http.receivepack", "true")
    configuration = ("config", "--file", str(person / ".gitconfig"), "credential.helper")
    helper = tmp_path / "helper"
    with http_remote(tmp_path) as address:
        git(person, *configuration, str(credential_helper(helper)))
        shop = open_shop(f"{address}/shop.git")
        branch, head = work(shop)
        credential_helper(helper, "wrong")
        answer = shop.deck.ask("POST", f"{shop.path}/shop/push", json={})
        refused(answer, 409, "CONFLICT", "refused the push", "Authentication failed")
        credential_helper(helper)
        assert push(shop)["commit"] == head
    assert git(repository, "rev-parse", branch) == head
    # The password is neither in the sandbox nor in what the service keeps of it.
    looked = "env; ps axe; grep -rs planted-passwor[d] /home /workspace /run /tmp /etc || true"
    assert PASSWORD not in shop.run(looked)
    assert PASSWORD not in shop.deck.log.read_text()
    events = shop.deck.get(f"/v1/replica/{shop.id}/history")
    assert PASSWORD not in json.dumps(events)


@pytest.mark.long
def test_two_pushes_of_a_new_branch_do_not_disturb_each_other(shop: Shop) -> None:
    branch, head = work(shop)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: push(shop), range(4)))
    assert {one["commit"] for one in done} == {head}
    assert git(shop.checkout, "rev-parse", branch) == head
