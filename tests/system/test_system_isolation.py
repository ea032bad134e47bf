"""What a replica can see and change: its own workspace, and nothing of anybody else's."""

import os
from pathlib import Path

import pytest

from quarterdeck.sandboxes.cgroups import find_groups
from tests.support.git import git, make_repository
from tests.support.installation import Installation, block, snapshot
from tests.support.waiting import until


def see(deck: Installation, id: str, path: object) -> str:
    """What a command inside finds at a path of this machine."""
    got = deck.run(id, f"ls -ld {path}; cat {path}; head -c 10 {path}/*")
    return got["output"]


@pytest.mark.long
def test_how_a_replica_is_kept_apart_is_told(deck: Installation, active: str) -> None:
    told = deck.get(f"/v1/replica/{active}?include=environment")["replica"]["environment"]
    assert (told["isolation"], told["isolation_note"]) == ("bubblewrap", None)
    assert told["size_limited"] is (not find_groups().missing and os.geteuid() == 0)


def test_nothing_of_the_service_can_be_seen(deck: Installation, active: str) -> None:
    home = deck.home
    hidden = [home.key, home.service, home.database, home.lock, home.socket, home.workspaces]
    for path in [*hidden, home.mirrors, deck.base, deck.log]:
        before = path.stat()
        assert "No such file or directory" in see(deck, active, path)
        assert path.stat() == before or path == deck.log or path in (home.database, deck.base)
    everything = deck.run(
        active,
        f"grep -rl --binary-files=text {deck.key[3:]} /home /run /tmp /var /workspace /proc/*/environ"
        " 2>/dev/null; env; cat /proc/*/cmdline /proc/*/environ /proc/mounts /proc/self/mountinfo",
        40,
    )["output"]
    assert deck.key not in everything
    assert "QUARTERDECK_HOME" not in everything
    said = deck.in_terminal(active, f"cat {home.key}; ls {home.root}; env; id -u")
    assert "No such file or directory" in said
    assert deck.key not in said
    assert "\r\n0\r\n" not in said


def test_nothing_of_another_workspace_can_be_seen(
    deck: Installation, active: str, stocked: str
) -> None:
    other = deck.create(stocked)
    deck.run(other, "echo secret-of-the-other > /workspace/secret; echo x > /tmp/secret")
    place = deck.place(other)
    for path in (place, place / "files", place / "files/secret", place / "run/engine.sock"):
        assert path.exists()
        assert "No such file or directory" in see(deck, active, path)
    assert deck.run(active, "ls /tmp/secret /workspace/secret")["exit_code"] != 0
    listed = deck.run(active, "cat /proc/[0-9]*/environ | tr '\\0' '\\n'")["output"]
    assert f"QUARTERDECK_WORKSPACE={active}" in listed
    assert other not in listed
    killed = deck.run(active, f"kill -9 {deck.engine(other)}; kill -9 {deck.pid}")
    assert killed["output"].count("No such process") == 2
    assert (place / "files/secret").read_text() == "secret-of-the-other\n"
    deck.delete(other)


@pytest.mark.long
def test_the_system_and_the_mirror_are_read_only(deck: Installation, active: str) -> None:
    for path in ("/usr/bin/evil", "/etc/evil", "/evil", "/bin/sh"):
        said = deck.run(active, f"echo x > {path}")
        assert said["exit_code"] != 0, path
        assert "Read-only file system" in said["output"] or "denied" in said["output"]
    objects = deck.run(active, "cat /workspace/shop/.git/objects/info/alternates")["output"].strip()
    got = deck.run(active, f"ls -d {objects} && touch {objects}/x; rm -rf {objects}/*")
    assert "Read-only file system" in got["output"] or "denied" in got["output"]
    assert deck.run(active, "cd shop && git fsck --full")["exit_code"] == 0


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with everything in it that could be stepped on."""
    made = make_repository(tmp_path / "precious")
    git(made, "branch", "topic")
    git(made, "tag", "v1")
    (made / "README").write_text("Changed and not committed.\n")
    (made / "untracked").write_text("mine\n")
    git(made, "stash", "-q")
    (made / ".git/hooks/post-checkout").write_text("#!/bin/sh\ntouch /tmp/hook-ran\n")
    (made / ".git/hooks/post-checkout").chmod(0o755)
    return made


@pytest.mark.long
def test_the_checkout_is_untouched(deck: Installation, checkout: Path) -> None:
    before = snapshot(checkout)
    id = deck.create(deck.environment_with(deck.connect(str(checkout))))
    work = block(
        "echo more >> README && git commit -qam 'More' && echo other > other && git add . && "
        "git commit -qm 'Other' && GIT_SEQUENCE_EDITOR='sed -i 1d' git rebase -q -i HEAD~2 && "
        "git reflog expire --expire=now --all && git gc -q --prune=now --aggressive && "
        "git branch -D main topic 2>&1 | cat; git tag -d v1; git checkout -q --detach; "
        "rm -rf .git/refs/remotes; git fsck --full && git log --format=%s"
    )
    assert deck.turn(id, work)["stopReason"] == "end_turn"
    log = deck.run(id, "cd precious && git log --format=%s")["output"]
    assert log == "Other\nCommit 1\nCommit 0\n"
    pushed = deck.run(id, "cd precious && git push -f origin HEAD:main HEAD:refs/heads/evil 2>&1")
    assert pushed["exit_code"] != 0
    assert snapshot(checkout) == before
    # A second replica of it starts from the same commits.
    assert deck.ask("POST", f"/v1/workspaces/{id}/sleep").status_code == 200
    assert snapshot(checkout) == before
    deck.delete(id)
    assert snapshot(checkout) == before
    assert git(checkout, "log", "--format=%s") == "Commit 1\nCommit 0"


@pytest.mark.long
def test_commits_in_the_checkout_reach_the_next_replica(deck: Installation, tmp_path: Path) -> None:
    checkout = make_repository(tmp_path / "growing")
    environment = deck.environment_with(deck.connect(str(checkout)))
    first = deck.create(environment)
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Later")
    git(checkout, "gc", "-q", "--prune=now")
    second = deck.create(environment)
    log = "cd growing && git log --format=%s | head -1 && git branch --show-current"
    assert deck.run(first, log)["output"].splitlines()[0] == "Commit 1"
    said = deck.run(second, log)["output"].splitlines()
    assert said == ["Later", f"qd/{deck.replica(second)['name']}"]
    # The source may lose what a replica still needs: the mirror keeps it.
    git(checkout, "update-ref", "refs/heads/main", git(checkout, "rev-parse", "HEAD~2"))
    git(checkout, "reflog", "expire", "--expire=now", "--all")
    git(checkout, "gc", "-q", "--prune=now")
    third = deck.create(environment)
    for id in (first, second, third):
        assert deck.run(id, "cd growing && git fsck --full && git status -s")["exit_code"] == 0
    until(lambda: deck.replica(third)["repository_statuses"], "the repository's state")
    for id in (first, second, third):
        deck.delete(id)
